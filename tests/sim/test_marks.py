"""What the marks count, and what a campaign is told that left some cold."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch, OffsetAndEpoch
from quorate.node.jobs import AppendBatches, ReadLog, Write
from quorate.node.replica import Answer, Effects, Submit
from quorate.raft.messages import (
    AddVoterResponse,
    FetchResponse,
    RemoveVoterResponse,
    UpdateVoterResponse,
)
from quorate.raft.ready import Refused
from quorate.raft.roles import LEGAL_MOVES, NEVER, Follower, Leader, Prospective, Resigned
from quorate.raft.values import ControlState, ElectionState
from quorate.sim.marks import ALL_MARKS, Marks, cold
from quorate.sim.observe import ClientOp
from quorate.sim.plan import DEEDS
from quorate.storage.api import AppendedBatch
from sim.fake import Fake, Node, key, voters

pytestmark = pytest.mark.interpreted

SNAPSHOT = OffsetAndEpoch(7, 1)


@pytest.fixture
def marks() -> Marks:
    return Marks()


def a_world(marks: Marks) -> Fake:
    fake = Fake(3, (), marks)
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


def test_every_fault_and_every_legal_move_has_a_mark() -> None:
    for kind in DEEDS:
        assert f"fault: {kind}" in ALL_MARKS
    for old, new in LEGAL_MOVES:
        assert f"role: {old.__name__} to {new.__name__}" in ALL_MARKS


def test_names_are_unique_and_many() -> None:
    assert len(set(ALL_MARKS)) == len(ALL_MARKS)
    sentences = [name for name in ALL_MARKS if ": " not in name]
    assert len(sentences) >= 40


def test_cold_names_what_was_not_met() -> None:
    warm = dict.fromkeys(ALL_MARKS, 1)
    assert cold(warm) == []
    warm["a follower truncated"] = 0
    del warm["fault: kill"]
    assert cold(warm) == ["fault: kill", "a follower truncated"]


def test_moves_are_read_from_the_notes(marks: Marks) -> None:
    node = a_world(marks)[1]
    node.step(
        notes=[
            "epoch 0: starts as resigned, voters {1}",
            "epoch 0: prospective (only voter)",
            "epoch 1: candidate",
        ]
    )
    assert marks.marks["role: Resigned to Prospective"] == 1
    assert marks.marks["role: Prospective to Candidate"] == 1
    assert marks.marks["role: Unattached to Resigned"] == 0


def test_a_vote_given_while_prospective_has_no_note_of_its_own(marks: Marks) -> None:
    node = a_world(marks)[1]
    node.state.role = Prospective(None, NEVER)  # type: ignore[arg-type]
    node.step(notes=["epoch 0: prospective (election timeout)"])
    node.state.role = Prospective(None, NEVER)  # type: ignore[arg-type]
    node.step(notes=["epoch 0: vote of 2 granted"])
    assert marks.marks["role: Prospective to Prospective"] == 1
    assert marks.marks["a vote was granted"] == 1


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
def test_notes_make_marks(marks: Marks, note: str) -> None:
    fake = a_world(marks)
    fake.observers = (marks,)  # the checks would ask what led to it
    fake[1].step(notes=[note])
    assert marks.marks[NOTES[note]] == 1
    assert NOTES[note] in ALL_MARKS


def test_an_upgrade_that_is_truncated(marks: Marks) -> None:
    """Where no voters are configured an empty log has none either."""
    fake = a_world(marks)
    fake.observers = (marks,)
    state = fake[1].state
    state.controls.state = ControlState(0, ())
    fake[1].step(notes=["voters {1, 2, 3} again"])
    assert not marks.marks["an upgrade of a static quorum was truncated"]
    state.config.static_voters = voters(1, 2, 3)
    fake[1].step(notes=["voters {1, 2, 3} again"])
    assert marks.marks["an upgrade of a static quorum was truncated"] == 1
    state.controls.state = ControlState(1, voters(1, 2))
    fake[1].step(notes=["voters {1, 2} again"])
    assert marks.marks["an upgrade of a static quorum was truncated"] == 1


def test_what_recovery_did(marks: Marks) -> None:
    fake = a_world(marks)
    recovered = SimpleNamespace(
        notes=("x.log: cut a torn tail of 9 bytes",),
        log=SimpleNamespace(snapshots=(), end_offset=0),
        election=ElectionState(1, 1),
    )
    marks.started(fake[1], recovered)  # type: ignore[arg-type]
    assert marks.marks["a torn tail was cut at recovery"] == 1
    assert marks.marks["a leader began anew and resigned"] == 1


def test_a_leader_deposed_with_a_change_pending(marks: Marks) -> None:
    node = a_world(marks)[1]
    leader = a_leader()
    leader.change = object()  # type: ignore[assignment]
    node.state.role = leader
    node.step(notes=["epoch 1: leader"])
    node.state.role = Resigned(NEVER, set())
    node.step(notes=["epoch 1: resigned (no fetch from a majority of the voters)"])
    assert marks.marks["a leader resigned by check quorum with a change pending"] == 1
    assert marks.marks["a leader resigned with an uncommitted voter set"] == 1


def test_two_leaders_at_once(marks: Marks) -> None:
    fake = a_world(marks)
    for node_id in (1, 2):
        fake[node_id].state.role = a_leader()
        fake[node_id].step(notes=[f"epoch {node_id}: leader"])
    assert marks.marks["two replicas led at once, in two epochs"] == 1


@pytest.mark.parametrize("end", ["crash", "stop"])
def test_a_leader_that_is_gone_leads_no_more(marks: Marks, end: str) -> None:
    fake = a_world(marks)
    for node_id in (1, 2):
        fake[node_id].state.role = a_leader()
        fake[node_id].step(notes=[f"epoch {node_id}: leader"], stopped=end == "stop")
        if end == "crash":
            marks.crashed(fake[node_id])  # type: ignore[arg-type]
    assert marks.marks["two replicas led at once, in two epochs"] == 0


def test_an_older_entry_on_a_majority(marks: Marks) -> None:
    node = a_world(marks)[1]
    role = a_leader()
    role.progress = SimpleNamespace(majority_end=lambda: 5, voters={})  # type: ignore[assignment]
    node.state.role = role
    node.step()
    assert marks.marks["an entry of an older epoch on a majority was not counted"] == 1


def test_what_a_crash_destroys(marks: Marks) -> None:
    node = a_world(marks)[1]
    node.state.election = ElectionState(2, -1, key(1))
    node.state.log.end_offset = 9
    role = Follower((), NEVER, NEVER)
    role.download = object()  # type: ignore[assignment]
    node.state.role = role
    marks.crashed(node)  # type: ignore[arg-type]
    node.start()
    for name in (
        "a vote was lost by a crash before its sync",
        "a new epoch was lost by a crash before its sync",
        "an unsynced tail was lost in a crash",
        "a crash interrupted the download of a snapshot",
    ):
        assert marks.marks[name] == 1, name


def test_a_vote_that_the_disk_has_is_not_lost(marks: Marks) -> None:
    node = a_world(marks)[1]
    node.durable.election = ElectionState(2, -1, key(1))  # type: ignore[attr-defined]
    node.state.election = ElectionState(2, 1, key(1))
    marks.crashed(node)  # type: ignore[arg-type]
    assert marks.marks["a vote was lost by a crash before its sync"] == 0


def test_a_leader_that_crashes_with_unfinished_work(marks: Marks) -> None:
    node = a_world(marks)[1]
    role = a_leader()
    role.change = object()  # type: ignore[assignment]
    node.state.role = role
    node.state.log.end_offset = 9
    node.state.installing = object()
    marks.crashed(node)  # type: ignore[arg-type]
    for name in (
        "a leader crashed with records that were not committed",
        "a leader crashed with a voter change under way",
        "a crash interrupted the install of a snapshot",
    ):
        assert marks.marks[name] == 1, name


def test_refusals_and_doubts(marks: Marks) -> None:
    node = a_world(marks)[1]
    fenced = FetchResponse(ErrorCode.FENCED_LEADER_EPOCH, LeaderAndEpoch(-1, 0))
    node.step(
        [Submit(1, ()), Submit(2, (bytes(9 << 20),))],
        answers=[Answer(1, fenced)],
        outcomes=[
            Refused(1, ErrorCode.NOT_CONTROLLER, "", True),
            Refused(2, ErrorCode.RECORD_LIST_TOO_LARGE, ""),
        ],
    )
    assert marks.marks["a message of an older epoch came in a later one"] == 1
    assert marks.marks["a proposal was left in doubt"] == 1
    assert marks.marks["a submission fitted no batch"] == 1


def test_group_commit(marks: Marks) -> None:
    node = a_world(marks)[1]
    one, two = (AppendedBatch(offset, offset, 1, b"") for offset in (0, 1))
    effects = Effects(jobs=[Write(1, (AppendBatches((one,)),))])
    marks.stepped(node, (), effects)  # type: ignore[arg-type]
    assert marks.marks["several batches were written under one sync"] == 0
    effects = Effects(jobs=[Write(2, (AppendBatches((one, two)),))])
    marks.stepped(node, (), effects)  # type: ignore[arg-type]
    assert marks.marks["several batches were written under one sync"] == 1


def see(marks: Marks, node: Node, effects: Effects) -> None:
    """No check looks on."""
    marks.stepped(node, (), effects)  # type: ignore[arg-type]


def test_a_tail_that_was_trimmed(marks: Marks) -> None:
    """A leader that reads what its tail never held has only begun anew."""
    node = a_world(marks)[1]
    node.state.role = a_leader()
    node.replica._tail.start_offset = 5
    node.replica._reads.given[1] = None
    read = "a leader read from its disk what its tail had dropped"
    append = AppendBatches((AppendedBatch(9, 9, 1, b""),))
    see(marks, node, Effects(jobs=[Write(1, (append,))]))
    assert marks.marks["the tail in a node's memory was trimmed"] == 1
    for job in (ReadLog(2, 0, 9, 1), ReadLog(1, 5, 9, 1)):
        see(marks, node, Effects(jobs=[job]))
        assert marks.marks[read] == 0
    see(marks, node, Effects(jobs=[ReadLog(1, 4, 9, 1)]))
    assert marks.marks[read] == 1


def test_a_change_that_waits_for_one_that_is_not_committed(marks: Marks) -> None:
    node = a_world(marks)[1]
    role = a_leader()
    role.high_watermark, node.state.role = 4, role
    node.state.controls.voters_offset = 4
    late = ErrorCode.REQUEST_TIMED_OUT
    said = "Request timed out waiting for voters to commit the latest voter change at"
    see(marks, node, Effects(answers=[Answer(1, AddVoterResponse(late, "lagging behind"))]))
    assert not marks.marks["a voter change was refused while another one was not committed"]
    see(marks, node, Effects(answers=[Answer(1, RemoveVoterResponse(late, said))]))
    assert marks.marks["a voter change was refused while another one was not committed"] == 1
    see(marks, node, Effects(answers=[Answer(1, UpdateVoterResponse(late))]))
    update = "an update of a voter was refused while a change was not committed"
    assert marks.marks[update] == 1
    node.state.controls.voters_offset = 3
    see(marks, node, Effects(answers=[Answer(1, UpdateVoterResponse(late))]))
    assert marks.marks[update] == 1


@pytest.mark.parametrize(
    ("loading", "reading", "data", "while_"),
    [
        (SNAPSHOT, 1, b"", "another one was loaded"),
        (None, 1, b"", "the log was read to be applied"),
        (None, 0, b"x", "the log was applied"),
    ],
)
def test_what_an_install_interrupts(
    marks: Marks, loading: object, reading: int, data: bytes, while_: str
) -> None:
    node = a_world(marks)[1]
    node.replica._applier = SimpleNamespace(loading=loading, _reading=reading, _data=data)
    marks.durable(node, 1)  # type: ignore[arg-type]
    assert not marks.marks[f"a snapshot was installed while {while_}"]
    node.state.installing = SNAPSHOT
    marks.durable(node, 2)  # type: ignore[arg-type]
    assert marks.marks[f"a snapshot was installed while {while_}"] == 1


def test_clients(marks: Marks) -> None:
    op = ClientOp(1, 1, "put", 0, 1, None, 0, attempts=2, outcome="ok")
    marks.invoked(op)
    a_world(marks)[1].step(notes=["kraft.version 1 at offset 4"])
    marks.answered(op)
    marks.answered(ClientOp(1, 2, "put", 0, 1, None, 0, outcome="unknown"))
    marks.answered(ClientOp(1, 3, "put", 0, 1, None, 0, attempts=2, outcome="refused"))
    for name in (
        "a client was refused for good and went on",
        "a static quorum was upgraded under load",
        "an operation was sent again and done once",
        "a client never learned what became of its operation",
    ):
        assert marks.marks[name] == 1, name


def test_a_leader_outside_its_voter_set(marks: Marks) -> None:
    node = a_world(marks)[1]
    node.state.role = a_leader()
    node.step(notes=["epoch 1: leader"])
    node.state.is_voter = False
    node.step(notes=["offset 4: voters {2, 3}"])
    assert marks.marks["a leader led outside its own voter set"] == 1


def test_faults_are_counted(marks: Marks) -> None:
    marks.fault("kill", (1, 10))
    marks.fault("kill", (2, 10))
    marks.fault("interrupted", (1, "roll"))
    assert marks.marks["interrupted: roll"] == 1
    marks.refused(None, "rotten")  # type: ignore[arg-type]
    assert marks.marks["fault: kill"] == 2
    assert marks.marks["recovery refused a damaged disk"] == 1
