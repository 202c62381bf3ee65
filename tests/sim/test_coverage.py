"""What the coverage points count, and what a campaign reports that did not reach some."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch, OffsetAndEpoch
from quorate.raft.messages import (
    AddVoterResponse,
    FetchResponse,
    RemoveVoterResponse,
    UpdateVoterResponse,
)
from quorate.raft.ready import Refused
from quorate.raft.roles import LEGAL_TRANSITIONS, NEVER, Follower, Leader, Prospective, Resigned
from quorate.raft.values import ControlState, ElectionState
from quorate.replica.disk_jobs import AppendBatches, ReadLog, Write
from quorate.replica.replica import Answer, Effects, Submit
from quorate.sim.coverage.coverage import Coverage
from quorate.sim.coverage.coverage_points import ALL_COVERAGE_POINTS, not_reached
from quorate.sim.plan.plan import FAULT_EVENTS
from quorate.sim.world.client_op import ClientOp
from quorate.storage.api import AppendedBatch
from sim.fake import Fake, Node, key, voters

pytestmark = pytest.mark.interpreted

SNAPSHOT = OffsetAndEpoch(7, 1)


@pytest.fixture
def coverage() -> Coverage:
    return Coverage()


def a_world(coverage: Coverage) -> Fake:
    fake = Fake(3, (), coverage)
    for node in fake.nodes.values():
        node.state.is_voter = True
        node.state.installing = None
        node.state.log = SimpleNamespace(start_offset=0, end_offset=0)
        node.state.controls.voters_offset = 0
        node.durable = SimpleNamespace(end_offset=0, election=None)  # type: ignore[attr-defined]
    return fake


def a_leader() -> Leader:
    progress = SimpleNamespace(majority_end=lambda: 0, voters={})
    return Leader(0, progress, NEVER, NEVER)  # type: ignore[arg-type]


def test_every_fault_and_every_legal_transition_has_a_coverage_point() -> None:
    for kind in FAULT_EVENTS:
        assert f"fault: {kind}" in ALL_COVERAGE_POINTS
    for old, new in LEGAL_TRANSITIONS:
        assert f"role: {old.__name__} to {new.__name__}" in ALL_COVERAGE_POINTS


def test_names_are_unique_and_many() -> None:
    assert len(set(ALL_COVERAGE_POINTS)) == len(ALL_COVERAGE_POINTS)
    sentences = [name for name in ALL_COVERAGE_POINTS if ": " not in name]
    assert len(sentences) >= 40


def test_not_reached_names_the_missed_points() -> None:
    counts = dict.fromkeys(ALL_COVERAGE_POINTS, 1)
    assert not_reached(counts) == []
    counts["a follower truncated"] = 0
    del counts["fault: kill"]
    assert not_reached(counts) == ["fault: kill", "a follower truncated"]


def test_transitions_are_read_from_the_notes(coverage: Coverage) -> None:
    node = a_world(coverage)[1]
    node.step(
        notes=[
            "epoch 0: starts as resigned, voters {1}",
            "epoch 0: prospective (only voter)",
            "epoch 1: candidate",
        ]
    )
    assert coverage.coverage["role: Resigned to Prospective"] == 1
    assert coverage.coverage["role: Prospective to Candidate"] == 1
    assert coverage.coverage["role: Unattached to Resigned"] == 0


def test_a_vote_given_while_prospective_has_no_note_of_its_own(coverage: Coverage) -> None:
    node = a_world(coverage)[1]
    node.state.role = Prospective(None, NEVER)  # type: ignore[arg-type]
    node.step(notes=["epoch 0: prospective (election timeout)"])
    node.state.role = Prospective(None, NEVER)  # type: ignore[arg-type]
    node.step(notes=["epoch 0: vote of 2 granted"])
    assert coverage.coverage["role: Prospective to Prospective"] == 1
    assert coverage.coverage["a vote was granted"] == 1


NOTES = {
    "truncated to 7": "a follower truncated",
    "voters {1, 2, 3} again": "an uncommitted voter set was truncated",
    "epoch 3: resigned (no fetch from a majority of the voters)": (
        "a leader resigned by check quorum"
    ),
    "epoch 3: resigned (removed from the voter set)": "a leader removed itself",
    "epoch 3: prospective, voted for 2 (fetch timeout)": "a follower ran after a silent leader",
    "epoch 3: candidate (2 knows no pre-vote)": "a peer knew no pre-votes",
    "epoch 3: pre-vote of 2 refused": "a pre-vote was refused",
    "leader 1 no longer has snapshot (7, 1)": "a snapshot was fetched while the source cleaned it",
    "auto join: joins the voter set, the leader has agreed": "an observer joined by itself",
    "auto join: REQUEST_TIMED_OUT": "an observer was not let in at once",
    "2-AAAAAAAAAAAAAAAAAAAAAg fetches at 3, having acknowledged 5": (
        "a replica acknowledged less than before"
    ),
    "log starts at 7, older snapshots dropped": "a log was cleaned",
    "log starts at snapshot (7, 1), voters {1}": "a snapshot took the place of a log",
}


@pytest.mark.parametrize("note", NOTES)
def test_notes_reach_coverage_points(coverage: Coverage, note: str) -> None:
    fake = a_world(coverage)
    fake.observers = (coverage,)  # the checks would ask what led to it
    fake[1].step(notes=[note])
    assert coverage.coverage[NOTES[note]] == 1
    assert NOTES[note] in ALL_COVERAGE_POINTS


def test_an_upgrade_that_is_truncated(coverage: Coverage) -> None:
    """Where no voters are configured an empty log has none either."""
    fake = a_world(coverage)
    fake.observers = (coverage,)
    state = fake[1].state
    state.controls.state = ControlState(0, ())
    fake[1].step(notes=["voters {1, 2, 3} again"])
    truncated = coverage.coverage["an upgrade of a static quorum was truncated"]
    assert truncated == 0
    state.config.static_voters = voters(1, 2, 3)
    fake[1].step(notes=["voters {1, 2, 3} again"])
    assert coverage.coverage["an upgrade of a static quorum was truncated"] == 1
    state.controls.state = ControlState(1, voters(1, 2))
    fake[1].step(notes=["voters {1, 2} again"])
    assert coverage.coverage["an upgrade of a static quorum was truncated"] == 1


def test_what_recovery_did(coverage: Coverage) -> None:
    fake = a_world(coverage)
    recovered = SimpleNamespace(
        notes=("x.log: cut a torn tail of 9 bytes",),
        log=SimpleNamespace(snapshots=(), end_offset=0),
        election=ElectionState(1, 1),
    )
    coverage.started(fake[1], recovered)  # type: ignore[arg-type]
    assert coverage.coverage["a torn tail was cut at recovery"] == 1
    assert coverage.coverage["a leader began anew and resigned"] == 1


def test_a_leader_deposed_with_a_change_pending(coverage: Coverage) -> None:
    node = a_world(coverage)[1]
    leader = a_leader()
    leader.change = object()  # type: ignore[assignment]
    node.state.role = leader
    node.step(notes=["epoch 1: leader"])
    node.state.role = Resigned(NEVER, set())
    node.step(notes=["epoch 1: resigned (no fetch from a majority of the voters)"])
    assert coverage.coverage["a leader resigned by check quorum with a change pending"] == 1
    assert coverage.coverage["a leader resigned with an uncommitted voter set"] == 1


def test_two_leaders_at_once(coverage: Coverage) -> None:
    fake = a_world(coverage)
    for node_id in (1, 2):
        fake[node_id].state.role = a_leader()
        fake[node_id].step(notes=[f"epoch {node_id}: leader"])
    assert coverage.coverage["two replicas led at once, in two epochs"] == 1


@pytest.mark.parametrize("end", ["crash", "stop"])
def test_a_stopped_leader_does_not_lead(coverage: Coverage, end: str) -> None:
    fake = a_world(coverage)
    for node_id in (1, 2):
        fake[node_id].state.role = a_leader()
        fake[node_id].step(notes=[f"epoch {node_id}: leader"], stopped=end == "stop")
        if end == "crash":
            coverage.crashed(fake[node_id])  # type: ignore[arg-type]
    assert coverage.coverage["two replicas led at once, in two epochs"] == 0


def test_an_older_entry_on_a_majority(coverage: Coverage) -> None:
    node = a_world(coverage)[1]
    role = a_leader()
    role.progress = SimpleNamespace(majority_end=lambda: 5, voters={})  # type: ignore[assignment]
    node.state.role = role
    node.step()
    assert coverage.coverage["an entry of an older epoch on a majority was not counted"] == 1


def test_what_a_crash_destroys(coverage: Coverage) -> None:
    node = a_world(coverage)[1]
    node.state.election = ElectionState(2, -1, key(1))
    node.state.log.end_offset = 9
    role = Follower((), NEVER, NEVER)
    role.download = object()  # type: ignore[assignment]
    node.state.role = role
    coverage.crashed(node)  # type: ignore[arg-type]
    node.start()
    for name in (
        "a vote was lost by a crash before its sync",
        "a new epoch was lost by a crash before its sync",
        "an unsynced tail was lost in a crash",
        "a crash interrupted the download of a snapshot",
    ):
        assert coverage.coverage[name] == 1, name


def test_a_vote_that_the_disk_has_is_not_lost(coverage: Coverage) -> None:
    node = a_world(coverage)[1]
    node.durable.election = ElectionState(2, -1, key(1))  # type: ignore[attr-defined]
    node.state.election = ElectionState(2, 1, key(1))
    coverage.crashed(node)  # type: ignore[arg-type]
    assert coverage.coverage["a vote was lost by a crash before its sync"] == 0


def test_a_leader_that_crashes_with_unfinished_work(coverage: Coverage) -> None:
    node = a_world(coverage)[1]
    role = a_leader()
    role.change = object()  # type: ignore[assignment]
    node.state.role = role
    node.state.log.end_offset = 9
    node.state.installing = object()
    coverage.crashed(node)  # type: ignore[arg-type]
    for name in (
        "a leader crashed with records that were not committed",
        "a leader crashed with a voter change under way",
        "a crash interrupted the install of a snapshot",
    ):
        assert coverage.coverage[name] == 1, name


def test_refusals_and_anomalies(coverage: Coverage) -> None:
    node = a_world(coverage)[1]
    fenced = FetchResponse(ErrorCode.FENCED_LEADER_EPOCH, LeaderAndEpoch(-1, 0))
    node.step(
        [Submit(1, ()), Submit(2, (bytes(9 << 20),))],
        answers=[Answer(1, fenced)],
        outcomes=[
            Refused(1, ErrorCode.NOT_CONTROLLER, "", True),
            Refused(2, ErrorCode.RECORD_LIST_TOO_LARGE, ""),
        ],
    )
    assert coverage.coverage["a message of an older epoch came in a later one"] == 1
    assert coverage.coverage["a proposal was left in doubt"] == 1
    assert coverage.coverage["a submission fitted no batch"] == 1


def test_group_commit(coverage: Coverage) -> None:
    node = a_world(coverage)[1]
    one, two = (AppendedBatch(offset, offset, 1, b"") for offset in (0, 1))
    effects = Effects(jobs=[Write(1, (AppendBatches((one,)),))])
    coverage.stepped(node, (), effects)  # type: ignore[arg-type]
    assert coverage.coverage["several batches were written under one sync"] == 0
    effects = Effects(jobs=[Write(2, (AppendBatches((one, two)),))])
    coverage.stepped(node, (), effects)  # type: ignore[arg-type]
    assert coverage.coverage["several batches were written under one sync"] == 1


def see(coverage: Coverage, node: Node, effects: Effects) -> None:
    """No check looks on."""
    coverage.stepped(node, (), effects)  # type: ignore[arg-type]


def test_a_tail_that_was_trimmed(coverage: Coverage) -> None:
    """A leader that reads what its tail never held has only restarted."""
    node = a_world(coverage)[1]
    node.state.role = a_leader()
    node.replica.tail.start_offset = 5
    node.replica.reads.given[1] = None
    read = "a leader read from its disk what its tail had dropped"
    append = AppendBatches((AppendedBatch(9, 9, 1, b""),))
    see(coverage, node, Effects(jobs=[Write(1, (append,))]))
    assert coverage.coverage["the tail in a node's memory was trimmed"] == 1
    for job in (ReadLog(2, 0, 9, 1), ReadLog(1, 5, 9, 1)):
        see(coverage, node, Effects(jobs=[job]))
        assert coverage.coverage[read] == 0
    see(coverage, node, Effects(jobs=[ReadLog(1, 4, 9, 1)]))
    assert coverage.coverage[read] == 1


def test_a_change_that_waits_for_one_that_is_not_committed(coverage: Coverage) -> None:
    node = a_world(coverage)[1]
    role = a_leader()
    role.high_watermark, node.state.role = 4, role
    node.state.controls.voters_offset = 4
    late = ErrorCode.REQUEST_TIMED_OUT
    said = "Request timed out waiting for voters to commit the latest voter change at"
    see(coverage, node, Effects(answers=[Answer(1, AddVoterResponse(late, "lagging behind"))]))
    refused = "a voter change was refused while another one was not committed"
    assert coverage.coverage.get(refused, 0) == 0
    see(coverage, node, Effects(answers=[Answer(1, RemoveVoterResponse(late, said))]))
    assert coverage.coverage[refused] == 1
    see(coverage, node, Effects(answers=[Answer(1, UpdateVoterResponse(late))]))
    update = "an update of a voter was refused while a change was not committed"
    assert coverage.coverage[update] == 1
    node.state.controls.voters_offset = 3
    see(coverage, node, Effects(answers=[Answer(1, UpdateVoterResponse(late))]))
    assert coverage.coverage[update] == 1


@pytest.mark.parametrize(
    ("loading", "reading", "data", "while_"),
    [
        (SNAPSHOT, 1, b"", "another one was loaded"),
        (None, 1, b"", "the log was read to be applied"),
        (None, 0, b"x", "the log was applied"),
    ],
)
def test_what_an_install_interrupts(
    coverage: Coverage, loading: object, reading: int, data: bytes, while_: str
) -> None:
    node = a_world(coverage)[1]
    node.replica.applier = SimpleNamespace(
        loading=loading, is_reading=reading, has_unapplied_data=data
    )
    coverage.durable(node, 1)  # type: ignore[arg-type]
    assert not coverage.coverage[f"a snapshot was installed while {while_}"]
    node.state.installing = SNAPSHOT
    coverage.durable(node, 2)  # type: ignore[arg-type]
    assert coverage.coverage[f"a snapshot was installed while {while_}"] == 1


def test_clients(coverage: Coverage) -> None:
    op = ClientOp(1, 1, "put", 0, 1, None, 0, attempts=2, outcome="ok")
    coverage.invoked(op)
    a_world(coverage)[1].step(notes=["kraft.version 1 at offset 4"])
    coverage.answered(op)
    coverage.answered(ClientOp(1, 2, "put", 0, 1, None, 0, outcome="unknown"))
    coverage.answered(ClientOp(1, 3, "put", 0, 1, None, 0, attempts=2, outcome="refused"))
    for name in (
        "a client was refused for good and went on",
        "a static quorum was upgraded under load",
        "an operation was sent again and done once",
        "a client never learned what became of its operation",
    ):
        assert coverage.coverage[name] == 1, name


def test_a_leader_outside_its_voter_set(coverage: Coverage) -> None:
    node = a_world(coverage)[1]
    node.state.role = a_leader()
    node.step(notes=["epoch 1: leader"])
    node.state.is_voter = False
    node.step(notes=["offset 4: voters {2, 3}"])
    assert coverage.coverage["a leader led outside its own voter set"] == 1


def test_faults_are_counted(coverage: Coverage) -> None:
    coverage.fault("kill", (1, 10))
    coverage.fault("kill", (2, 10))
    coverage.fault("interrupted", (1, "roll"))
    assert coverage.coverage["interrupted: roll"] == 1
    coverage.refused(None, "damaged")  # type: ignore[arg-type]
    assert coverage.coverage["fault: kill"] == 2
    assert coverage.coverage["recovery refused a damaged disk"] == 1
