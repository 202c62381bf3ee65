"""Identities as text."""

import pytest

from quorate.base.errors import QuorateError
from quorate.base.ids import ReplicaKey, Uuid


@pytest.mark.parametrize(
    "key",
    [
        ReplicaKey(4, Uuid(b"nobody has this1")),
        ReplicaKey(0, Uuid(b"\xfb" + bytes(15))),  # its text begins with a dash
        ReplicaKey(4),
    ],
)
def test_a_replicas_key_is_read_back_from_its_text(key):
    assert ReplicaKey.from_text(str(key)) == key


@pytest.mark.parametrize(
    "text", ["", "x-07R5amHmR32VDA6jHkGbTA", "-4", "4-", "4-short", "4-x y", "٤"]
)
def test_what_is_no_key_is_refused_by_its_text(text):
    with pytest.raises(QuorateError, match=r"^'.*' is not a "):
        ReplicaKey.from_text(text)


def test_a_key_is_shown_as_people_write_it():
    key = ReplicaKey.from_text("4-07R5amHmR32VDA6jHkGbTA")
    assert f"{[key]}" == "[ReplicaKey(4-07R5amHmR32VDA6jHkGbTA)]"
