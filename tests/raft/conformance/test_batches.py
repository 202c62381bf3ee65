"""BatchAccumulatorTest, RecordsIteratorTest: what other tests of ours do not say."""

from __future__ import annotations

import pytest

from quorate.formats.batch import encode_control_batch, iter_batches
from quorate.formats.control import ControlType
from quorate.node.company import PATIENCE_MS
from quorate.node.machine import Now
from quorate.node.proposals import Outcome, Proposals, Submit
from quorate.storage.memory import MemoryStorage
from sim.test_known_bugs_of_nodes import Alone


def test_close_when_empty() -> None:
    """Leadership ends and nothing was asked for."""
    outcomes: list[Outcome] = []
    Proposals().lose(outcomes)
    assert outcomes == []


# -- the wait for company: Kafka's linger, 2 ms at most --------------------------------------------
def after_a_round_of_four() -> Alone:
    """The only voter; four writers were answered together, and are expected back together."""
    node = Alone(MemoryStorage())
    node.run(*[Submit(i, [b"x"]) for i in range(4)])
    assert len(node.committed) == 4
    return node


def test_linger_ignored_if_accumulator_empty() -> None:
    """Nothing was submitted: nothing is due, and no time is waited for."""
    effects = after_a_round_of_four().replica.step([], Now(10, 10))
    assert effects.jobs == []
    assert effects.wake_at_ms is None or effects.wake_at_ms > 10 + PATIENCE_MS


@pytest.mark.parametrize("more", [0, 1], ids=["WithoutAppend", "DuringAppend"])
def test_channel_woken_up_if_linger_timeout_reached(more: int) -> None:
    """The replica asks to be woken when the wait is over, and appends then, be it alone or not."""
    node = after_a_round_of_four()
    end = node.replica.core.log_end.offset
    over = 10 + PATIENCE_MS
    for now, given in ((10, [Submit(4, [b"first"])]), (11, [])):
        effects = node.replica.step(given, Now(now, now))
        assert (effects.jobs, effects.wake_at_ms) == ([], over)
    effects = node.replica.step([Submit(5, [b"late"])] * more, Now(over, over))
    assert len(effects.jobs) == 1
    assert node.replica.core.log_end.offset == end + 1 + more


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
