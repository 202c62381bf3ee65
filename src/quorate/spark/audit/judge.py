"""The verdict on one cluster: facts of all its replicas in, findings for each of them out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from quorate.formats.files import QuorumState
from quorate.spark.audit.agreement import judge_snapshots
from quorate.spark.audit.chain import RESTORE
from quorate.spark.audit.commit import Chain, Committed, committed, parting
from quorate.spark.audit.doubt import contradicted_from, hedge
from quorate.spark.audit.headers import with_damaged_epochs
from quorate.spark.audit.identity import judge_identities
from quorate.spark.audit.lost import Witnesses, judge_log_end, judge_missing_log
from quorate.spark.audit.majority import judge_majority
from quorate.spark.audit.model import (
    DAMAGE,
    DIVERGENT_TAIL,
    VIOLATION,
    WARNING,
    ClusterVerdict,
    Control,
    Finding,
    Mismatch,
    ReplayFacts,
    Replica,
    ReplicaVerdict,
    SegmentFacts,
    SnapshotFacts,
    Span,
    Spot,
    state_of,
)
from quorate.spark.audit.sidefiles import (
    judge_bootstrap,
    judge_epochs,
    judge_quorum_state,
    judge_topic,
    judge_vote,
)
from quorate.spark.audit.uncompared import CUT_OFF, judge_uncompared
from quorate.spark.audit.voters import judge_voters
from quorate.spark.files.scan import Garbled

_KEEP = (
    "Copy everything away before anything is started, and do not start these nodes together: a "
    "record that was acknowledged may be lost"
)


@dataclass(slots=True)
class Evidence:
    """All that was found out about the replicas of one cluster."""

    replicas: Sequence[Replica]
    segments: Sequence[SegmentFacts] = ()
    replays: Sequence[ReplayFacts] = ()
    mismatches: Sequence[Mismatch] = ()
    small_files: Mapping[str, bytes | Garbled] = field(default_factory=dict)
    """The bytes of quorum-state and leader-epoch-checkpoint files, by their names."""


def judge(evidence: Evidence) -> ClusterVerdict:
    """The verdict; findings whose file is not named yet have an offset to look it up by."""
    court = _Court(evidence)
    court.hear()
    return court.verdict()


class _Court:
    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._findings: dict[str, list[Finding]] = defaultdict(list)
        self._states: dict[str, QuorumState] = {}
        self._epochs: dict[str, Sequence[tuple[int, int]]] = {}
        self._replays = {replay.path: replay for replay in evidence.replays}
        self._segments: dict[str, list[SegmentFacts]] = defaultdict(list)
        for segment in sorted(with_damaged_epochs(evidence.segments), key=lambda one: one.base):
            self._segments[segment.path].append(segment)
        self._chains = {one.path: self._chain(one) for one in evidence.replicas}
        self._committed: Committed | None = None

    def hear(self) -> None:
        for replica in self._evidence.replicas:
            self._alone(replica)
        chains = [chain for chain in self._chains.values() if self._segments[chain.replica.path]]
        self._committed = committed(chains)
        for replica in self._evidence.replicas:
            if replica.complete:
                self._lost(replica, chains)
        self._votes()
        self._log_matching()
        self._identities()
        self._leaders()
        judge_snapshots(self._evidence.replays, self._chains, self._committed, self._findings)
        if self._committed is not None:
            for chain in chains:
                self._against(chain, self._committed)
            for path, found in judge_majority(self._committed, list(self._chains.values())).items():
                self._findings[path].append(found)
        hedge(self._findings)

    def verdict(self) -> ClusterVerdict:
        found = self._committed
        end = None if found is None else found.end
        main = "" if found is None else found.main.replica.path
        doubt = contradicted_from(self._findings, main)
        if end is not None and doubt is not None:
            end = min(end, doubt)
        voters = found.voters if found is not None and found.voters is not None else ()
        return ClusterVerdict(
            self._evidence.replicas[0].cluster_id,
            tuple(map(str, voters)),
            end,
            None if found is None or not end else found.main.epoch_at(end - 1),
            tuple(self._verdict(one) for one in self._evidence.replicas),
            doubt,
        )

    def _verdict(self, replica: Replica) -> ReplicaVerdict:
        findings = tuple(self._findings[replica.path])
        segments = self._segments[replica.path]
        chain = self._chains[replica.path]
        return ReplicaVerdict(
            replica.cluster_id,
            replica.node_id,
            replica.path,
            state_of(findings),
            segments[0].base if segments else None,
            segments[-1].end if segments else None,
            chain.last_epoch,
            findings,
        )

    def _chain(self, replica: Replica) -> Chain:
        """The sound part of a replica's log."""
        segments = self._segments[replica.path]
        snapshots = [one for one in self._snapshots_of(replica) if one.sound]
        start = segments[0].base if segments else 0
        chain = Chain(replica, start, start, snapshots=tuple(one.id for one in snapshots))
        spans: list[Span] = []
        controls: list[Control] = []
        sets = [(one.id.offset - 1, one.voters) for one in snapshots if one.voters is not None]
        for segment in segments:
            for span in segment.spans:
                if spans and spans[-1].epoch == span.epoch:
                    spans[-1] = replace(spans[-1], end=span.end)
                else:
                    spans.append(span)
            controls += segment.controls
            chain.end = segment.end if segment.broken_at is None else segment.broken_at
            if segment.broken_at is not None:
                break
        chain.spans = tuple(spans)
        chain.controls = tuple(sorted(controls, key=lambda one: one.offset))
        if spans:
            chain.end = min(chain.end, spans[-1].end)
        sets += [(one.offset, one.voters) for one in chain.controls if one.voters is not None]
        chain.voter_sets = tuple(
            sorted(((offset, voters) for offset, voters in sets if voters), key=lambda one: one[0])
        )
        return chain

    def _snapshots_of(self, replica: Replica) -> tuple[SnapshotFacts, ...]:
        replay = self._replays.get(replica.path)
        return () if replay is None else replay.snapshots

    def _alone(self, replica: Replica) -> None:
        """What is wrong with a replica whatever the others say."""
        findings, chain = self._findings[replica.path], self._chains[replica.path]
        if replica.problem is not None:
            findings.append(replica.problem)
        segments = self._segments[replica.path]
        for before, segment in zip([None, *segments], segments, strict=False):
            findings += _joint(before, segment)
            findings += segment.findings
        replay = self._replays.get(replica.path)
        if replay is not None:
            findings += replay.findings
            for snapshot in replay.snapshots:
                findings += snapshot.findings
        findings += judge_voters(chain)
        if not replica.complete:
            return
        self._bounds(replica, chain)
        self._small_files(replica, chain)

    def _lost(self, replica: Replica, chains: Sequence[Chain]) -> None:
        """A log, or the end of one, that is not there any more."""
        known, chain = self._findings[replica.path], self._chains[replica.path]
        segments = self._segments[replica.path]
        state, epochs = self._states.get(replica.path), self._epochs.get(replica.path, ())
        beside = Witnesses(replica, state, epochs)
        if not segments:
            known[:0] = judge_missing_log(beside)
            return
        whole = all(one.broken_at is None for one in segments)
        others = [one for one in chains if one is not chain]
        known += judge_log_end(
            beside, chain, segments[-1].end, others, self._committed, whole=whole
        )

    def _small_files(self, replica: Replica, chain: Chain) -> None:
        findings, small = self._findings[replica.path], self._evidence.small_files
        name = (
            f"{replica.path}/quorum-state"
            if not replica.quorum_state
            else replica.quorum_state.name
        )
        state, wrong = judge_quorum_state(small.get(name), name, chain)
        if replica.segments or replica.quorum_state:
            findings += wrong
        if state is not None:
            self._states[replica.path] = state
        if replica.epochs is not None:
            whole = all(one.broken_at is None for one in self._segments[replica.path])
            name = replica.epochs.name
            self._epochs[replica.path], wrong = judge_epochs(
                small.get(name), name, chain, whole=whole
            )
            findings += wrong
        if replica.topic is not None:
            findings += judge_topic(small.get(replica.topic.name), replica.topic.name)
        if replica.bootstrap is not None:
            findings += judge_bootstrap(small.get(replica.bootstrap.name), replica.bootstrap.name)

    def _bounds(self, replica: Replica, chain: Chain) -> None:
        """Where log and snapshots should meet."""
        segments = self._segments[replica.path]
        if not segments:
            return
        findings = self._findings[replica.path]
        ids = [found for found, _ in replica.snapshots]
        first = Spot(segments[0].file, segments[0].base, 0, segments[0].base)
        if chain.start > 0 and not any(one.offset >= chain.start for one in ids):
            what = (
                f"the log starts at offset {chain.start} and no snapshot of {chain.start} or "
                "later stands beside it: what came before is missing"
            )
            findings.append(Finding("log-start", DAMAGE, what, RESTORE, first))
        for one, file in replica.snapshots:
            spot = Spot(file.name, None, 0, one.offset, one.epoch)
            epoch = chain.epoch_at(one.offset - 1)
            if epoch is not None and epoch != one.epoch:
                what = (
                    f"the snapshot's name says epoch {one.epoch}, but offset {one.offset - 1} of "
                    f"the log beside it is of epoch {epoch}"
                )
                findings.append(Finding("snapshot-id", VIOLATION, what, _KEEP, spot))

    def _votes(self) -> None:
        """Only where all logs are sound: a voter set may stand behind the damage."""
        if any(one.broken_at is not None for one in self._evidence.segments):
            return
        for path, state in self._states.items():
            file = self._chains[path].replica.quorum_state
            if file is not None:
                self._findings[path] += judge_vote(state, file.name, self._chains.values())

    def _log_matching(self) -> None:
        for found in self._evidence.mismatches:
            sizes = [len(holders) for holders in found.versions]
            clear = sizes[0] > sizes[1]
            others = [holder for version in found.versions[int(clear) :] for holder in version]
            if not clear:
                damaged = [one for one in others if _is_damaged(self._findings[one[0]])]
                others = damaged if damaged and len(damaged) < len(others) else others
            trusted = ", ".join(path for path, _ in found.versions[0])
            for path, spot in others:
                what = (
                    f"the batch at offset {found.offset}, epoch {found.epoch}, is another than in "
                    + (trusted if clear else "the other replica, and none has a majority")
                )
                more = found.count - 1
                self._findings[path].append(
                    Finding(
                        "log-matching", VIOLATION, what, RESTORE if clear else _KEEP, spot, more
                    )
                )

    def _identities(self) -> None:
        main = self._committed
        voters = () if main is None or main.end is None else main.voters or ()
        for path, found in judge_identities(self._evidence.replicas, voters, self._states):
            self._findings[path].append(found)

    def _leaders(self) -> None:
        """At most one leader an epoch: LeaderChange records and quorum-state files."""
        named: dict[int, dict[int, list[tuple[str, Spot]]]] = defaultdict(lambda: defaultdict(list))
        for path, chain in self._chains.items():
            for control in chain.controls:
                if control.leader is not None and control.spot.epoch is not None:
                    named[control.spot.epoch][control.leader].append((path, control.spot))
        for path, state in self._states.items():
            leader, epoch = state.election.leader_id, state.election.epoch
            if leader >= 0:
                file = self._chains[path].replica.quorum_state
                spot = Spot(None if file is None else file.name, epoch=epoch)
                named[epoch][leader].append((path, spot))
        for epoch, leaders in named.items():
            if len(leaders) > 1:
                self._two_leaders(epoch, leaders)

    def _two_leaders(self, epoch: int, leaders: Mapping[int, list[tuple[str, Spot]]]) -> None:
        """Blame those that are outnumbered, where somebody is; a log outweighs quorum-state."""
        weight = {
            leader: (
                any(spot.offset is not None for _, spot in told),
                len({path for path, _ in told}),
            )
            for leader, told in leaders.items()
        }
        top = max(weight.values())
        clear = [leader for leader, known in weight.items() if known == top]
        for leader, told in leaders.items():
            if clear == [leader]:
                continue
            others = sorted(set(leaders) - {leader})
            what = f"leader {leader} of epoch {epoch}: elsewhere that epoch's leader is {others}"
            for path, spot in told:
                if not _is_damaged(self._findings[path], spot.file):
                    found = Finding("one-leader", VIOLATION, what, _KEEP, spot)
                    self._findings[path].append(found)

    def _against(self, chain: Chain, main: Committed) -> None:
        """Where a log leaves the one that is committed."""
        path, known = chain.replica.path, self._findings[chain.replica.path]
        part = parting(main.main, chain)
        if part is None:
            known += judge_uncompared(
                chain, main.main, list(self._chains.values()), list(self._epochs.values())
            )
            return
        end = main.end or 0
        if path in main.contested_by:
            what = (
                f"from offset {part} on this log and that of {main.main.replica.path} differ, and "
                "a majority stands behind each"
            )
            known.append(Finding("committed", VIOLATION, what, _KEEP, Spot(offset=part)))
            return
        lost = [one for one in chain.snapshots if part < one.offset <= chain.end]
        if lost:
            what = (
                f"from offset {part} on this log differs from the committed one, but its snapshot "
                f"of {lost[0].offset} says that it was committed"
            )
            known.append(Finding("committed", VIOLATION, what, _KEEP, Spot(offset=part)))
            return
        epochs = sorted({span.epoch for span in chain.spans if span.end > part})
        state = "holds" if part < end else "may come to hold"
        what = (
            f"divergent uncommitted tail: the offsets {part} to {chain.end - 1} of epoch "
            f"{', '.join(map(str, epochs))} were never committed; from {part} on the quorum "
            f"{state} epoch {main.main.epoch_at(part)}"
        )
        spot = Spot(offset=part, epoch=epochs[0] if epochs else None)
        known.append(Finding(DIVERGENT_TAIL, WARNING, what, CUT_OFF, spot))


def _is_damaged(findings: Iterable[Finding], file: str | None = None) -> bool:
    return any(
        one.severity == DAMAGE and (file is None or one.spot.file == file) for one in findings
    )


def _joint(before: SegmentFacts | None, segment: SegmentFacts) -> list[Finding]:
    """What is wrong between one segment and the next; missing offsets are told by the first."""
    if before is None or not (before.spans and segment.spans):
        return []
    was, now = before.spans[-1].epoch, segment.spans[0].epoch
    if before.broken_at is not None or now == was or (now > was and segment.begins_with_leader):
        return []
    what = f"the segment begins in epoch {now}, the one before ends in epoch {was}"
    if now > was:
        what += ", and there is no LeaderChange between them"
    spot = Spot(segment.file, segment.base, 0, segment.base, now)
    return [Finding("epochs", DAMAGE, what, RESTORE, spot)]
