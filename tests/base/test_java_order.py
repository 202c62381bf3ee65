"""The expected orders are those of `java.util.HashMap` of OpenJDK 17."""

import pytest

from quorate.base.java_order import hash_map_order, string_hash

FEATURES = ("metadata.version", "kraft.version", "transaction.version")


@pytest.mark.parametrize(
    ("keys", "capacity", "expected"),
    [
        (["user", "client-id"], 2, ["client-id", "user"]),
        (["user", "ip"], 1, ["user", "ip"]),
        (FEATURES, 16, ["kraft.version", "metadata.version", "transaction.version"]),
        (FEATURES, 0, ["kraft.version", "transaction.version", "metadata.version"]),
        (["a", "b", "a"], 16, ["a", "b"]),
    ],
)
def test_keys_come_in_the_order_of_their_slots(keys, capacity, expected):
    assert hash_map_order(keys, capacity) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("", 0), ("user", 3599307), ("ip", 3367), ("\U0001f600", 1772899)]
)
def test_the_hash_of_a_text_counts_utf_16_units(text, expected):
    assert string_hash(text) == expected
