"""Queues of requesters that take turns."""

from quorate.base.turns import Turns


def queues(*items):
    found: Turns[str] = Turns()
    for item in items:
        found.add(item[0], item)
    return found


def taken(turns):
    return [turns.take(turns.next_name()) for _ in range(len(turns))]


def test_requesters_take_turns_and_each_keeps_its_order():
    turns = queues("a1", "a2", "a3", "b1", "b2", "c1")
    assert list(turns) == ["a1", "a2", "a3", "b1", "b2", "c1"]
    assert taken(turns) == ["a1", "b1", "c1", "a2", "b2", "a3"]
    assert not turns and not turns.has("a")


def test_who_had_the_last_turn_waits_for_another_requester():
    turns = queues("a1", "b1")
    assert (turns.next_name(), turns.next_name("a"), turns.next_name("b")) == ("a", "b", "a")
    turns.take("b")
    assert turns.next_name("a") == "a", "there is no other one"


def test_a_turn_may_leave_the_oldest_item():
    turns = queues("a1", "a2", "b1")
    assert turns.oldest("a") == "a1"
    turns.pass_on("a")
    assert taken(turns) == ["b1", "a1", "a2"]


def test_some_items_or_all_are_taken_out_of_turn():
    turns = queues("a1", "b1", "a2", "c1")
    assert turns.take_those(lambda item: item in ("a1", "c1")) == ["a1", "c1"]
    assert (len(turns), list(turns), turns.has("c")) == (2, ["a2", "b1"], False)
    turns.clear()
    assert (len(turns), list(turns)) == (0, [])
