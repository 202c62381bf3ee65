"""Whether snapshots of one id agree, with each other and with what a replay of the logs gives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from quorate.base.ids import OffsetAndEpoch
from quorate.spark.audit.chain import RESTORE
from quorate.spark.audit.commit import Chain, Committed, parting
from quorate.spark.audit.model import DAMAGE, WARNING, Digest, Finding, ReplayFacts, Spot
from quorate.spark.audit.orphans import INHERITED, inherited

_OTHER: Final = "the snapshot holds {} than the logs and snapshots of the others"


def judge_snapshots(
    replays: Sequence[ReplayFacts],
    chains: Mapping[str, Chain],
    main: Committed | None,
    findings: Mapping[str, list[Finding]],
) -> None:
    """Snapshots of one id hold the same state, and what any replay gives for it.

    What is wrong is added to `findings`, which has what was said of each replica before.
    """
    told: dict[OffsetAndEpoch, dict[Digest, list[tuple[str, bool]]]]
    told = defaultdict(lambda: defaultdict(list))
    spots: dict[tuple[str, OffsetAndEpoch], Spot] = {}
    for replay in replays:
        for one in replay.snapshots:
            if one.digest is not None:
                told[one.id][one.digest].append((replay.path, one.checked))
                spots[replay.path, one.id] = Spot(one.file, None, 0, *one.id)
    for snapshot_id, digests in told.items():
        for replay in replays:
            chain = chains[replay.path]
            digest = replay.digests.get(snapshot_id.offset)
            on_main = main is not None and (parting(main.main, chain) or chain.end)
            if digest and on_main and on_main >= snapshot_id.offset:
                digests[digest].append((replay.path, True))
        if len(digests) > 1:
            _odd_snapshots(snapshot_id, digests, spots, findings)


def _odd_snapshots(
    snapshot_id: OffsetAndEpoch,
    digests: Mapping[Digest, Sequence[tuple[str, bool]]],
    spots: Mapping[tuple[str, OffsetAndEpoch], Spot],
    findings: Mapping[str, list[Finding]],
) -> None:
    """Those that no replay gave, where another was given by more."""
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
            if spot is None or sure or _is_blamed(known, spot.file):
                continue
            if digest.state in trusted:
                known.append(inherited(_OTHER.format("other configs of topics"), spot))
                continue
            what = _OTHER.format("another state")
            known.append(Finding("snapshot-agreement", DAMAGE, what, RESTORE, spot))


def _is_blamed(findings: Iterable[Finding], file: str | None) -> bool:
    """Whether it was said of the file already that it holds another state."""
    blamed = (one for one in findings if one.severity != WARNING or one.check == INHERITED)
    return any(one.spot.file == file for one in blamed)
