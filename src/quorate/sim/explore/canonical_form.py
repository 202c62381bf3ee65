"""The canonical form of a core: everything that decides its behaviour, and nothing else.

Two cores with equal keys respond equally to every future event. The key leaves out:

- the configuration and the random source, which belong to the node and never change;
- absolute times: a deadline counts as the remaining time, 0 once it has passed. The age of a
  contact counts up to AGE_MS: no rule distinguishes older ages below the five minutes after which
  an observer expires, and no path takes as long;
- sequence numbers of writes, counted from what is durable, and correlation ids, replaced by the
  receiver;
- unreachable peers, which only a shutdown uses, and there is none here; and the outputs of a step,
  which its Ready has returned.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable
from dataclasses import is_dataclass
from enum import Enum
from typing import Any, Final

from quorate.raft.durable import DurabilityTracker
from quorate.raft.outbox import Outbox
from quorate.raft.progress import ReplicaProgress
from quorate.raft.reconfig_state import AskingVersions
from quorate.raft.requests import RequestManager
from quorate.raft.roles import NEVER
from quorate.raft.state import RaftState
from quorate.raft.voters import VoterSet

START: Final = 1 << 40
"""Initial time of every clock, ms: so large that no other number is taken for a time."""
AGE_MS: Final = 5_000
_LEAST_TIME: Final = 1 << 39
_STATE: Final = (
    "controls",
    "election",
    "high_watermark",
    "installing",
    "log",
    "reported_leader",
    "role",
    "shutdown_deadline",
)


def core_key(s: RaftState) -> tuple[Any, ...]:
    """A hashable value, equal for cores that behave alike from now on."""
    now = s.now
    parts = [_canonical(getattr(s, name), now) for name in _STATE]
    role = s.role
    change = getattr(role, "change", None)
    asks = isinstance(change, AskingVersions) and any(
        flight.correlation == change.correlation for flight in s.requests.by_node.values()
    )
    held = _held(s.out, s.durable.seq)
    return (*parts, asks, _durable(s.durable), held, _requests(s.requests, now))


def _durable(d: DurabilityTracker) -> tuple[Any, ...]:
    ends = tuple((seq - d.seq, end) for seq, end in d.pending_ends)
    issued = d.next_seq - 1 - d.seq
    return d.end_offset, max(d.election_seq - d.seq, 0), max(d.log_seq - d.seq, 0), ends, issued


def _held(out: Outbox, durable_seq: int) -> tuple[Any, ...]:
    return tuple((seq - durable_seq, reply) for seq, reply in out.held)


def _requests(requests: RequestManager, now: int) -> tuple[Any, ...]:
    flights = [
        (to, flight.request, max(flight.expires_ms - now, 0))
        for to, flight in sorted(requests.by_node.items())
    ]
    backoffs = [
        (to, until - now) for to, until in sorted(requests.backoff_until.items()) if until > now
    ]
    return tuple(flights), tuple(backoffs)


def _row(row: ReplicaProgress, now: int) -> tuple[Any, ...]:
    return (
        row.key,
        row.end_offset,
        _age(row.last_fetch_ms, now),
        row.last_fetch_leader_end,
        _age(row.last_caught_up_ms, now),
        row.acknowledged,
    )


def _age(at_ms: int, now: int) -> int:
    return -1 if at_ms < 0 else min(now - at_ms, AGE_MS)


def _asking(change: AskingVersions, now: int) -> tuple[Any, ...]:
    left = max(change.deadline - now, 0)
    return change.reply_to, change.voter, change.listeners, change.ack_when_committed, left


_SPECIAL: Final[dict[type, Callable[[Any, int], Any]]] = {
    ReplicaProgress: _row,
    AskingVersions: _asking,
}


def _canonical(x: Any, now: int) -> Any:
    kind = type(x)
    if kind is int:
        return _number(x, now)
    if x is None or kind in (bool, str, bytes, VoterSet) or isinstance(x, Enum):
        return x
    if kind in (tuple, list, deque, array):
        return tuple(_canonical(item, now) for item in x)
    if kind in (set, frozenset):
        return tuple(sorted(x))
    if kind is dict:
        return tuple((k, _canonical(v, now)) for k, v in sorted(x.items()))
    if isinstance(x, tuple) or (is_dataclass(x) and kind.__hash__ is not None):
        return x
    special = _SPECIAL.get(kind)
    if special is not None:
        return special(x, now)
    # mypyc keeps the attribute names of a compiled class in another place than __slots__.
    names = getattr(kind, "__mypyc_attrs__", None) or kind.__slots__
    return kind.__name__, *(_canonical(getattr(x, n), now) for n in names if n != "__dict__")


def _number(x: int, now: int) -> Any:
    if x < _LEAST_TIME:
        return x
    return "never" if x >= NEVER else ("in", max(x - now, 0))
