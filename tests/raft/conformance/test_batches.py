"""BatchAccumulatorTest, RecordsIteratorTest: what other tests of ours do not say."""

from __future__ import annotations

import pytest

from quorate.formats.batch import encode_control_batch, iter_batches
from quorate.formats.control import ControlType
from quorate.node.proposals import Outcome, Proposals


def test_close_when_empty() -> None:
    """Leadership ends and nothing was asked for."""
    outcomes: list[Outcome] = []
    Proposals().lose(outcomes)
    assert outcomes == []


def test_an_empty_control_batch_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        encode_control_batch(0, 1, 0, [])


def test_no_bytes_hold_no_batch() -> None:
    assert list(iter_batches(b"")) == []


def test_control_record_types() -> None:
    assert {kind.name: kind.value for kind in ControlType} == {
        "ABORT": 0,
        "COMMIT": 1,
        "LEADER_CHANGE": 2,
        "SNAPSHOT_HEADER": 3,
        "SNAPSHOT_FOOTER": 4,
        "KRAFT_VERSION": 5,
        "KRAFT_VOTERS": 6,
    }
