"""What is called frozen is: by the type checker in production, really so in the tests."""

import sys
from dataclasses import FrozenInstanceError

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
    with pytest.raises(FrozenInstanceError):
        state.epoch = 3
    with pytest.raises(FrozenInstanceError):
        del state.epoch
    assert hash(state) == hash(ElectionState(1, 2, ReplicaKey(2, Uuid(bytes(16)))))


def test_production_does_not_pay_for_it():
    run = run_tool([sys.executable, "-c", OUTSIDE])
    assert run.stdout == "3 True\n", run.stderr
