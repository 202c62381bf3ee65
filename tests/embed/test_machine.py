"""The machine around a program's own."""

from quorate.embed.machine import OpaqueMachine, encode_entry
from quorate.node.machine import Entry, Now


class Echo:
    def apply(self, offset, entry):
        return entry

    def snapshot(self):
        return ()

    def restore(self, chunks):
        """Nothing was kept."""


def test_results_that_nobody_took_are_let_go_with_the_lead():
    machine = OpaqueMachine(Echo())
    machine.lead(1, Now(0, 0))
    machine.apply(Entry(5, 5, 1, 0, [encode_entry(b"x")]))
    assert machine.results == {5: b"x"}
    machine.follow(2, 2)
    assert machine.results == {}
    machine.apply(Entry(6, 6, 2, 0, [encode_entry(b"y")]))
    assert machine.results == {}
