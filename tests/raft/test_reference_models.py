"""The optimized parts against simple reference models, on random input."""

from __future__ import annotations

from itertools import accumulate, combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from conformance.marker import kafka_scenario
from quorate.base.errors import InvariantError
from quorate.base.ids import Address, OffsetAndEpoch, ReplicaKey
from quorate.raft.durable import DurabilityTracker
from quorate.raft.history import ControlHistory, LogHistory
from quorate.raft.log_index import Diverging, LogIndex, NeedsSnapshot
from quorate.raft.progress import ProgressTracker
from quorate.raft.requests import RequestManager
from quorate.raft.roles import LEGAL_TRANSITIONS, Ballot, Role
from quorate.raft.values import ControlState, KRaftVersion, RaftLimits, RecoveredLog, Voter, Voters
from quorate.raft.voters import VoterSet, matches
from quorate.sim.scenario.names import key, listeners, voter
from raft.single import fetch, recovered
from time_budget import examples

KEYS = st.builds(key, st.integers(1, 5), st.integers(0, 1))
VOTERS = st.builds(Voter, KEYS, st.just(listeners(1)), st.just(0), st.integers(0, 2))
SETS = st.builds(VoterSet, st.lists(VOTERS, min_size=1, max_size=5))


# -- voter sets ----------------------------------------------------------------------------------
def majorities(voters: VoterSet) -> list[set[ReplicaKey]]:
    keys = voters.keys
    sizes = range(len(keys) // 2 + 1, len(keys) + 1)
    return [set(some) for size in sizes for some in combinations(keys, size)]


@given(SETS, SETS)
def test_sets_that_overlap_share_a_voter_in_every_two_majorities(one: VoterSet, two: VoterSet):
    if one.overlaps(two):
        assert all(a & b for a in majorities(one) for b in majorities(two))


@given(SETS, VOTERS)
def test_single_changes_overlap(voters: VoterSet, other: Voter):
    added, removed = voters.add(other), voters.remove(other.key)
    assert (added is None) == (other.key.id in voters.ids)
    assert (removed is None) == (other.key not in voters.keys or len(voters) == 1)
    for changed in (added, removed):
        assert changed is None or (voters.overlaps(changed) and changed.overlaps(voters))
    if added is not None:
        assert added.remove(other.key) == voters


@given(SETS, KEYS)
def test_is_voter(voters: VoterSet, asked: ReplicaKey):
    assert voters.is_voter(asked) == any(matches(v.key, asked) for v in voters.voters)
    assert voters.is_only_voter(asked) == (len(voters) == 1 and voters.is_voter(asked))


@kafka_scenario(
    "VoterSetTest", "voterNodeIsVoterWithDirectoryId", "voterNodeIsVoterWithoutDirectoryId"
)
@pytest.mark.parametrize(
    ("entry", "asked", "same"),
    [
        (key(1), key(1), True),
        (key(1), key(1, 1), False),
        (key(1), ReplicaKey(1), False),
        (ReplicaKey(1), key(1), True),
        (ReplicaKey(1), ReplicaKey(1), True),
        (ReplicaKey(1), key(2), False),
    ],
)
def test_replica_keys_that_match_a_voter(entry: ReplicaKey, asked: ReplicaKey, same: bool):
    assert matches(entry, asked) is same


def test_updates_of_a_voter():
    voters = VoterSet([voter(1), voter(2)])
    moved = Voter(key(2), listeners(9), 0, 1)
    assert voters.needs_update(moved) and not voters.needs_update(voter(2))
    assert voters.update(moved) == VoterSet([voter(1), moved])
    assert voters.update(Voter(key(2, 1), listeners(9))) is None
    assert voters.update_ignoring_directory(Voter(key(3), listeners(3))) is None
    assert voters.supports(1) and not voters.supports(2)
    twice = (*listeners(2), *listeners(3))
    one, two = Voter(key(2), twice), Voter(key(2), twice[::-1])
    assert VoterSet([one]) == VoterSet([two])


@given(st.lists(st.integers(-1, 20), min_size=1, max_size=7), st.booleans())
def test_the_majority_end_is_held_by_a_majority(ends: list[int], leads: bool):
    """The model asks, for every offset, how many hold it."""
    voters = VoterSet(voter(i) for i in range(1, len(ends) + 1))
    progress = ProgressTracker(key(1) if leads else key(9), voters)
    for i, end in enumerate(ends):
        progress.voters[i + 1].end_offset = end
    held = [o for o in range(-1, 21) if sum(end >= o for end in ends) >= len(ends) // 2 + 1]
    assert progress.majority_end() == max(held)


@given(st.lists(st.tuples(st.integers(1, 5), st.booleans()), max_size=12), st.integers(1, 5))
def test_a_ballot_counts_the_last_answer_of_each_voter(votes: list[tuple[int, bool]], size: int):
    ballot = Ballot(VoterSet(voter(i) for i in range(1, size + 1)))
    for node_id, granted in votes:
        ballot.record(node_id, granted)
    last = {node_id: granted for node_id, granted in votes if node_id <= size}
    yes, no = sum(last.values()), sum(not granted for granted in last.values())
    assert ballot.won == (yes > size / 2)
    assert ballot.lost == (size - no <= size / 2)
    assert [k.id for k in ballot.open] == [i for i in range(1, size + 1) if i not in last]


@given(SETS, SETS, st.lists(KEYS, max_size=6))
def test_no_row_is_lost_when_the_voters_change(
    one: VoterSet, two: VoterSet, seen: list[ReplicaKey]
):
    progress = ProgressTracker(key(1), one)
    for replica in seen:
        progress.row(replica, 0).end_offset = 7
    known = {row.key for row in [*progress.voters.values(), *progress.observers.values()]}
    progress.set_voters(two)
    rows = [*progress.voters.values(), *progress.observers.values()]
    assert {row.key for row in rows} == known | set(two.keys)
    assert len(rows) == len({row.key for row in rows})
    assert {row.key for row in progress.voters.values()} == set(two.keys)
    assert progress.own in rows


def crowded(most: int, fetched_at: int) -> ProgressTracker:
    """As many observers as there may be, all of which fetched at that time."""
    progress = ProgressTracker(key(1), VoterSet([voter(1)]), RaftLimits(max_observers=most))
    for i in range(most):
        progress.row(key(i + 10), fetched_at).last_fetch_ms = fetched_at
    assert len(progress.observers) == most
    return progress


def test_an_observer_beyond_the_limit_replaces_no_other():
    progress = crowded(20, fetched_at=1_000)
    before = dict(progress.observers)
    for i in range(100, 140):
        assert progress.row(key(i), 2_000 + i).key == key(i)
    assert progress.observers == before


def test_silent_observers_make_room():
    progress = crowded(20, fetched_at=1_000)
    now = 1_000 + RaftLimits().observer_session_ms
    row = progress.row(key(100), now)
    assert progress.row(key(100), now) is row
    assert set(progress.observers) == {key(100)}


# -- history -------------------------------------------------------------------------------------
class HistoryModel(RuleBasedStateMachine):
    """A LogHistory beside a dict of everything ever added."""

    @initialize()
    def begin(self) -> None:
        self.history: LogHistory[int] = LogHistory()
        self.model: dict[int, int] = {}
        self.end = -2

    @rule(gap=st.integers(1, 4), value=st.integers())
    def add(self, gap: int, value: int) -> None:
        self.end += gap
        self.history.add(self.end, value)
        self.model[self.end] = value

    @rule(end=st.integers(-2, 30))
    def truncate(self, end: int) -> None:
        changed = self.history.truncate(end)
        assert changed == any(offset >= end for offset in self.model)
        self.model = {offset: v for offset, v in self.model.items() if offset < end}
        self.end = max(self.model, default=-2)

    @rule(start=st.integers(-2, 30))
    def compact(self, start: int) -> None:
        self.history.compact(start)
        rules = max((offset for offset in self.model if offset <= start), default=-2)
        self.model = {offset: v for offset, v in self.model.items() if offset >= rules}

    @precondition(lambda self: self.model)
    @rule()
    def refuses_what_is_not_new(self) -> None:
        with pytest.raises(InvariantError):
            self.history.add(self.end, 0)

    @invariant()
    def the_same(self) -> None:
        if not hasattr(self, "model"):
            return
        last = max(self.model, default=None)
        assert self.history.last() == (None if last is None else (last, self.model[last]))
        for offset in range(-2, 32):
            before = [o for o in self.model if o <= offset]
            assert self.history.at(offset) == (self.model[max(before)] if before else None)


TestHistoryModel = HistoryModel.TestCase
TestHistoryModel.settings = settings(
    max_examples=examples(40), stateful_step_count=20, deadline=None
)


def test_controls_take_the_newest_source():
    static = VoterSet([voter(9, known=False)])
    snapshot = ControlState(1, (voter(1),))
    empty = RecoveredLog(0, 0, (), (), None, ())
    assert ControlHistory(static, empty).voters == static
    log = recovered(snapshot_control=snapshot)
    assert ControlHistory(static, log).voters == VoterSet([voter(1)])
    log = recovered(snapshot_control=snapshot, control_records=((3, Voters((voter(2),))),))
    controls = ControlHistory(static, log)
    assert (controls.version, controls.voters_offset) == (1, 3)
    assert controls.at(3).voters == (voter(1),) and controls.at(4).voters == (voter(2),)
    assert controls.truncate(3) and controls.voters == VoterSet([voter(1)])
    assert not controls.truncate(3)
    assert controls.apply(5, KRaftVersion(2)) and controls.version == 2


# -- the log index -------------------------------------------------------------------------------
class LogModel(RuleBasedStateMachine):
    """A LogIndex beside a list with the epoch of every record."""

    @initialize(
        window=st.sampled_from([1, 2, 8, 65_536]),
        lengths=st.lists(st.integers(1, 3), max_size=6),
        announced=st.integers(0, 6),
    )
    def begin(self, window: int, lengths: list[int], announced: int) -> None:
        """Of the recovered log of these batches, all of epoch 1, the last `announced` ends are known."""
        ends = list(accumulate(lengths))
        known = ends[len(ends) - min(announced, len(ends)) :]
        end = sum(lengths)
        epochs = ((1, 0),) if ends else ()
        self.log = LogIndex(RecoveredLog(0, end, epochs, (), None, (), tuple(known)), window)
        self.epochs = [1] * end
        self.borders = [0, *ends]
        self.window = window
        self.known_from = known[-window:][0] if known else end
        """From this border on all must be known; what was before may have been forgotten."""
        self.start = 0
        self.base_epoch = 0

    @property
    def end(self) -> int:
        return len(self.epochs)

    @property
    def last_epoch(self) -> int:
        return self.epochs[-1] if self.end > self.start else self.base_epoch

    @rule(count=st.integers(1, 4), rise=st.sampled_from([0, 0, 1, 2]))
    def append(self, count: int, rise: int) -> None:
        epoch = max(self.last_epoch, 1) + rise
        self.log.append(self.end, self.end + count, epoch)
        self.epochs += [epoch] * count
        self.borders.append(self.end)
        self.known_from = max(self.known_from, self.borders[-self.window :][0])

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        cut = data.draw(st.sampled_from([b for b in self.borders if b >= self.start]))
        newest = self.log.newest_snapshot
        if newest is None or cut >= newest.offset:
            self.log.truncate(cut)
            del self.epochs[cut:]
            self.borders = [b for b in self.borders if b <= cut]
            self.known_from = min(self.known_from, cut)

    @rule(data=st.data())
    def snapshot(self, data: st.DataObject) -> None:
        offset = data.draw(st.sampled_from([b for b in self.borders if b >= self.start]))
        if offset > self.start:
            snapshot_id = OffsetAndEpoch(offset, self.epochs[offset - 1])
            if snapshot_id not in self.log.snapshots:
                self.log.add_snapshot(snapshot_id)

    @precondition(lambda self: self.log.snapshots)
    @rule()
    def clean(self) -> None:
        newest = self.log.snapshots[-1]
        if newest.offset > self.start:
            self.log.clean(newest)
            self.start, self.base_epoch = newest
            self.borders = [b for b in self.borders if b >= self.start]
            self.known_from = max(self.known_from, self.start)

    @rule(gap=st.integers(1, 9), rise=st.integers(0, 2))
    def install(self, gap: int, rise: int) -> None:
        snapshot_id = OffsetAndEpoch(self.end + gap, max(self.last_epoch, 1) + rise)
        self.log.install(snapshot_id)
        self.start, self.base_epoch = snapshot_id
        self.epochs = [self.base_epoch] * self.start
        self.borders = [self.start]
        self.known_from = self.start

    def known(self) -> list[tuple[int, int]]:
        """(end offset, epoch) of each epoch in the log, with the one before its start."""
        found = {}
        for offset in range(self.start, self.end):
            found[self.epochs[offset]] = offset + 1
        return sorted((end, epoch) for epoch, end in found.items())

    @invariant()
    def the_same(self) -> None:
        if not hasattr(self, "epochs"):
            return
        assert (self.log.start_offset, self.log.end_offset) == (self.start, self.end)
        assert self.log.last_epoch == self.last_epoch
        for offset in range(self.start, self.end + 1):
            is_border, is_long_ago = offset in self.borders, offset < self.known_from
            assert self.log.is_border(offset) == is_border or (is_long_ago and not is_border)
            below = max(border for border in self.borders if border <= offset)
            found = self.log.border_at_or_before(offset)
            assert found == below or (is_long_ago and found == offset)

    @invariant()
    def places(self) -> None:
        """A place is valid when it is one; what diverges gets a place that is common or before."""
        if not hasattr(self, "epochs"):
            return
        for offset in range(self.end + 2):
            for epoch in range(self.last_epoch + 2):
                self.check_place(offset, epoch)

    def check_place(self, offset: int, epoch: int) -> None:
        place = self.log.validate(offset, epoch)
        inside = self.start <= offset <= self.end
        before = self.base_epoch if offset == self.start else 0
        if inside and offset > self.start:
            before = self.epochs[offset - 1]
        older = bool(self.log.snapshots) and epoch < self.log.snapshots[0].epoch
        if older and offset > 0:
            assert isinstance(place, NeedsSnapshot), "Kafka's rule, though the log may have it"
        elif inside and epoch == before:
            assert place is None, (offset, epoch, place)
        if place is None and inside and offset not in (0, self.start):
            assert epoch in self.epochs[self.start :] or epoch == self.base_epoch
            ends = [o for o in range(self.start, self.end) if self.epochs[o] == epoch]
            assert not ends or offset <= ends[-1] + 1
        if isinstance(place, NeedsSnapshot):
            assert place.snapshot_id == self.log.snapshots[-1]
        if isinstance(place, Diverging):
            assert place.end.offset <= self.end
            assert place.end.epoch <= self.last_epoch
            assert place.end.epoch != epoch or place.end.offset < offset


TestLogModel = LogModel.TestCase
TestLogModel.settings = settings(max_examples=examples(40), stateful_step_count=15, deadline=None)


@given(st.lists(st.integers(1, 3), min_size=1, max_size=12), st.data())
def test_two_logs_converge_to_their_common_prefix(lengths: list[int], data: st.DataObject):
    """Fetch, diverge, truncate, again: ends where both logs are the same, and goes no lower."""
    common = data.draw(st.integers(0, len(lengths)))
    leader, follower = LogIndex(recovered_empty()), LogIndex(recovered_empty())
    entries: list[tuple[int, int]] = []
    epoch = 1
    for i, length in enumerate(lengths):
        epoch += data.draw(st.integers(0, 1))
        leader.append(leader.end_offset, leader.end_offset + length, epoch)
        if i < common:
            follower.append(follower.end_offset, follower.end_offset + length, epoch)
            entries.append((follower.end_offset, epoch))
    shared = follower.end_offset
    other = max((e for _, e in entries), default=0)
    taken = {e for e, _ in leader.epochs}
    for _ in range(data.draw(st.integers(0, 4))):
        other += data.draw(st.integers(1, 2))
        while other in taken:
            other += 1
        follower.append(follower.end_offset, follower.end_offset + 1, other)
    for _ in range(50):
        place = leader.validate(follower.end_offset, follower.last_epoch)
        if place is None:
            break
        assert isinstance(place, Diverging)
        cut = follower.truncation_offset(place.end)
        assert shared <= cut < follower.end_offset
        follower.truncate(cut)
    assert follower.end_offset == shared


def recovered_empty() -> RecoveredLog:
    return RecoveredLog(0, 0, (), (), None, ())


def test_a_truncation_keeps_the_batch_boundary_at_its_offset():
    log = LogIndex(recovered_empty())
    for base in (0, 3, 6):
        log.append(base, base + 3, 1)
    log.truncate(6)
    log.append(6, 9, 2)
    assert [offset for offset in range(10) if log.is_border(offset)] == [0, 3, 6, 9]
    assert log.border_at_or_before(6) == 6


def test_boundaries_after_a_truncation_are_known_when_earlier_ones_are_not():
    log = LogIndex(RecoveredLog(0, 10, ((1, 0),), (), None, ()))
    log.truncate(4)
    log.append(4, 7, 2)
    assert not log.is_border(5) and log.border_at_or_before(6) == 4


def test_only_a_window_of_batch_boundaries_is_remembered():
    window = 100
    log = LogIndex(recovered_empty(), window)
    count = 2 * window + 10
    for i in range(count):
        log.append(2 * i, 2 * i + 2, 1)
    assert len(log._borders) <= 2 * window
    assert not log.is_border(2 * count - 3) and log.is_border(2 * count - 4)
    assert log.is_border(2), "too long ago to be known"


# -- what is durable -----------------------------------------------------------------------------
class DurableModel(RuleBasedStateMachine):
    """DurabilityTracker beside a disk that does the writes one after the other."""

    @initialize()
    def begin(self) -> None:
        self.durable = DurabilityTracker(0)
        self.log: list[int] = []
        self.disk: list[int] = []
        self.queue: list[tuple[int, list[list[int]]]] = []
        self.now: list[list[int]] = []
        self.counter = 0

    @rule(count=st.integers(1, 3))
    def append(self, count: int) -> None:
        for _ in range(count):
            self.counter += 1
            self.log.append(self.counter)
        self.durable.appended(len(self.log), 0)
        self.now.append(list(self.log))

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        cut = data.draw(st.integers(0, len(self.log)))
        del self.log[cut:]
        self.durable.truncated(cut, 0)
        self.now.append(list(self.log))

    @rule()
    def issue(self) -> None:
        if self.now:
            self.queue.append((self.durable.issue(), self.now))
            self.now = []

    @precondition(lambda self: self.queue)
    @rule(data=st.data())
    def persist(self, data: st.DataObject) -> None:
        count = data.draw(st.integers(1, len(self.queue)))
        done, self.queue = self.queue[:count], self.queue[count:]
        self.disk = done[-1][1][-1]
        self.durable.persisted(done[-1][0], 0)

    @invariant()
    def never_more_than_the_disk_has(self) -> None:
        if not hasattr(self, "disk"):
            return
        same = 0
        while same < min(len(self.disk), len(self.log)) and self.disk[same] == self.log[same]:
            same += 1
        assert self.durable.end_offset <= same
        if not self.queue and not self.now:
            assert self.durable.end_offset == len(self.log)
            assert self.durable.log_is_durable


TestDurableModel = DurableModel.TestCase
TestDurableModel.settings = settings(
    max_examples=examples(60), stateful_step_count=20, deadline=None
)


# -- small things --------------------------------------------------------------------------------
def test_one_request_a_node_with_timeout_and_backoff():
    requests = RequestManager((), 20)
    first = requests.sent(2, Address("h", 2), fetch(), 2000)
    assert not requests.ready(2, 1999) and requests.ready(2, 2000)
    assert requests.timed_out(2, 2000) and requests.any_in_flight(1999)
    second = requests.sent(2, Address("h", 2), fetch(), 4000)
    assert requests.take(first) is None
    assert requests.take(second) is not None
    assert requests.take(second) is None
    requests.fail(2, 100)
    assert requests.backing_off(2, 119) and requests.ready(2, 120)
    assert requests.wake_ms(100) == 120
    requests.reset()
    assert requests.wake_ms(0) is None


def test_the_backoff_doubles_where_a_longest_one_is_configured():
    """From the first failure after a good answer on; a shorter one holds from the first on (KIP-595)."""
    requests = RequestManager((), 20, 100)
    backoffs = [backoff_after_failure(requests) for _ in range(5)]
    requests.succeeded(2)
    assert (*backoffs, backoff_after_failure(requests)) == (20, 40, 80, 100, 100, 20)
    short = RequestManager((), 20, 5)
    assert [backoff_after_failure(short, 500) for _ in range(2)] == [5, 5]


def backoff_after_failure(requests: RequestManager, most_ms: int = 0) -> int:
    requests.fail(2, 0, most_ms)
    return requests.backoff_until[2]


def test_every_role_can_be_left_and_reached():
    roles = set(Role.__args__)
    assert {before for before, _ in LEGAL_TRANSITIONS} == roles
    assert {after for _, after in LEGAL_TRANSITIONS} == roles
    assert all(why for why in LEGAL_TRANSITIONS.values())


def test_a_snapshot_keeps_the_control_state_at_its_end():
    """The record at the snapshot's end offset is not in it: what ruled before must stay known."""
    log = recovered(control_records=((2, Voters((voter(1),))), (4, Voters((voter(2),)))))
    controls = ControlHistory(VoterSet(), log)
    controls.compact(4 - 1)
    assert controls.at(4).voters == (voter(1),)
    assert controls.replaced_voters == (4, VoterSet([voter(1)]))
