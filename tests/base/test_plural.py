import pytest

from quorate.base.plural import pluralize


@pytest.mark.parametrize(("count", "text"), [(0, "0 batches"), (1, "1 batch"), (2, "2 batches")])
def test_only_one_is_singular(count, text):
    assert pluralize(count, "batch", "batches") == text
    assert pluralize(count, "cluster") == f"{count} cluster{'s' * (count != 1)}"
