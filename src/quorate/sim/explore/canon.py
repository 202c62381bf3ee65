"""When two replicas are the same: all that decides what they will do, and nothing else.

Two cores with equal keys answer every future event alike. Left out of the key, and why:

- configuration and chance: they are those of the node, and never change;
- absolute times: a deadline counts as what is left of it, one that has passed as 0. The age of
  what a leader last heard counts up to AGE_MS: above that, up to the five minutes after which an
  observer is forgotten, no rule tells ages apart, and no path passes as much time;
- seqs of writes: counted from what is durable; correlation ids: by whom they ask;
- who is `gone`: asked in a shutdown only, and there is none here; what a step has collected: it
  was handed out with its Ready.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable
from dataclasses import is_dataclass
from enum import Enum
from typing import Any, Final

from quorate.raft.durable import Durable
from quorate.raft.outbox import Outbox
from quorate.raft.progress import Row
from quorate.raft.reconfig_state import AskingVersions
from quorate.raft.requests import Requests
from quorate.raft.roles import NEVER
from quorate.raft.state import State
from quorate.raft.voters import VoterSet

START: Final = 1 << 40
"""Where every clock begins, ms: so large that no other number looks like a time."""
AGE_MS: Final = 5_000
_LEAST_TIME: Final = 1 << 39
_STATE: Final = (
    "controls",
    "election",
    "high_watermark",
    "installing",
    "log",
    "role",
    "shutdown_deadline",
    "told",
)


def core_key(s: State) -> tuple[Any, ...]:
    """A hashable value, equal for cores that behave alike from now on."""
    now = s.now
    parts = [_canon(getattr(s, name), now) for name in _STATE]
    role = s.role
    change = getattr(role, "change", None)
    asks = isinstance(change, AskingVersions) and any(
        flight.correlation == change.correlation for flight in s.requests._by_node.values()
    )
    return (*parts, asks, _durable(s.durable), _held(s.out), _requests(s.requests, now))


def _durable(d: Durable) -> tuple[Any, ...]:
    ends = tuple((seq - d.seq, end) for seq, end in d._ends)
    issued = d._issued - d.seq
    return d.end_offset, max(d.election_seq - d.seq, 0), max(d.log_seq - d.seq, 0), ends, issued


def _held(out: Outbox) -> tuple[Any, ...]:
    return tuple((seq - out._durable.seq, reply) for seq, reply in out._held)


def _requests(requests: Requests, now: int) -> tuple[Any, ...]:
    flights = [
        (to, flight.request, max(flight.expires_ms - now, 0))
        for to, flight in sorted(requests._by_node.items())
    ]
    rests = [(to, until - now) for to, until in sorted(requests._backoff.items()) if until > now]
    return tuple(flights), tuple(rests)


def _row(row: Row, now: int) -> tuple[Any, ...]:
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


_SPECIAL: Final[dict[type, Callable[[Any, int], Any]]] = {Row: _row, AskingVersions: _asking}


def _canon(x: Any, now: int) -> Any:
    kind = type(x)
    if kind is int:
        return _number(x, now)
    if x is None or kind in (bool, str, bytes, VoterSet) or isinstance(x, Enum):
        return x
    if kind in (tuple, list, deque, array):
        return tuple(_canon(item, now) for item in x)
    if kind in (set, frozenset):
        return tuple(sorted(x))
    if kind is dict:
        return tuple((k, _canon(v, now)) for k, v in sorted(x.items()))
    if isinstance(x, tuple) or (is_dataclass(x) and kind.__hash__ is not None):
        return x
    special = _SPECIAL.get(kind)
    if special is not None:
        return special(x, now)
    # Of a compiled class mypyc keeps the names elsewhere.
    names = getattr(kind, "__mypyc_attrs__", None) or kind.__slots__
    return kind.__name__, *(_canon(getattr(x, n), now) for n in names if n != "__dict__")


def _number(x: int, now: int) -> Any:
    if x < _LEAST_TIME:
        return x
    return "never" if x >= NEVER else ("in", max(x - now, 0))
