"""Where replicas contradict each other and nothing tells which is right.

What is committed is found by epochs (the same epoch at an offset is the same log up to there), and
just that does not hold then: of what comes behind, nothing is known, and no tail is harmless.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from quorate.spark.audit.chain import RESTORE
from quorate.spark.audit.model import DIVERGENT_TAIL, VIOLATION, Finding

_PARTED: Final = ("log-matching", "committed")
"""Findings of which the offset is where logs begin to contradict each other."""
_NOT_HARMLESS: Final = (
    "So it is only if the logs that differ from it are the right ones, and the replicas here "
    "contradict each other: copy everything away, and cut nothing off, before that is settled"
)


def contradicted_from(findings: Mapping[str, Iterable[Finding]], main: str) -> int | None:
    """The first offset at which replicas contradict each other and nobody can say who is right.

    main: the replica whose log is the committed one by its epochs; if most others have other
    batches than it, that tells nothing.
    """
    found = (
        one
        for path, known in findings.items()
        for one in known
        if one.check in _PARTED and one.severity == VIOLATION
        if path == main or one.advice != RESTORE
    )
    offsets = (one.spot.offset for one in found)
    return min((offset for offset in offsets if offset is not None), default=None)


def hedge(findings: Mapping[str, list[Finding]]) -> None:
    """Call no tail harmless where replicas contradict each other."""
    if all(one.severity != VIOLATION for known in findings.values() for one in known):
        return
    for known in findings.values():
        known[:] = [
            replace(one, advice=_NOT_HARMLESS) if one.check == DIVERGENT_TAIL else one
            for one in known
        ]
