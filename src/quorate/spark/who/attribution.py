"""The attribution of a change: from the evidence to a principal, or to none.

certain    The request's body names the object and its value, and the response has no error. The
           time of the record is between begin and end of the request, with no allowance for clock
           skew. Or the record itself names the requester, or only a node can have caused it.
likely     only this principal was allowed what the change needs, at that time; or a body fits, but
           the time of the record is outside the request by less than the skew
ambiguous  several principals fit equally well: they are the candidates, and none is named
unknown    there is no evidence; the reason says what Kafka would have to log
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from quorate.spark.who.causes import REQUEST, UNKNOWN, Cause
from quorate.spark.who.keys import BODY, CLUSTER, NAMED

CERTAIN: Final = "certain"
LIKELY: Final = "likely"
AMBIGUOUS: Final = "ambiguous"
NO_EVIDENCE: Final = "unknown"
CONFIDENCES: Final = (CERTAIN, LIKELY, AMBIGUOUS, NO_EVIDENCE)

LOG_MORE: Final = (
    "no matching line: allowed requests are logged only at DEBUG of kafka.authorizer.logger, by the "
    "active controller; request bodies at DEBUG of kafka.request.logger"
)
_TWICE: Final = (
    "; the log's local time occurred twice that night, so its line may be off by an hour"
)
_OUTSIDE: Final = (
    "; but the record lies outside it by less than the skew: a clock is off, or another request "
    "made the change"
)
_AUTO: Final = ("Metadata", "StreamsGroupHeartbeat")


class EvidenceLine(NamedTuple):
    """A log line that is evidence for a principal.

    came_twice: its local time occurred twice, at the end of daylight saving time
    """

    host: str | None
    client_id: str | None
    request: str | None
    file: str
    position: int
    text: str
    came_twice: bool


class PrincipalEvidence(NamedTuple):
    """The evidence for one principal; principal None: lines of the controller, which name none.

    strength: as in `keys`; mentions: a line names the topic without allowing the change; lines: how
    many lines there are; requests: their names
    """

    principal: str | None
    strength: int
    mentions: bool
    lines: int
    requests: Sequence[str]
    best: EvidenceLine
    inside: bool = False
    """The time of the record is between begin and end of a request whose body fits, without skew."""

    @property
    def rank(self) -> int:
        """The strength; a right on the cluster together with a line that names the topic counts as a
        right on the topic."""
        return NAMED if self.strength == CLUSTER and self.mentions else self.strength


class Attribution(NamedTuple):
    """Who made a change, how certain that is, and why."""

    cause: str
    who: str | None
    confidence: str
    reason: str
    best: PrincipalEvidence | None
    candidates: tuple[PrincipalEvidence, ...]
    """Principals with evidence, the strongest first."""


def attribute(cause: Cause, found: Sequence[PrincipalEvidence]) -> Attribution:
    """The attribution of a change; `found`: the evidence, one entry for each principal.

    1. A requester that the record itself names is certain.
    2. Where the record can only come from a node, or no principal has evidence, none is named.
    3. Of the principals with the strongest evidence, several are ambiguous and one is named.
    4. That one is certain by a body within whose request the record was written; else likely.
    """
    people = sorted(
        (one for one in found if one.principal is not None and one.rank >= CLUSTER),
        key=lambda one: (-one.rank, one.principal),
    )
    if cause.who is not None:  # 1
        best = next((one for one in people if one.principal == cause.who), None)
        return Attribution(cause.cause, cause.who, CERTAIN, cause.reason, best, tuple(people))
    if cause.cause not in (REQUEST, UNKNOWN) or not people:  # 2
        return _without_name(cause, found)
    top = [one for one in people if one.rank == people[0].rank]
    twice = _TWICE if any(one.best.came_twice for one in top) else ""
    if len(top) > 1:  # 3
        reason = f"{len(top)} principals fit: {', '.join(str(one.principal) for one in top[:5])}"
        return Attribution(REQUEST, None, AMBIGUOUS, reason + twice, top[0], tuple(people))
    best = top[0]  # 4
    confidence = CERTAIN if best.rank == BODY and best.inside and not twice else LIKELY
    return Attribution(
        REQUEST, best.principal, confidence, _why(best, people) + twice, best, tuple(people)
    )


def _without_name(cause: Cause, found: Sequence[PrincipalEvidence]) -> Attribution:
    """No principal: a node caused the change, or there is no evidence."""
    line = next((one for one in found if one.principal is None), None)
    if cause.cause not in (REQUEST, UNKNOWN):
        reason = (
            cause.reason
            if line is None
            else f"{cause.reported or cause.reason}; the controller logged it"
        )
        confidence = CERTAIN if cause.sure or line is not None else LIKELY
        return Attribution(cause.cause, None, confidence, reason, line, ())
    reason = "; ".join(part for part in (cause.reason, LOG_MORE) if part)
    return Attribution(cause.otherwise, None, NO_EVIDENCE, reason, line, ())


def _why(best: PrincipalEvidence, people: Sequence[PrincipalEvidence]) -> str:
    if best.rank == BODY:
        reason = f"{best.best.request} with this content, answered without an error"
        return reason if best.inside else reason + _OUTSIDE
    reason = f"the only principal whose {best.best.request} was allowed at that time"
    if best.strength == CLUSTER:
        reason += ", by a right on the cluster; "
        reason += (
            "a line of the request names the topic" if best.mentions else "no line names the topic"
        )
    if auto := [name for name in best.requests if name in _AUTO]:
        reason += f"; a broker sent it on behalf of its {auto[0]} request"
    others = len(people) - 1
    return reason + (f"; {others} more had a right on the cluster only" if others else "")
