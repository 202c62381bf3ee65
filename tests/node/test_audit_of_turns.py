"""The audit trail of work whose records commit in parts, of which the last may never come."""

from itertools import pairwise

from narrow import not_none
from node.test_turns import go_on, in_turns
from node.test_turns_of_a_node import LEVEL, PART, PARTITIONS, left, records
from node.test_write_queue import Queue, writes
from node.world import World
from quorate.base.errors import ErrorCode
from quorate.controller.activation import Bootstrap
from quorate.controller.event_durations import EventDurations
from quorate.controller.heartbeats import BROKER_HEARTBEAT
from quorate.controller.result import Result, controller_task
from quorate.formats.records import PartitionChangeRecord
from quorate.node.audit import MOST_ITEMS, of_write
from quorate.node.queued_write import QueuedWrite
from quorate.node.write_results import WriteResults

FENCING = "maybeFenceStaleBroker"
REASON = "no heartbeat of the broker within broker.session.timeout.ms"


def audited():
    queue = Queue()
    queue.queue.out.audited = []
    return queue


def entries(queue, name="Test"):
    """Those of the trail so far; the queue forgets them."""
    found = queue.queue.out.audited
    made = [of_write(name, w.request, w.call, w.response, facts, e) for w, facts, e in found]
    found.clear()
    return [entry for entry in made if entry is not None]


def place(entry):
    """Where the records of an entry are, and which part of which operation it is."""
    names = ("firstOffset", "endOffset", "records", "operation", "part", "more")
    return tuple(entry.get(name) for name in names)


def elected(count):
    return [PartitionChangeRecord(partition_id=n, leader=2) for n in range(count)]


# -- on whole nodes --------------------------------------------------------------------------------
def fencing(nodes):
    """A world in the middle of a fencing: the leader, whose trail has the first turns of it."""
    world = World(nodes, bootstrap=Bootstrap((LEVEL,)), part_records=PART, audited=True)
    for node in world.nodes.values():
        task = controller_task(
            "load", lambda head, request, context: Result(list(records()), False)
        )
        node.running.add_task(task, 1)
    leader = world.run_until(lambda: world.active)
    world.run_until(lambda: leader.image.topics.by_id)
    for node in world.nodes.values():  # none loads again, and the brokers have a session
        world.crash(node.node_id)
        world.start(node.node_id)
    leader = world.run_until(lambda: world.active)
    for node in world.nodes.values():
        node.audit.clear()
    world.run_until(lambda: left(leader) >= PART)
    assert left(leader) < PARTITIONS, "other turns are to come"
    return world, leader


def of_fencing(node):
    return [entry for entry in node.audit if entry["request"] == FENCING]


def covered(trail):
    """How many elections the entries name, each in a range of its own."""
    ends = [(entry["firstOffset"], entry["endOffset"]) for entry in trail if "firstOffset" in entry]
    assert all(end <= first for (_, end), (first, _) in pairwise(ends))
    return sum(entry.get("electionCount", 0) for entry in trail if "firstOffset" in entry)


def test_a_node_that_dies_in_the_middle_of_a_fencing_leaves_the_committed_turns():
    world, leader = fencing([1])
    done = left(leader)
    world.crash(1)
    trail = of_fencing(leader)
    assert covered(trail) == done
    assert {(entry["operation"], entry["reason"], entry["result"]) for entry in trail} == {
        (trail[0]["firstOffset"], REASON, "NONE")
    }
    assert [(entry["part"], entry["more"]) for entry in trail] == [
        (number + 1, True) for number in range(done // PART)
    ]
    world.start(1)
    world.run_until(lambda: world.active and world.leader.image.cluster.brokers[8].fenced)
    assert covered(of_fencing(leader)) == PARTITIONS
    assert len({entry["operation"] for entry in of_fencing(leader)}) == 2
    assert leader.audit[-1]["request"] == FENCING and not leader.audit[-1]["more"]


def test_a_leader_that_is_cut_off_says_what_was_committed_and_what_may_be():
    world, leader = fencing([1, 2, 3])
    world.cut.add(leader.node_id)
    world.run_until(lambda: not leader.running.is_active)
    *parts, last = of_fencing(leader)
    assert covered(parts) == left(leader)
    assert all(part["more"] and part["result"] == "NONE" for part in parts)
    assert (last["result"], last["more"], last["part"]) == ("NOT_CONTROLLER", False, len(parts) + 1)
    assert (last["operation"], last["reason"]) == (parts[0]["firstOffset"], REASON)
    assert (last["uncommitted"], last["electionCount"]) == (PART, PART)
    assert "firstOffset" not in last


# -- in the queue ----------------------------------------------------------------------------------
def test_a_write_that_commits_at_once_has_one_entry_without_parts():
    queue = audited()
    queue.add(writes(3))
    assert go_on(queue) == [3]
    assert [place(entry) for entry in entries(queue)] == [(10, 13, 3, None, None, None)]


def test_each_turn_has_an_entry_as_soon_as_it_is_committed():
    queue = audited()
    queue.add(in_turns(2, 4, rest=3))
    assert go_on(queue) == [2]
    assert [place(entry) for entry in entries(queue)] == [(10, 12, 2, 10, 1, True)]
    queue.add(writes(1))
    assert go_on(queue) == [1, 4]
    assert [place(entry) for entry in entries(queue)] == [
        (12, 13, 1, None, None, None),
        (13, 17, 4, 10, 2, True),
    ]
    assert go_on(queue) == [3]
    assert [place(entry) for entry in entries(queue)] == [(17, 20, 3, 10, 3, False)]


def test_the_last_entry_comes_also_where_the_last_turn_writes_nothing():
    queue = audited()
    queue.add(in_turns(2, rest=0))
    assert [go_on(queue), go_on(queue)] == [[2], []]
    first, last = entries(queue)
    assert place(first) == (10, 12, 2, 10, 1, True)
    assert place(last) == (None, None, None, 10, 2, False)
    assert first["reason"] == last["reason"]


def test_a_large_result_has_an_entry_for_each_part():
    queue = audited()
    queue.add(writes(200, atomic=False))
    first, *_, last = queue.inputs
    queue.commit(first)
    count = len(first.values)
    assert [place(entry) for entry in entries(queue)] == [(10, 10 + count, count, 10, 1, True)]
    queue.queue.leadership_changed(None)
    [entry] = entries(queue)
    assert (entry["result"], entry["uncommitted"]) == ("NOT_CONTROLLER", 200 - count)
    assert place(entry) == (None, None, None, 10, 2, False)
    queue.commit(last)
    assert entries(queue) == []


def test_routine_has_entries_of_the_turns_that_elect():
    """What is committed before is in the next entry."""
    isr = [PartitionChangeRecord(partition_id=0, isr=[1])]
    results = WriteResults(EventDurations(60_000, 100), int)
    results.audited = []
    write = QueuedWrite(BROKER_HEARTBEAT, None, None, None, 0)
    counts, end = [], 10
    for part in (isr, elected(MOST_ITEMS + 1), isr):
        results.submitted(write, part)
        base, end = end, end + len(part)
        not_none(write.facts).committed(base, end)
        results.part_committed(write)
        counts.append(len(results.audited))
    results.answered(write, ErrorCode.NONE, end)
    assert counts == [0, 1, 1]
    first, last = (
        not_none(of_write("BrokerHeartbeat", None, None, None, facts, error))
        for _, facts, error in results.audited
    )
    assert place(first) == (10, 22, 12, 10, 1, True)
    assert (first["electionCount"], len(first["elections"])) == (MOST_ITEMS + 1, MOST_ITEMS)
    assert place(last) == (22, 23, 1, 10, 2, False) and "electionCount" not in last
