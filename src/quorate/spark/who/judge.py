"""From the evidence to a name, or to none.

certain    the request's own body names the thing and its value, it was answered without an
           error, and the record lies between its beginning and its end, by the times that were
           written down (no skew of clocks is granted); or the record itself names who asked; or
           the record can only come from a node
likely     of all principals only this one was allowed what the change needs, at that time; or the
           body fits, but the record lies outside of the request by less than the skew
ambiguous  several principals fit equally well: they are the candidates, and there is no name
unknown    there is no evidence: no name, and the reason says what would have to be logged
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
    "no fitting line: allowed requests are logged only at DEBUG of kafka.authorizer.logger, by the "
    "active controller; request bodies at DEBUG of kafka.request.logger"
)
_TWICE: Final = "; the log's local time came twice that night, so its line may be of an hour away"
_OUTSIDE: Final = (
    "; but the record lies outside it by less than the skew: a clock is off, or it was another one"
)
_AUTO: Final = ("Metadata", "StreamsGroupHeartbeat")


class Witness(NamedTuple):
    """A line of a log, as evidence."""

    host: str | None
    client_id: str | None
    request: str | None
    file: str
    position: int
    text: str
    came_twice: bool


class Candidate(NamedTuple):
    """What speaks for a principal; for None what the controller says."""

    principal: str | None
    strength: int
    mentions: bool
    lines: int
    requests: Sequence[str]
    best: Witness
    inside: bool = False
    """The record lies between beginning and end of a request whose body fits, without skew."""

    @property
    def rank(self) -> int:
        """A line on the cluster together with one that names the topic is as good as one on it."""
        return NAMED if self.strength == CLUSTER and self.mentions else self.strength


class Verdict(NamedTuple):
    """Who did it, how sure that is, and why."""

    cause: str
    who: str | None
    confidence: str
    reason: str
    best: Candidate | None
    candidates: tuple[Candidate, ...]
    """Of principals, the strongest first."""


def judge(cause: Cause, found: Sequence[Candidate]) -> Verdict:
    """The verdict on a change; `found`: one candidate for each principal."""
    people = sorted(
        (one for one in found if one.principal is not None and one.rank >= CLUSTER),
        key=lambda one: (-one.rank, one.principal),
    )
    if cause.who is not None:
        best = next((one for one in people if one.principal == cause.who), None)
        return Verdict(cause.cause, cause.who, CERTAIN, cause.reason, best, tuple(people))
    if cause.cause not in (REQUEST, UNKNOWN) or not people:
        return _nobody(cause, found)
    top = [one for one in people if one.rank == people[0].rank]
    twice = _TWICE if any(one.best.came_twice for one in top) else ""
    if len(top) > 1:
        reason = f"{len(top)} principals fit: {', '.join(str(one.principal) for one in top[:5])}"
        return Verdict(REQUEST, None, AMBIGUOUS, reason + twice, top[0], tuple(people))
    best = top[0]
    confidence = CERTAIN if best.rank == BODY and best.inside and not twice else LIKELY
    return Verdict(
        REQUEST, best.principal, confidence, _why(best, people) + twice, best, tuple(people)
    )


def _nobody(cause: Cause, found: Sequence[Candidate]) -> Verdict:
    """No person: a node did it, or nobody knows."""
    told = next((one for one in found if one.principal is None), None)
    if cause.cause not in (REQUEST, UNKNOWN):
        reason = (
            cause.reason
            if told is None
            else f"{cause.told or cause.reason}; the controller says so"
        )
        confidence = CERTAIN if cause.sure or told is not None else LIKELY
        return Verdict(cause.cause, None, confidence, reason, told, ())
    reason = "; ".join(part for part in (cause.reason, LOG_MORE) if part)
    return Verdict(cause.otherwise, None, NO_EVIDENCE, reason, told, ())


def _why(best: Candidate, people: Sequence[Candidate]) -> str:
    if best.rank == BODY:
        reason = f"{best.best.request} with this content, answered without an error"
        return reason if best.inside else reason + _OUTSIDE
    reason = f"the only one whose {best.best.request} was allowed just then"
    if best.strength == CLUSTER:
        reason += ", by a right on the cluster; "
        reason += "a line of it names the topic" if best.mentions else "no line names the topic"
    if auto := [name for name in best.requests if name in _AUTO]:
        reason += f"; a broker asked on behalf of its {auto[0]} request"
    others = len(people) - 1
    return reason + (f"; {others} more had a right on the cluster only" if others else "")
