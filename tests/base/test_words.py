import pytest

from quorate.base.words import many


@pytest.mark.parametrize(("count", "told"), [(0, "0 batches"), (1, "1 batch"), (2, "2 batches")])
def test_one_is_no_plural(count, told):
    assert many(count, "batch", "batches") == told
    assert many(count, "cluster") == f"{count} cluster{'s' * (count != 1)}"
