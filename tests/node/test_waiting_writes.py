"""Writes that wait behind a long decision: whose turn comes next."""

from node.test_write_queue import Queue, writes
from quorate.base.errors import ErrorCode
from quorate.controller.result import Result

EVE, ADMIN, APP = "User:eve", "User:admin", "User:app"


def held_queue():
    """A queue that a decision of several steps holds, and how to go on."""
    queue = Queue()

    def long(head):
        for _ in range(2):
            yield None
        return Result((), "long")

    queue.add(long, who=EVE)
    return queue


def decided(queue, tokens):
    """The names of the tokens, in the order of their responses."""
    found = []
    while queue.queue.unanswered:
        queue.queue.resume(1)
        for part in queue.inputs:
            queue.commit(part)
        found += [tokens[token] for token, _, error, _ in queue.responses if token in tokens]
    return found


def test_requesters_take_turns_and_each_keeps_its_order():
    """A client with many connections holds up another one for a single decision of its own."""
    queue = held_queue()
    tokens = {}
    for name, who in (
        *((f"eve{number}", EVE) for number in range(4)),
        ("admin0", ADMIN),
        ("admin1", ADMIN),
        ("app0", APP),
    ):
        tokens[queue.add(writes(1), who=who)] = name
    assert decided(queue, tokens) == ["admin0", "eve0", "app0", "admin1", "eve1", "eve2", "eve3"]


def test_a_write_of_a_requester_who_waits_already_gets_no_turn_of_its_own():
    queue = held_queue()
    tokens = {queue.add(writes(1), who=EVE): "eve0", queue.add(writes(1), who=ADMIN): "admin0"}
    tokens[queue.add(writes(1), who=EVE)] = "eve1"
    assert decided(queue, tokens) == ["admin0", "eve0", "eve1"]


def test_late_writes_of_all_requesters_time_out_and_the_others_stay():
    queue = held_queue()
    late = {queue.add(writes(1), timeout_ms=5, who=who) for who in (EVE, ADMIN)}
    tokens = {queue.add(writes(1), who=who): who for who in (ADMIN, APP)}
    assert queue.queue.unanswered == 5
    queue.queue.resume(5)
    found = {(token, error) for token, _, error, _ in queue.responses}
    assert found == {(token, ErrorCode.REQUEST_TIMED_OUT) for token in late}
    assert decided(queue, tokens) == [ADMIN, APP]


def test_all_that_waits_fails_with_the_leadership_in_the_order_in_which_it_came():
    queue = held_queue()
    came = [queue.add(writes(1), now_ms=at, who=who) for at, who in enumerate((EVE, ADMIN, EVE))]
    queue.queue.leadership_changed(None)
    assert [token for token, *_ in queue.responses][1:] == came
    assert queue.queue.unanswered == 0
