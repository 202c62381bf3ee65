"""Snapshots of one id must agree with each other, and with what a replay of the logs gives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from quorate.base.ids import OffsetAndEpoch
from quorate.spark.audit.committed import CommittedLog, ReplicaLog, divergence_offset
from quorate.spark.audit.model import DAMAGE, RESTORE, WARNING, Digest, Finding, ReplayFacts, Spot
from quorate.spark.audit.orphans import INHERITED, inherited

_OTHER: Final = "the snapshot holds {} than the logs and snapshots of the other replicas"


def check_snapshot_agreement(
    replays: Sequence[ReplayFacts],
    logs: Mapping[str, ReplicaLog],
    main: CommittedLog | None,
    findings: Mapping[str, list[Finding]],
) -> None:
    """Add to `findings` (by path) the snapshots that hold another state than the others.

    1. Collect the digests of all snapshots of an id, and who holds each.
    2. Add the digests of replays that reach its end on the committed log: they are checked.
    3. Where digests differ, blame those that fewer checked sources gave than the best.
    """
    reported: dict[OffsetAndEpoch, dict[Digest, list[tuple[str, bool]]]]
    reported = defaultdict(lambda: defaultdict(list))
    spots: dict[tuple[str, OffsetAndEpoch], Spot] = {}
    for replay in replays:
        for one in replay.snapshots:
            if one.digest is not None:
                reported[one.id][one.digest].append((replay.path, one.checked))
                spots[replay.path, one.id] = Spot(one.file, None, 0, *one.id)
    for snapshot_id, digests in reported.items():
        for replay in replays:
            log = logs[replay.path]
            digest = replay.digests.get(snapshot_id.offset)
            on_main = main is not None and (divergence_offset(main.main, log) or log.end)
            if digest and on_main and on_main >= snapshot_id.offset:
                digests[digest].append((replay.path, True))
        if len(digests) > 1:
            _blame_outnumbered(snapshot_id, digests, spots, findings)


def _blame_outnumbered(
    snapshot_id: OffsetAndEpoch,
    digests: Mapping[Digest, Sequence[tuple[str, bool]]],
    spots: Mapping[tuple[str, OffsetAndEpoch], Spot],
    findings: Mapping[str, list[Finding]],
) -> None:
    """Add findings for the snapshots whose state fewer replays confirm than another state."""
    top = max(sum(sure for _, sure in holders) for holders in digests.values())
    trusted = {
        digest.state
        for digest, holders in digests.items()
        if sum(sure for _, sure in holders) == top
    }
    for digest, holders in digests.items():
        if sum(sure for _, sure in holders) == top:
            continue
        for path, sure in holders:
            spot = spots.get((path, snapshot_id))
            known = findings[path]
            # a snapshot that its own log confirms is not to blame
            if spot is None or sure or _is_blamed(known, spot.file):
                continue
            if digest.state in trusted:
                known.append(inherited(_OTHER.format("other configs of topics"), spot))
                continue
            what = _OTHER.format("another state")
            known.append(Finding("snapshot-agreement", DAMAGE, what, RESTORE, spot))


def _is_blamed(findings: Iterable[Finding], file: str | None) -> bool:
    """Whether a finding says already that the file holds another state."""
    blamed = (one for one in findings if one.severity != WARNING or one.check == INHERITED)
    return any(one.spot.file == file for one in blamed)
