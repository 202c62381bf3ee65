"""Published bugs that need bytes, a disk or a state machine to be seen: see docs/known-bugs.md.

Each test is run twice: over the real code, and with the bug planted, when it must fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from random import Random

import pytest

from node.world import World
from quorate.base.errors import QuorateError
from quorate.base.ids import ZERO_UUID, LeaderAndEpoch, OffsetAndEpoch
from quorate.controller import activation
from quorate.controller.context import Context, ControllerConfig
from quorate.controller.liveness import Liveness
from quorate.formats.records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    encode_record,
)
from quorate.node.metadata_machine import MetadataMachine
from quorate.raft import inputs
from quorate.raft.messages import FetchRequest, FetchResponse, VoteResponse
from quorate.raft.values import Batch, ControlState, ElectionState, RaftConfig
from quorate.replica.disk_jobs import Job, Result, WriteSnapshot
from quorate.replica.disk_worker import DiskWriter, write_snapshot
from quorate.replica.replica import Committed, Replica, Submit
from quorate.replica.snapshot_policy import SnapshotPolicy
from quorate.replica.state_machine import CommittedBatch, Now
from quorate.sim.scenario.names import CLUSTER_ID, directory, key, listeners, voter
from quorate.storage.api import StorageError
from quorate.storage.memory import MemoryStorage
from quorate.wire.messages import RemoveRaftVoterRequest, UpdateFeaturesRequest
from quorate.wire.schema import Message
from raft.conformance.world import SET, add, committed, versions
from raft.single import END, EPOCH, Single, begin, fetched, leader, vote
from sim import planted
from sim.test_known_bugs import TABLE

Bug = tuple[Callable[[], None], planted.Plant]
BUGS: list[Bug] = []


def against(plant: planted.Plant) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register a scenario together with the bug that it must see."""

    def register(scenario: Callable[[], None]) -> Callable[[], None]:
        BUGS.append((scenario, plant))
        return scenario

    return register


class Notebook:
    """A state machine that writes down what it is given, twice what comes twice."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.lines: list[bytes] = []

    def begin_load(self, snapshot_id: OffsetAndEpoch, timestamp_ms: int) -> None:
        self.lines = []

    def load(self, values: Sequence[bytes]) -> None:
        self.lines += values

    def end_load(self) -> None:
        """The lines are whole."""

    def apply(self, entry: CommittedBatch) -> int:
        if b"unreadable" in entry.values:
            raise QuorateError(f"offset {entry.base_offset}: cannot be read")
        self.lines += entry.values
        return len(entry.values)

    def freeze(self) -> Iterable[bytes] | None:
        return list(self.lines)

    def lead(self, epoch: int, now: Now) -> None:
        """Writes nothing of its own."""

    def follow(self, leader_id: int, epoch: int) -> None:
        """Nothing to give up."""

    def poll(self, now: Now, control: ControlState) -> Sequence[Sequence[bytes]]:
        return ()

    def wake_at_ms(self) -> int | None:
        return None


class OnlyVoter:
    """The only voter, over a disk that a test may cut off at any step; a snapshot when it can."""

    def __init__(self, storage: MemoryStorage) -> None:
        self.storage = storage
        self.machine = Notebook()
        voters = (voter(1, known=False),)
        config = RaftConfig(
            CLUSTER_ID, 1, directory(1), listeners=listeners(1), static_voters=voters
        )
        policy = SnapshotPolicy(max_bytes=200)
        self.replica = Replica(config, storage.open(), self.machine, lambda: 0.5, policy)
        self.disk = DiskWriter(storage)
        self.committed: list[int] = []
        self.faulted: str | None = None
        self.run()

    def run(self, *happened: inputs.Event | Submit) -> None:
        """Step until nothing is left to do."""
        waiting: list[inputs.Event | Submit | Result] = list(happened)
        for _ in range(1000):
            effects = self.replica.step(waiting, Now(1, 1))
            waiting = [*self._perform(effects.jobs)]
            self.committed += [o.token for o in effects.outcomes if isinstance(o, Committed)]
            self.faulted = effects.faulted
            if self.faulted or (not waiting and effects.wake_at_ms != 1):
                return
        raise AssertionError("never comes to rest")

    def _perform(self, jobs: list[Job]) -> list[Result]:
        own = [job for job in jobs if isinstance(job, WriteSnapshot)]
        results = self.disk.perform([job for job in jobs if not isinstance(job, WriteSnapshot)])
        return results + [write_snapshot(self.storage, job) for job in own]

    @property
    def snapshots(self) -> list[OffsetAndEpoch]:
        return [info.id for info in self.storage.snapshots()]


def line(number: int) -> bytes:
    return b"line %03d " % number + bytes(60)


# -- snapshots -------------------------------------------------------------------------------------
@against(planted.go_on_after_a_record_that_cannot_be_applied)
def no_snapshot_after_a_record_that_could_not_be_applied() -> None:
    """KAFKA-14203: a broker logged the error and went on; its next snapshot lacked the record,
    and the log that still had it was cleaned away. The replica must stop, before any snapshot."""
    node = OnlyVoter(MemoryStorage())
    node.run(*[Submit(i, [line(i)]) for i in range(3)])
    before = node.snapshots
    with pytest.raises(QuorateError, match="cannot be read"):
        node.run(Submit(3, [b"unreadable"]), Submit(4, [line(4)] * 3))
    assert node.snapshots == before
    with pytest.raises(QuorateError, match="cannot be read"):
        OnlyVoter(node.storage.crash())


def machine() -> MetadataMachine:
    return MetadataMachine()


def feed(node: MetadataMachine, offset: int, *records: object) -> int:
    """Apply these records as one committed batch; the next offset."""
    values = [encode_record(record, 0) for record in records]  # type: ignore[arg-type]
    node.apply(CommittedBatch(offset, offset + len(values) - 1, 1, 1, values))
    return offset + len(values)


@against(planted.snapshot_inside_a_transaction)
def no_snapshot_inside_a_transaction() -> None:
    """KAFKA-14203, as our list has it: a snapshot of half a transaction, whose other half is then
    all that the log has. There must be none before the transaction has ended."""
    node = machine()
    end = feed(node, 0, FeatureLevelRecord(name="metadata.version", feature_level=30))
    assert node.freeze() is not None
    end = feed(node, end, BeginTransactionRecord(name="half"), NoOpRecord())
    assert node.freeze() is None
    feed(node, end, EndTransactionRecord())
    assert node.freeze() is not None


@against(planted.snapshot_inside_a_batch)
def no_snapshot_inside_a_batch() -> None:
    """KAFKA-17713: a snapshot ended inside a batch; a node that loaded it got that whole batch,
    and refused it each time. A snapshot must end at the boundary of a committed batch."""
    single = leader(slow=False)
    epoch = single.core.epoch
    start = single.core.log_end.offset
    single.step(inputs.Propose(0, epoch, 3, 100, b"three records"))
    whole = OffsetAndEpoch(start + 3, epoch)
    assert "above the high watermark" in str(single.core.snapshot_problem(whole))
    acknowledge = FetchRequest(CLUSTER_ID, key(2), epoch, start + 3, epoch, 0, 100, -1)
    single.ask(acknowledge)
    assert single.core.high_watermark == start + 3
    for inside in (start + 1, start + 2):
        problem = single.core.snapshot_problem(OffsetAndEpoch(inside, epoch))
        assert problem == "it is inside a batch"
    assert single.core.snapshot_problem(whole) is None


@against(planted.lose_the_applied_index)
def a_crash_between_applying_and_persisting_applies_nothing_twice() -> None:
    """etcd 13766: state and applied index were not stored as one; after a crash between the two
    entries were applied again, or never. Here a crash at any step of the disk: every line must be
    there once, in order, and every acknowledged one at all."""
    steps = 0
    while _crashed_at(steps):
        steps += 1
    assert steps > 50


def _crashed_at(step: int) -> bool:
    """Write lines, cut the power at this step of the disk, look; False: it was over before."""
    random = Random(step)
    storage = MemoryStorage()
    node = OnlyVoter(storage)
    count = 0

    def watch(fault_event: str, name: str) -> None:
        nonlocal count
        count += 1
        if count > step:
            raise StorageError("the power is cut")

    storage.disk.watch = watch
    with suppress(StorageError):  # from a snapshot; the owner of the disk hears of the others
        for number in range(12):
            node.run(Submit(number, [line(number)]))
    acknowledged = len(node.committed)
    again = OnlyVoter(storage.crash(random.random))
    assert again.machine.lines == [line(i) for i in range(len(again.machine.lines))]
    assert len(again.machine.lines) >= acknowledged
    return count > step


# -- observers and voters --------------------------------------------------------------------------
@against(planted.never_rest_after_the_fetch_timeout)
def an_observer_of_a_silent_leader_backs_off() -> None:
    """KAFKA-19605: the fetch timer of an observer, once over, was waited for again and again with
    no time in between. It must sleep from one request to the next: stepped whenever it asks to be,
    it asks one peer at a time and takes few steps a second, however long no node answers."""
    single = Single(4, bootstrap_servers=(("seed", 1), ("seed", 2)))
    single.ask(begin())
    before, steps = len(single.sends), 0
    while single.now < 60_000:
        wake = single.core.step([], single.now).wake_at_ms
        assert wake is not None, "it must ask on"
        single.wait(wake - single.now)
        steps += 1
    asked = [send.to for send in single.sends[before:]]
    assert set(asked) == {2, -3}
    assert len(asked) <= 60_000 // single.config.request_timeout_ms + 1
    assert steps <= 2 * len(asked)


@against(planted.add_voters_without_address)
def voters_that_were_added_are_described_with_their_endpoints() -> None:
    """KAFKA-17604: DescribeQuorum had no endpoints of voters that were added. It must report them
    from the moment that the new voter set rules."""
    single = committed()
    single.ask(add())
    versions(single)
    described = single.core.describe(single.now)
    assert described is not None
    assert described.nodes == (*SET, voter(4))


# -- votes and records -----------------------------------------------------------------------------
@against(planted.write_votes_without_directory)
def a_vote_is_stored_with_the_directory_of_the_candidate() -> None:
    """KAFKA-16526: quorum-state of version 0 has no place for the directory id; of version 1 it
    must be read back, so that the same node on another disk gets no second vote."""
    for version, other_disk in ((1, False), (0, True)):
        storage = MemoryStorage()
        storage.open()
        storage.save_election(ElectionState(EPOCH, -1, key(2)), version, (1, 2, 3))
        election = storage.crash().open().election
        assert election is not None and election.voted is not None
        stored = directory(2) if version else ZERO_UUID
        assert election.voted == (2, stored)
        single = Single(1, election=election)
        first = single.ask(vote(EPOCH, candidate=2, disk=1))
        assert isinstance(first, VoteResponse) and first.granted is other_disk
        second = single.ask(vote(EPOCH, candidate=2))
        assert isinstance(second, VoteResponse) and second.granted


@against(planted.take_batches_of_any_epoch)
def batches_above_the_epoch_of_the_fetch_are_left() -> None:
    """KAFKA-18723: between the check of a Fetch and the reading of its records the leader had lost
    its epoch, so that the answer held batches of a later one: a follower appended them in an epoch
    of which it knew nothing. It must append the batches up to its own epoch and drop the others."""
    single = fetched()
    batches = tuple(Batch(END + i, END + i, EPOCH + i, 10, (), b"x") for i in range(2))
    answer = FetchResponse(0, LeaderAndEpoch(2, EPOCH), 0, batches=batches)  # type: ignore[arg-type]
    ready = single.answer(FetchRequest, answer)
    assert ready.faulted is None
    assert single.core.log_end == (END + 1, EPOCH)
    assert any("skipped" in note for note in ready.notes)


# -- controllers -----------------------------------------------------------------------------------
@against(planted.write_the_bootstrap_records_once)
def bootstrap_records_that_were_lost_are_written_again() -> None:
    """KAFKA-20839: a controller wrote the bootstrap records, lost its leadership before they were
    committed, led again and took the log for one that has them: metadata.version stayed at the
    minimum. Only committed records must decide."""
    node = machine()

    def activate() -> list[Message]:
        context = Context(
            ControllerConfig(1, "world"), ControlState(0, ()), 0, Random(1), Liveness(9_000)
        )
        result = activation.ACTIVATION.decide(node.head, activation.Bootstrap(), context)
        assert isinstance(result, activation.Result)  # type: ignore[attr-defined]
        return list(result.records)

    for epoch in (1, 3):
        node.lead(epoch, Now(0, 0))
        first = activate()
        assert [r.feature_level for r in first if isinstance(r, FeatureLevelRecord)] == [30]
        node.head.apply(first, [encode_record(record, 0) for record in first])
        node.follow(2, epoch + 1)
    feed(node, 0, *first)
    node.lead(5, Now(0, 0))
    assert not any(isinstance(record, FeatureLevelRecord) for record in activate())


@against(planted.go_back_to_the_last_batch)
def the_active_controller_is_removed_and_lives() -> None:
    """KAFKA-17608: the removal of the active controller is a control batch; giving up, it went
    back to that offset, had kept no state of it and crashed. It must become an observer with the
    same image as the others, and another controller goes on."""
    world = World()
    first = world.run_until(lambda: world.active)
    world.run(3000)
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature="kraft.version", max_version_level=1, upgrade_type=1
    )
    answer = world.ask(first.node_id, UpdateFeaturesRequest(feature_updates=[update]))
    assert answer.error_code == 0
    world.run_until(lambda: all(node.core.voters.kraft_version == 1 for node in world.alive))
    world.run(700)
    request = RemoveRaftVoterRequest(
        cluster_id="world",
        voter_id=first.node_id,
        voter_directory_id=first.config.directory_id,
    )
    answer = world.ask(first.node_id, request)
    assert (answer.error_code, answer.error_message) == (0, None)
    world.run_until(lambda: world.active and world.active is not first)
    world.run(3000)
    assert first.faulted is None and not first.core.is_voter
    assert len(world.leader.core.voters.voters) == 2
    assert len({node.core.high_watermark for node in world.alive}) == 1
    assert first.image == world.leader.image


# -- both ways -------------------------------------------------------------------------------------
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug[0].__name__)
def test_scenario(bug: Bug) -> None:
    bug[0]()


@pytest.mark.interpreted
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug[1].__name__)
def test_the_bug_itself_is_seen(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario, plant = bug
    plant(monkeypatch)
    with pytest.raises((AssertionError, QuorateError, pytest.fail.Exception)):
        scenario()


def test_the_table_has_every_scenario() -> None:
    table = TABLE.read_text()
    assert all(f"`{scenario.__name__}`" in table for scenario, _ in BUGS)
