"""The reference model of a replica: what it has written, and what its disk would return."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from quorate.base.ids import ReplicaKey
from quorate.raft.ready import Clean, InstallSnapshot, SaveElection, Truncate
from quorate.raft.values import ElectionState, RecoveredLog, Voter
from quorate.replica.disk_jobs import AppendBatches, Job, Write
from quorate.sim.checks.history import UNCOMMITTED, ClusterHistory, LoggedBatch
from quorate.sim.checks.messages import election_words
from quorate.sim.checks.received_requests import ReceivedRequests
from quorate.sim.checks.voters import check_made
from quorate.sim.world.observable import SimulatedNode
from quorate.sim.world.observer import ViolationError
from quorate.storage.api import AppendedBatch

UNKNOWN = -1


class ReplicaModel:
    """One node: its log as a path in the ClusterHistory, derived from the jobs that it gives its
    disk."""

    def __init__(self, process: SimulatedNode, history: ClusterHistory, bit: int) -> None:
        self.history = history
        self.id = process.id
        self.key = ReplicaKey(process.id, process.directory_id)
        self.disk_bit = bit
        """The bit of this disk in `LoggedBatch.durable_disks`."""
        self.incarnation = process.incarnation
        self.restored = False
        """Its disk was replaced by an older copy, and the node has not started since."""
        self.votes_forgotten_to = -1
        """The restored disk may lack votes of epochs up to this one, so the node may vote a second
        time. The world guarantees that no such vote decides an election."""
        self.tip = history.root
        """The last batch of its log."""
        self.log_start = 0
        """Start offset of the log when its index was last checked; UNKNOWN when a new check is due.
        """
        self.durable_tip = history.root
        """The last batch that its disk would return."""
        self.vote = ElectionState()
        """The election state that its disk would return."""
        self.vote_version = 0
        """The kraft.version at which that state was written."""
        self.pending_elections: deque[tuple[ElectionState, int]] = deque()
        """Election states submitted to the disk and not known to be durable, each with its
        kraft.version."""
        self.installing: LoggedBatch | None = None
        """While a snapshot replaces the log: the last batch of the durable log that must survive.
        """
        self.installing_epoch = 0
        """The epoch in which the replica submitted that install."""
        self.pending_writes: deque[tuple[int, LoggedBatch | None, ElectionState | None]] = deque()
        """(seq, log end after it, election) of the writes that are in progress."""
        self.unpublished: list[LoggedBatch] = []
        """Batches appended as a leader whose election is not durable: no other replica may know
        them."""
        self.new_voter_changes: list[LoggedBatch] = []
        """Voter changes appended in this step."""
        self.new_voter_batches: list[LoggedBatch] = []
        """Batches with a Voters record that it appended in this step as the leader."""
        self.newly_appended: list[LoggedBatch] = []
        """Batches that it appended to its log in this step."""
        self.was_leader = False
        """Whether it was the leader at the end of its last step."""
        self.high_watermark = -1
        self.committed_tip = history.root
        """The batch that ends at the high watermark."""
        self.uncommitted: deque[LoggedBatch] = deque()
        """The batches of the log beyond the high watermark, in order."""
        self.initial_voters: tuple[Voter, ...] = ()
        """The voter set while the log has no Voters record: static, or from the bootstrap snapshot.
        """
        self.initial_kraft_version = 0
        """The kraft.version while the log has no record of it: from the bootstrap snapshot."""
        self.election = self.vote
        """The election state in the replica's memory."""
        self.received = ReceivedRequests()
        self.eligibility_batch: LoggedBatch | None = history.root
        """At the last eligibility check: the batch with the newest voter set; `root` before the
        first check."""
        self.eligibility_uncommitted = False
        """Whether that batch was not known to be committed."""
        self.leader_known_until_ms = 0
        """Until when it leads or follows a leader that it has fetched from, as of its last step: ms
        of its own clock."""
        self.machine_epoch: int | None = None
        """The epoch in which its state machine is the leader; None otherwise."""

    def __str__(self) -> str:
        return f"node {self.id} (incarnation {self.incarnation})"

    @property
    def voters(self) -> tuple[Voter, ...]:
        """The voter set in force for this replica's log."""
        voters = self.tip.voters
        return self.initial_voters if voters is None else voters

    @property
    def kraft_version(self) -> int:
        """The kraft.version in force for this replica's log. It never decreases."""
        return max(self.initial_kraft_version, self.tip.kraft_version)

    @property
    def newest_election(self) -> ElectionState:
        """The election state most recently submitted to its disk."""
        return self.pending_elections[-1][0] if self.pending_elections else self.vote

    @property
    def _epoch(self) -> int:
        """The epoch in which the replica removes log entries now. It may not know what a later
        epoch committed."""
        return self.newest_election.epoch if self.installing is None else self.installing_epoch

    # -- recovery -------------------------------------------------------------------------------
    def start(self, tip: LoggedBatch, vote: ElectionState, log: RecoveredLog) -> None:
        """Start from the recovered state, all of which is durable (`recovery`).

        The high watermark is the newest snapshot's end: it has committed records only.
        """
        self.forget_writes()
        self.vote = self.election = vote
        self.tip = tip
        self.log_start = log.start_offset
        self.set_durable_tip(tip)
        self.restored = False
        newest = log.snapshots[-1].offset if log.snapshots else 0
        self.high_watermark = newest if newest > 0 else -1
        self.uncommitted.clear()
        at = self.tip
        while at.end > newest and at.parent is not None:
            self.uncommitted.appendleft(at)
            at = at.parent
        self.committed_tip = at
        self.machine_epoch = None
        self.leader_known_until_ms, self.was_leader = 0, False
        self.eligibility_batch = self.history.root
        self.new_voter_batches.clear()
        self.newly_appended.clear()

    def forget_writes(self) -> None:
        self.installing = None
        self.pending_writes.clear()
        self.pending_elections.clear()
        self.unpublished.clear()

    # -- the log ------------------------------------------------------------------------------
    def jobs_submitted(self, jobs: Iterable[Job]) -> None:
        """Apply the jobs that the replica submits to its disk. They count as its log from now on."""
        for job in jobs:
            if isinstance(job, Write):
                self._write(job)

    def _write(self, job: Write) -> None:
        tip, election = None, None
        for write in job.writes:
            kind = write.__class__
            if kind is AppendBatches:
                for batch in write.batches:  # type: ignore[union-attr]
                    self._append(batch)
                tip = self.tip
            elif kind is SaveElection:
                election = write.state  # type: ignore[union-attr]
                self._save(election, write.kraft_version)  # type: ignore[union-attr]
            elif kind is Truncate:
                self._truncate(write.end_offset)  # type: ignore[union-attr]
                tip = self.tip
            elif kind is InstallSnapshot:
                self.installing = self._common(write.snapshot_id.offset)  # type: ignore[union-attr]
                self.installing_epoch = self.newest_election.epoch
            elif kind is Clean:
                self.committed_snapshot(write.snapshot_id)  # type: ignore[union-attr]
        self.pending_writes.append((job.seq, tip, election))

    def _save(self, election: ElectionState, kraft_version: int) -> None:
        """quorum-state has the version of the kraft.version in force.

        An older version loses the directory id of the vote (KAFKA-16526). Older software refuses a
        newer one.
        """
        if kraft_version != self.kraft_version:
            raise ViolationError(
                "quorum-state version",
                f"{self} saves {election_words(election)} at kraft.version {kraft_version}; in "
                f"force is {self.kraft_version}",
            )
        self.pending_elections.append((election, kraft_version))

    def _append(self, batch: AppendedBatch) -> None:
        tip = self.tip
        if batch.epoch > tip.epoch and batch.epoch > self.newest_election.epoch:
            raise ViolationError(
                "durable before sent",
                f"{self} writes a batch of epoch {batch.epoch} before that epoch: the election "
                f"submitted to its disk is {election_words(self.newest_election)}",
            )
        entry = self.history.find(tip, batch, self)
        if entry is None:
            entry = self._make(tip, batch)
        self.tip = entry
        self.uncommitted.append(entry)
        self.newly_appended.append(entry)

    def _make(self, parent: LoggedBatch, batch: AppendedBatch) -> LoggedBatch:
        """Add a batch that is not in the tree. Only the leader of its epoch may create it."""
        base, epoch = batch.base_offset, batch.epoch
        if base != parent.end or epoch < parent.epoch:
            raise ViolationError(
                "log matching", f"{self}: {base} of epoch {epoch} follows {parent}"
            )
        entry = LoggedBatch(parent, base, batch.last_offset + 1, epoch, batch.data)
        leadership = self.history.leaderships.get(epoch)
        if leadership is None:
            self.unpublished.append(entry)
        elif leadership.node_id != self.id or leadership.incarnation != self.incarnation:
            raise ViolationError(
                "only the leader acts",
                f"{self} makes {entry}; the leader of that epoch is node {leadership.node_id} "
                f"(incarnation {leadership.incarnation})",
            )
        else:
            self.history.add(entry, self)
        votes = self.history.granted_votes
        if check_made(self, self.id, self.initial_voters, votes, entry):
            self.new_voter_changes.append(entry)
        if entry.voters_entry is entry:
            self.new_voter_batches.append(entry)
        return entry

    def _truncate(self, end: int) -> None:
        """Truncate to `end`. A committed batch must stay.

        A follower truncates what its leader lacks. A leader of a later epoch may have committed
        such a batch with the help of other replicas; the follower cannot know that.
        """
        tip = self.tip
        while tip.end > end and tip.parent is not None:
            if tip.committed_epoch <= self._epoch:
                raise ViolationError(
                    "committed prefix", f"{self} truncates {tip}, which is committed"
                )
            if self.uncommitted:
                self.uncommitted.pop()
            if self.newly_appended:
                self.newly_appended.pop()
            tip = tip.parent
        if tip.end != end:
            raise ViolationError(
                "log matching", f"{self} truncates its log at {end}, inside a batch"
            )
        self.tip = tip
        self._shrink(tip)

    def _shrink(self, tip: LoggedBatch) -> None:
        """Remove what is beyond `tip` from this log, although the disk may still hold it."""
        if self.durable_tip.end > tip.end:
            self.set_durable_tip(tip)
        self.pending_writes = deque(
            (seq, tip if end is not None and end.end > tip.end else end, election)
            for seq, end, election in self.pending_writes
        )

    def _common(self, snapshot_offset: int) -> LoggedBatch:
        """The last durable batch that is also in the log before a committed snapshot."""
        at = self.durable_tip
        while at.parent is not None:
            if at.committed_epoch != UNCOMMITTED and at.end <= snapshot_offset:
                break
            at = at.parent
        return at

    def committed_snapshot(self, snapshot_id: tuple[int, int]) -> LoggedBatch:
        """The batch at which a snapshot with this id ends; it must be committed (KIP-630)."""
        offset, epoch = snapshot_id
        entry = self.history.committed_at.get(offset)
        if entry is None or entry.epoch != epoch:
            raise ViolationError(
                "snapshot of what is committed",
                f"{self}: snapshot {(offset, epoch)}, committed there is {entry or 'nothing'}",
            )
        return entry

    def installed(self, snapshot_id: tuple[int, int]) -> None:
        """Replace the log by a snapshot. The log starts at its end, and all of it is durable."""
        entry = self.committed_snapshot(snapshot_id)
        self.tip = self.committed_tip = entry
        self.uncommitted.clear()
        self.set_durable_tip(entry)
        self.installing = None

    # -- the disk -----------------------------------------------------------------------------
    def writes_persisted(self, seq: int) -> list[ElectionState]:
        """The writes up to `seq` are durable. Returns the election states among them, in order."""
        writes, saved = self.pending_writes, []
        tip = None
        while writes and writes[0][0] <= seq:
            _, end, election = writes.popleft()
            if end is not None:
                tip = end
            if election is not None:
                while True:
                    state, self.vote_version = self.pending_elections.popleft()
                    saved.append(state)
                    if state is election:
                        break
        if tip is not None:
            self.set_durable_tip(tip)
        if saved:
            self.vote = saved[-1]
        return saved

    def set_durable_tip(self, tip: LoggedBatch) -> None:
        """The disk durably holds the log up to `tip`, and nothing beyond it."""
        bit = self.disk_bit
        at = tip
        while not at.durable_disks & bit:
            at.durable_disks |= bit
            at = at.parent  # type: ignore[assignment]
        gone = self.durable_tip
        while gone is not at:
            if gone.committed_epoch <= self._epoch and not self.restored:
                raise ViolationError(
                    "committed prefix", f"{self}: {gone} is committed and was dropped"
                )
            gone.durable_disks &= ~bit
            gone = gone.parent  # type: ignore[assignment]
        self.durable_tip = tip
