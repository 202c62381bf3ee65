"""The verdict on one cluster, from the facts about all its replicas.

1. Each replica is checked by itself: its segments, snapshots and side files.
2. The committed log is determined, from the sound logs.
3. What a replica has lost is looked for, by its side files and by the other replicas.
4. Replicas are compared: batches, votes, node ids, leaders, snapshots, and the committed log.
5. Where replicas contradict each other, advice that relies on the committed log is withdrawn.

The order matters: a later step does not blame what an earlier one found to be damaged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from quorate.formats.files import QuorumState
from quorate.spark.audit.agreement import check_snapshot_agreement
from quorate.spark.audit.committed import (
    CommittedLog,
    ReplicaLog,
    divergence_offset,
    find_committed,
)
from quorate.spark.audit.identity import check_cluster_id, check_identities
from quorate.spark.audit.leaders import check_leaders, is_damaged
from quorate.spark.audit.lost_log import SideFiles, check_log_end, check_missing_log
from quorate.spark.audit.majority import check_majority
from quorate.spark.audit.model import (
    DAMAGE,
    DIVERGENT_TAIL,
    KEEP_EVERYTHING,
    RESTORE,
    VIOLATION,
    WARNING,
    ClusterVerdict,
    Finding,
    Mismatch,
    ReplayFacts,
    ReplicaFiles,
    ReplicaVerdict,
    SegmentFacts,
    Spot,
    state_of,
)
from quorate.spark.audit.replica_logs import (
    check_segment_boundary,
    mark_damaged_epochs,
    sound_log,
)
from quorate.spark.audit.side_files import (
    check_bootstrap,
    check_leader_epochs,
    check_quorum_state,
    check_topic_id,
    check_vote,
)
from quorate.spark.audit.uncompared import CUT_OFF, check_uncompared
from quorate.spark.audit.voters import check_voter_sets
from quorate.spark.files.scan import GarbledFileError

_DIVERGENCE_CHECKS: Final = ("log-matching", "committed")
"""Checks whose findings have the offset at which logs begin to contradict each other."""
_NOT_HARMLESS: Final = (
    "Treat this tail as uncommitted only if the logs that differ from it are the right ones. The "
    "replicas contradict each other: copy everything away, and truncate no log, until that is "
    "settled"
)


@dataclass(slots=True)
class ClusterFacts:
    """What the tasks found out about the replicas of one cluster."""

    replicas: Sequence[ReplicaFiles]
    segments: Sequence[SegmentFacts] = ()
    replays: Sequence[ReplayFacts] = ()
    mismatches: Sequence[Mismatch] = ()
    side_files: Mapping[str, bytes | GarbledFileError] = field(default_factory=dict)
    """By file name: the bytes of quorum-state, leader-epoch-checkpoint, partition.metadata and
    bootstrap.checkpoint; the error where an archive does not give them."""


def verdict_on(facts: ClusterFacts) -> ClusterVerdict:
    """The verdict; a finding without a file has an offset, by which the caller locates it."""
    check = _ClusterCheck(facts)
    check.run()
    return check.verdict()


def contradicted_from(findings: Mapping[str, Iterable[Finding]], main: str) -> int | None:
    """The first offset at which replicas contradict each other and none can be trusted more.

    The committed log is found by epochs: the same epoch at an offset means the same log up to
    there. Contradictions show that this does not hold, so nothing behind them is known.

    main: path of the replica whose log is the committed one by its epochs. Where most others have
    other batches than it, the majority settles nothing, so its findings always count.
    """
    found = (
        one
        for path, known in findings.items()
        for one in known
        if one.check in _DIVERGENCE_CHECKS and one.severity == VIOLATION
        if path == main or one.advice != RESTORE
    )
    offsets = (one.spot.offset for one in found)
    return min((offset for offset in offsets if offset is not None), default=None)


def withdraw_harmless_tails(findings: Mapping[str, list[Finding]]) -> None:
    """Replace the advice on divergent tails where replicas contradict each other."""
    if all(one.severity != VIOLATION for known in findings.values() for one in known):
        return
    for known in findings.values():
        known[:] = [
            replace(one, advice=_NOT_HARMLESS) if one.check == DIVERGENT_TAIL else one
            for one in known
        ]


class _ClusterCheck:
    """Collects the findings of each replica of a cluster."""

    def __init__(self, facts: ClusterFacts) -> None:
        self._facts = facts
        self._findings: dict[str, list[Finding]] = defaultdict(list)
        self._states: dict[str, QuorumState] = {}
        self._epochs: dict[str, Sequence[tuple[int, int]]] = {}
        self._replays = {replay.path: replay for replay in facts.replays}
        self._segments: dict[str, list[SegmentFacts]] = defaultdict(list)
        for segment in sorted(mark_damaged_epochs(facts.segments), key=lambda one: one.base):
            self._segments[segment.path].append(segment)
        self._logs = {one.path: self._sound_log(one) for one in facts.replicas}
        self._committed: CommittedLog | None = None

    def run(self) -> None:
        # 1. each replica by itself
        for replica in self._facts.replicas:
            self._check_replica(replica)
        # 2. the committed log
        logs = [log for log in self._logs.values() if self._segments[log.replica.path]]
        self._committed = find_committed(logs)
        # 3. what is lost
        for replica in self._facts.replicas:
            if replica.complete:
                self._check_lost_log(replica, logs)
        # 4. replicas against each other
        self._check_votes()
        self._check_log_matching()
        self._check_identities()
        check_leaders(self._logs, self._states, self._findings)
        check_snapshot_agreement(self._facts.replays, self._logs, self._committed, self._findings)
        if self._committed is not None:
            for log in logs:
                self._compare_with_committed(log, self._committed)
            for path, found in check_majority(self._committed, list(self._logs.values())).items():
                self._findings[path].append(found)
        # 5. advice that relied on the committed log
        withdraw_harmless_tails(self._findings)

    def verdict(self) -> ClusterVerdict:
        found = self._committed
        end = None if found is None else found.end
        main = "" if found is None else found.main.replica.path
        contradicted = contradicted_from(self._findings, main)
        if end is not None and contradicted is not None:
            end = min(end, contradicted)
        voters = found.voters if found is not None and found.voters is not None else ()
        return ClusterVerdict(
            self._facts.replicas[0].cluster_id,
            tuple(map(str, voters)),
            end,
            None if found is None or not end else found.main.epoch_at(end - 1),
            tuple(self._verdict(one) for one in self._facts.replicas),
            contradicted,
            tuple(check_cluster_id(self._facts.replicas)),
        )

    def _verdict(self, replica: ReplicaFiles) -> ReplicaVerdict:
        findings = tuple(self._findings[replica.path])
        segments = self._segments[replica.path]
        return ReplicaVerdict(
            replica.cluster_id,
            replica.node_id,
            replica.path,
            state_of(findings),
            segments[0].base if segments else None,
            segments[-1].end if segments else None,
            self._logs[replica.path].last_epoch,
            findings,
        )

    def _sound_log(self, replica: ReplicaFiles) -> ReplicaLog:
        replay = self._replays.get(replica.path)
        snapshots = () if replay is None else replay.snapshots
        return sound_log(replica, self._segments[replica.path], snapshots)

    def _check_replica(self, replica: ReplicaFiles) -> None:
        """What is wrong with a replica whatever the others hold."""
        findings, log = self._findings[replica.path], self._logs[replica.path]
        if replica.problem is not None:
            findings.append(replica.problem)
        segments = self._segments[replica.path]
        for before, segment in zip([None, *segments], segments, strict=False):
            findings += check_segment_boundary(before, segment)
            findings += segment.findings
        replay = self._replays.get(replica.path)
        if replay is not None:
            findings += replay.findings
            for snapshot in replay.snapshots:
                findings += snapshot.findings
        findings += check_voter_sets(log)
        if not replica.complete:
            return
        self._check_snapshot_ids(replica, log)
        self._check_side_files(replica, log)

    def _check_lost_log(self, replica: ReplicaFiles, logs: Sequence[ReplicaLog]) -> None:
        """A log, or the end of one, that is missing."""
        known, log = self._findings[replica.path], self._logs[replica.path]
        segments = self._segments[replica.path]
        state, epochs = self._states.get(replica.path), self._epochs.get(replica.path, ())
        beside = SideFiles(replica, state, epochs)
        if not segments:
            known[:0] = check_missing_log(beside)
            return
        whole = all(one.broken_at is None for one in segments)
        others = [one for one in logs if one is not log]
        known += check_log_end(beside, log, segments[-1].end, others, self._committed, whole=whole)

    def _check_side_files(self, replica: ReplicaFiles, log: ReplicaLog) -> None:
        findings, content = self._findings[replica.path], self._facts.side_files
        name = (
            f"{replica.path}/quorum-state"
            if not replica.quorum_state
            else replica.quorum_state.name
        )
        state, wrong = check_quorum_state(content.get(name), name, log)
        # snapshots that were copied alone have no quorum-state, and need none
        if replica.segments or replica.quorum_state:
            findings += wrong
        if state is not None:
            self._states[replica.path] = state
        if replica.epochs is not None:
            whole = all(one.broken_at is None for one in self._segments[replica.path])
            name = replica.epochs.name
            self._epochs[replica.path], wrong = check_leader_epochs(
                content.get(name), name, log, whole=whole
            )
            findings += wrong
        if replica.topic is not None:
            findings += check_topic_id(content.get(replica.topic.name), replica.topic.name)
        if replica.bootstrap is not None:
            name = replica.bootstrap.name
            findings += check_bootstrap(content.get(name), name)

    def _check_snapshot_ids(self, replica: ReplicaFiles, log: ReplicaLog) -> None:
        """A log that begins above 0 needs a snapshot; a snapshot's id must be that of the log."""
        segments = self._segments[replica.path]
        if not segments:
            return
        findings = self._findings[replica.path]
        ids = [found for found, _ in replica.snapshots]
        if log.start > 0 and not any(one.offset >= log.start for one in ids):
            what = (
                f"the log starts at offset {log.start}, and there is no snapshot of {log.start} "
                "or later beside it: the records before are missing"
            )
            findings.append(
                Finding("log-start", DAMAGE, what, RESTORE, segments[0].first_spot(None))
            )
        for one, file in replica.snapshots:
            spot = Spot(file.name, None, 0, one.offset, one.epoch)
            epoch = log.epoch_at(one.offset - 1)
            if epoch is not None and epoch != one.epoch:
                what = (
                    f"the snapshot's name has epoch {one.epoch}, but offset {one.offset - 1} of "
                    f"the log beside it has epoch {epoch}"
                )
                findings.append(Finding("snapshot-id", VIOLATION, what, KEEP_EVERYTHING, spot))

    def _check_votes(self) -> None:
        """Only where all logs are sound: a voter set may be in a damaged part."""
        if any(one.broken_at is not None for one in self._facts.segments):
            return
        for path, state in self._states.items():
            file = self._logs[path].replica.quorum_state
            if file is not None:
                self._findings[path] += check_vote(state, file.name, list(self._logs.values()))

    def _check_log_matching(self) -> None:
        """Blame the replicas that are outnumbered; without a majority, those that are damaged."""
        for found in self._facts.mismatches:
            sizes = [len(holders) for holders in found.versions]
            clear = sizes[0] > sizes[1]
            others = [holder for version in found.versions[int(clear) :] for holder in version]
            if not clear:
                damaged = [one for one in others if is_damaged(self._findings[one[0]])]
                others = damaged if damaged and len(damaged) < len(others) else others
            trusted = ", ".join(path for path, _ in found.versions[0])
            for path, spot in others:
                what = (
                    f"the batch at offset {found.offset}, epoch {found.epoch}, differs from that in "
                    + (trusted if clear else "the other replica, and neither has a majority")
                )
                more = found.count - 1
                advice = RESTORE if clear else KEEP_EVERYTHING
                self._findings[path].append(
                    Finding("log-matching", VIOLATION, what, advice, spot, more)
                )

    def _check_identities(self) -> None:
        main = self._committed
        voters = () if main is None or main.end is None else main.voters or ()
        for path, found in check_identities(self._facts.replicas, voters, self._states):
            self._findings[path].append(found)

    def _compare_with_committed(self, log: ReplicaLog, main: CommittedLog) -> None:
        """Find where a log diverges from the committed one."""
        path, known = log.replica.path, self._findings[log.replica.path]
        part = divergence_offset(main.main, log)
        if part is None:
            known += check_uncompared(
                log, main.main, list(self._logs.values()), list(self._epochs.values())
            )
            return
        end = main.end or 0
        if path in main.contested_by:
            what = (
                f"this log and that of {main.main.replica.path} differ from offset {part} on, and "
                "each is held by a majority"
            )
            known.append(Finding("committed", VIOLATION, what, KEEP_EVERYTHING, Spot(offset=part)))
            return
        lost = [one for one in log.snapshots if part < one.offset <= log.end]
        if lost:
            what = (
                f"from offset {part} on this log differs from the committed one, but its snapshot "
                f"of {lost[0].offset} shows that it was committed"
            )
            known.append(Finding("committed", VIOLATION, what, KEEP_EVERYTHING, Spot(offset=part)))
            return
        epochs = sorted({span.epoch for span in log.spans if span.end > part})
        state = "holds" if part < end else "may come to hold"
        what = (
            f"divergent uncommitted tail: the offsets {part} to {log.end - 1} of epoch "
            f"{', '.join(map(str, epochs))} were never committed; from {part} on the quorum "
            f"{state} epoch {main.main.epoch_at(part)}"
        )
        spot = Spot(offset=part, epoch=epochs[0] if epochs else None)
        known.append(Finding(DIVERGENT_TAIL, WARNING, what, CUT_OFF, spot))
