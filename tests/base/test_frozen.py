"""What is called frozen is: really where it is compiled, and in the tests where it is not."""

import sys

import pytest

from interop.process import run_tool
from quorate.base.ids import ReplicaKey, Uuid
from quorate.raft.values import ElectionState

OUTSIDE = """
from quorate.raft.values import ElectionState
state = ElectionState(1, 2, None)
state.epoch = 3
print(state.epoch, hash(state) == hash(ElectionState(3, 2, None)))
"""


def test_a_value_that_is_changed_raises_in_the_tests():
    state = ElectionState(1, 2, ReplicaKey(2, Uuid(bytes(16))))
    with pytest.raises(AttributeError):
        state.epoch = 3  # type: ignore[misc]  # mypy refuses it, too
    with pytest.raises(AttributeError):
        del state.epoch
    assert hash(state) == hash(ElectionState(1, 2, ReplicaKey(2, Uuid(bytes(16)))))


def test_the_interpreter_does_not_pay_for_it():
    run = run_tool(["env", "QUORATE_PURE_PYTHON=1", sys.executable, "-c", OUTSIDE])
    assert run.stdout == "3 True\n", run.stderr
