"""A replica as the world sees it: what it wrote, and what of that its disk would give back."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from quorate.base.ids import ZERO_UUID, ReplicaKey
from quorate.formats.batch import iter_batches
from quorate.node.jobs import AppendBatches, Job, Write
from quorate.raft.ready import Clean, InstallSnapshot, SaveElection, Truncate
from quorate.raft.values import ElectionState, Voter
from quorate.sim.checks.history import UNCOMMITTED, Entry, History
from quorate.sim.checks.voters import check_made
from quorate.sim.checks.words import election_words
from quorate.sim.observe import Node, Violation
from quorate.storage.api import AppendedBatch, Recovered

UNKNOWN = -1
_ALL = 1 << 62


def same_vote(read: ElectionState, written: ElectionState, kraft_version: int) -> bool:
    """Did `written` come back as `read`? At kraft.version 0 the directory id is not kept."""
    if read == written:
        return True
    if kraft_version > 0 or read.voted is None or written.voted is None:
        return False
    if read.voted.directory_id != ZERO_UUID:
        return False
    there, here = (read.epoch, read.leader_id), (written.epoch, written.leader_id)
    return there == here and read.voted.id == written.voted.id


class Twin:
    """One node: its log as a path in the History, kept from the jobs that it gives its disk."""

    def __init__(self, process: Node, history: History, bit: int) -> None:
        self.history = history
        self.id = process.id
        self.key = ReplicaKey(process.id, process.directory_id)
        self.bit = bit
        """This disk's bit in `Entry.durable_on`."""
        self.life = process.life
        self.restored = False
        """Its disk was replaced by an old copy, and has not been started since."""
        self.forgotten = -1
        """Of epochs up to this one an old copy of its disk may know no vote: it may vote again,
        and the world sees to it that nobody is elected by that."""
        self.tip = history.root
        """The last batch of its log."""
        self.log_start = 0
        """Where its log started when its index was asked last; UNKNOWN when it is due anew."""
        self.synced = history.root
        """The last one that its disk would give back."""
        self.vote = ElectionState()
        """As its disk would give it back."""
        self.vote_version = 0
        """The kraft.version at which it was written."""
        self.saving: deque[tuple[ElectionState, int]] = deque()
        """Given to the disk and not known to be durable, each with its kraft.version."""
        self.installing: Entry | None = None
        """A snapshot takes the log's place: what of the durable log it surely has."""
        self.installing_in = 0
        """The epoch in which its disk was told so."""
        self.writes: deque[tuple[int, Entry | None, ElectionState | None]] = deque()
        """(seq, log's end after it, election) of the writes under way."""
        self.made: list[Entry] = []
        """Batches made as a leader whose election is not durable: nobody may know of them."""
        self.changes: list[Entry] = []
        """Voter changes made in this step."""
        self.written: list[Entry] = []
        """Entries with a voter set that it made in this step, as a leader."""
        self.appended: list[Entry] = []
        """Of its log, what it has appended in this step."""
        self.led = False
        """Did it lead at the end of its last step?"""
        self.high_watermark = -1
        self.high = history.root
        """The entry that ends at the high watermark."""
        self.pending: deque[Entry] = deque()
        """The entries of the log beyond it, in order."""
        self.own_voters: tuple[Voter, ...] = ()
        """In force while the log has no Voters record: static, or of the bootstrap snapshot."""
        self.own_version = 0
        """kraft.version while the log has no record of it: of the bootstrap snapshot."""
        self.election = self.vote
        """As the replica has it in memory."""
        self.heard: dict[ReplicaKey, int] = {}
        """Who has fetched from it in the epoch `heard_in`, and when last: ms of its own clock."""
        self.heard_in = 0
        self.askers: list[ReplicaKey] = []
        """The same in the order in which they asked, since a majority was found (`majorities`)."""
        self.waiting: dict[int, tuple[ReplicaKey, int, int, tuple[int, int] | None]] = {}
        """By reply_to: of these, whose question is not answered, when it came, the high watermark
        that it knows, and what of it is in `places`."""
        self.places: dict[ReplicaKey, list[tuple[int, int]]] = {}
        """By replica: reply_to and offset of its last Fetch that was answered well, and of those
        that came after it and are not answered."""
        self.served: dict[ReplicaKey, int] = {}
        """Who was answered well, and when its question came."""
        self._ends: dict[ReplicaKey, int] = {}
        """Where its log ended when they fetched first in that epoch."""
        self.fetched_at: dict[ReplicaKey, int] = {}
        """When they fetched last in that epoch: ms of its own clock."""
        self.caught_up: set[ReplicaKey] = set()
        """Who has fetched, in that epoch, what it had when they fetched first, or all. (The rule
        asks for what it had at the last Fetch before that was valid: never less.)"""
        self.ruled_by: Entry | None = history.root
        """When it was asked last whether it may run: the entry with the newest voter set; `root`
        where it was not asked yet."""
        self.is_open = False
        """Was that entry not known to be committed?"""
        self.hears_until = 0
        """Until when it leads, or has heard a leader, as it was at the end of its last step: ms of
        its own clock."""
        self.leading: int | None = None
        """The epoch in which its state machine leads."""

    def __str__(self) -> str:
        return f"node {self.id} (life {self.life})"

    @property
    def voters(self) -> tuple[Voter, ...]:
        """The voter set in force for this replica's log."""
        voters = self.tip.voters
        return self.own_voters if voters is None else voters

    @property
    def kraft_version(self) -> int:
        """The kraft.version in force for this replica's log; it never falls."""
        return max(self.own_version, self.tip.kraft_version)

    @property
    def saved(self) -> ElectionState:
        """What its disk was given last."""
        return self.saving[-1][0] if self.saving else self.vote

    @property
    def _epoch(self) -> int:
        """In which it drops what it drops now: what was committed in a later one, it may not have
        known."""
        return self.saved.epoch if self.installing is None else self.installing_in

    def forget_heard(self) -> None:
        """Another epoch, or another life."""
        self.heard.clear()
        self.askers.clear()
        self.waiting.clear()
        self.served.clear()
        self.places.clear()
        self._ends.clear()
        self.fetched_at.clear()
        self.caught_up.clear()

    def fetched(self, key: ReplicaKey, offset: int, now_ms: int) -> None:
        """A replica fetches from there (KIP-853: when it has caught up, it may be added)."""
        self.fetched_at[key] = now_ms
        if offset >= self._ends.setdefault(key, self.tip.end):
            self.caught_up.add(key)

    # -- its life -----------------------------------------------------------------------------
    def start(self, process: Node, recovered: Recovered) -> None:
        """Take what the disk gave back; it must hold all that was durable."""
        self.life = process.life
        self.forget_heard()
        tip = self._recovered_tip(process, recovered)
        vote = recovered.election or ElectionState()
        if not self.restored and self.forgot(tip, vote):
            raise Violation(
                "durable means durable",
                f"{self} came back with the log up to {tip} and {election_words(vote)}; durable "
                f"was {self.synced} and {election_words(self.vote)}",
            )
        self.forget_writes()
        self.vote = self.election = vote
        self.tip = tip
        self.log_start = recovered.log.start_offset
        self.settle(tip)
        self.restored = False
        self._start_reading(recovered)

    def forgot(self, tip: Entry, vote: ElectionState) -> bool:
        """Is this less than what was durable?"""
        votes = ((self.vote, self.vote_version), *self.saving)
        floor = self.synced if self.installing is None else self.installing
        return not any(same_vote(vote, *known) for known in votes) or not tip.holds(floor)

    def _recovered_tip(self, process: Node, recovered: Recovered) -> Entry:
        log = recovered.log
        tip = self.history.committed_at.get(log.start_offset)
        if tip is None:
            raise Violation(
                "durable means durable",
                f"{self}: its log starts at {log.start_offset}, where nothing is committed",
            )
        data = process.storage.read(log.start_offset, log.end_offset, _ALL)
        for view in iter_batches(data, verify=False):
            batch = AppendedBatch(view.base_offset, view.end_offset - 1, view.epoch, view.data)
            tip = self._recovered_entry(tip, batch)
        if tip.end != log.end_offset:
            raise Violation(
                "durable means durable", f"{self}: {tip} is the last of a log to {log.end_offset}"
            )
        newest = log.snapshots[-1] if log.snapshots else None
        if newest is not None and newest.offset > 0:
            snapshot = self.committed_snapshot(newest)
            if not tip.holds(snapshot):
                raise Violation(
                    "snapshot of what is committed",
                    f"{self}: recovered snapshot {tuple(newest)}, but the log up to {tip}",
                )
        return tip

    def _recovered_entry(self, tip: Entry, batch: AppendedBatch) -> Entry:
        known = self.history.find(tip, batch, self)
        if known is not None:
            return known
        for entry in self.made:
            same = entry.parent is tip and entry.epoch == batch.epoch
            if same and entry.data == batch.data:
                self.history.add(entry, self)
                return entry
        raise Violation(
            "log matching", f"{self}: recovered a batch at {batch.base_offset} that nobody made"
        )

    def _start_reading(self, recovered: Recovered) -> None:
        """Where the high watermark stands before the first step: at the newest snapshot."""
        newest = recovered.log.snapshots[-1].offset if recovered.log.snapshots else 0
        self.high_watermark = newest if newest > 0 else -1
        self.pending.clear()
        at = self.tip
        while at.end > newest and at.parent is not None:
            self.pending.appendleft(at)
            at = at.parent
        self.high = at
        self.leading = None
        self.hears_until, self.led = 0, False
        self.ruled_by = self.history.root
        self.written.clear()
        self.appended.clear()

    def forget_writes(self) -> None:
        self.installing = None
        self.writes.clear()
        self.saving.clear()
        self.made.clear()

    # -- the log ------------------------------------------------------------------------------
    def submit(self, jobs: Iterable[Job]) -> None:
        """The replica gives these to its disk, and counts them as its log from now on."""
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
                self.installing_in = self.saved.epoch
            elif kind is Clean:
                self.committed_snapshot(write.snapshot_id)  # type: ignore[union-attr]
        self.writes.append((job.seq, tip, election))

    def _save(self, election: ElectionState, kraft_version: int) -> None:
        """quorum-state is of the version in force: an older one forgets who was voted for on which
        disk (KAFKA-16526), a newer one is refused by older software."""
        if kraft_version != self.kraft_version:
            raise Violation(
                "a vote is kept as the version in force has it",
                f"{self} saves {election_words(election)} at kraft.version {kraft_version}; in "
                f"force is {self.kraft_version}",
            )
        self.saving.append((election, kraft_version))

    def _append(self, batch: AppendedBatch) -> None:
        tip = self.tip
        if batch.epoch > tip.epoch and batch.epoch > self.saved.epoch:
            raise Violation(
                "durable before audible",
                f"{self} writes a batch of epoch {batch.epoch} before that epoch: its disk was "
                f"given {election_words(self.saved)}",
            )
        entry = self.history.find(tip, batch, self)
        if entry is None:
            entry = self._make(tip, batch)
        self.tip = entry
        self.pending.append(entry)
        self.appended.append(entry)

    def _make(self, parent: Entry, batch: AppendedBatch) -> Entry:
        """Nobody has this batch: then only the leader of its epoch can have made it."""
        base, epoch = batch.base_offset, batch.epoch
        if base != parent.end or epoch < parent.epoch:
            raise Violation("log matching", f"{self}: {base} of epoch {epoch} follows {parent}")
        entry = Entry(parent, base, batch.last_offset + 1, epoch, batch.data)
        reign = self.history.reigns.get(epoch)
        if reign is None:
            self.made.append(entry)
        elif reign.node_id != self.id or reign.life != self.life:
            raise Violation(
                "one leader acts",
                f"{self} makes {entry}; the leader of that epoch is node {reign.node_id} "
                f"(life {reign.life})",
            )
        else:
            self.history.add(entry, self)
        check_made(self, entry)
        if entry.voters_entry is entry:
            self.written.append(entry)
        return entry

    def _truncate(self, end: int) -> None:
        """Who follows the leader of an epoch cuts off what that one lacks, also when the leader of
        a later epoch, which has it, has committed it meanwhile with the help of others."""
        tip = self.tip
        while tip.end > end and tip.parent is not None:
            if tip.committed_in <= self._epoch:
                raise Violation("committed prefix", f"{self} cuts off {tip}, which is committed")
            if self.pending:
                self.pending.pop()
            if self.appended:
                self.appended.pop()
            tip = tip.parent
        if tip.end != end:
            raise Violation("log matching", f"{self} cuts its log at {end}, inside a batch")
        self.tip = tip
        self._shrink(tip)

    def _shrink(self, tip: Entry) -> None:
        """What is beyond `tip` is not this log any more, though the disk may still hold it."""
        if self.synced.end > tip.end:
            self.settle(tip)
        self.writes = deque(
            (seq, tip if end is not None and end.end > tip.end else end, election)
            for seq, end, election in self.writes
        )

    def _common(self, snapshot_offset: int) -> Entry:
        """The last durable entry of this log that the log before a committed snapshot has too."""
        at = self.synced
        while at.parent is not None:
            if at.committed_in != UNCOMMITTED and at.end <= snapshot_offset:
                break
            at = at.parent
        return at

    def committed_snapshot(self, snapshot_id: tuple[int, int]) -> Entry:
        """The entry at which a snapshot with this id ends."""
        offset, epoch = snapshot_id
        entry = self.history.committed_at.get(offset)
        if entry is None or entry.epoch != epoch:
            raise Violation(
                "snapshot of what is committed",
                f"{self}: snapshot {(offset, epoch)}, committed there is {entry or 'nothing'}",
            )
        return entry

    def installed(self, snapshot_id: tuple[int, int]) -> None:
        """The log is empty now and starts where this snapshot ends; all of it is durable."""
        entry = self.committed_snapshot(snapshot_id)
        self.tip = self.high = entry
        self.pending.clear()
        self.settle(entry)
        self.installing = None

    # -- the disk -----------------------------------------------------------------------------
    def persisted(self, seq: int) -> list[ElectionState]:
        """The writes up to `seq` are durable: the elections among them, the last one lasts."""
        writes, saved = self.writes, []
        tip = None
        while writes and writes[0][0] <= seq:
            _, end, election = writes.popleft()
            if end is not None:
                tip = end
            if election is not None:
                while True:
                    state, self.vote_version = self.saving.popleft()
                    saved.append(state)
                    if state is election:
                        break
        if tip is not None:
            self.settle(tip)
        if saved:
            self.vote = saved[-1]
        return saved

    def settle(self, tip: Entry) -> None:
        """The disk holds the log up to `tip` for sure, and nothing beyond it."""
        bit = self.bit
        at = tip
        while not at.durable_on & bit:
            at.durable_on |= bit
            at = at.parent  # type: ignore[assignment]
        gone = self.synced
        while gone is not at:
            if gone.committed_in <= self._epoch and not self.restored:
                raise Violation("committed prefix", f"{self}: {gone} is committed, and dropped")
            gone.durable_on &= ~bit
            gone = gone.parent  # type: ignore[assignment]
        self.synced = tip
