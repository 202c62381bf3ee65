"""The requests of a scenario's clients: the words after `ask <node>` as a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from quorate.base.ids import LeaderAndEpoch
from quorate.raft.messages import (
    AddVoterRequest,
    BeginQuorumEpochRequest,
    FetchRequest,
    RemoveVoterRequest,
    Request,
    UpdateVoterRequest,
    VoteRequest,
)
from quorate.sim.scenario.errors import CommandError
from quorate.sim.scenario.names import CLUSTER_ID, key, listeners

_MAX_BYTES: Final = 1 << 20


class _Options:
    """The options of one request by name."""

    def __init__(self, kind: str, words: Mapping[str, str]) -> None:
        self._kind = kind
        self._words = words
        self._used: set[str] = set()

    def word(self, name: str, default: str) -> str:
        self._used.add(name)
        return self._words.get(name, default)

    def number(self, name: str, default: int | None = None) -> int:
        self._used.add(name)
        word = self._words.get(name)
        if word is None:
            if default is None:
                raise CommandError(f"ask {self._kind} needs {name}=<number>")
            return default
        try:
            number = int(word)
        except ValueError:
            raise CommandError(f"{name}={word} is not a number") from None
        if not -1 <= number < 1 << 31:
            raise CommandError(f"{name}={word} is not from -1, for none, to {(1 << 31) - 1}")
        return number

    def nothing_left(self) -> None:
        if left := sorted(set(self._words) - self._used):
            raise CommandError(f"ask {self._kind} has no option {left[0]}=")


def request(kind: str, words: Mapping[str, str]) -> Request:
    """The request of this kind; raises CommandError for an unknown kind, name or number."""
    build = _KINDS.get(kind)
    if build is None:
        raise CommandError(f"there is no request '{kind}'; there are {', '.join(_KINDS)}")
    options = _Options(kind, words)
    found = build(options)
    options.nothing_left()
    return found


def _add(o: _Options) -> Request:
    node = o.number("voter")
    ack = o.word("ack", "commit")
    if ack not in ("commit", "append"):
        raise CommandError(f"ack={ack} is neither commit nor append")
    who = key(node, o.number("disk", 0))
    return AddVoterRequest(CLUSTER_ID, who, listeners(node), ack_when_committed=ack == "commit")


def _remove(o: _Options) -> Request:
    return RemoveVoterRequest(CLUSTER_ID, key(o.number("voter"), o.number("disk", 0)))


def _update(o: _Options) -> Request:
    node = o.number("voter")
    who = key(node, o.number("disk", 0))
    where = listeners(node, moved=o.number("moved", 0) > 0)
    return UpdateVoterRequest(CLUSTER_ID, o.number("epoch"), who, where, 0, o.number("max", 1))


def _begin(o: _Options) -> Request:
    leader = LeaderAndEpoch(o.number("leader"), o.number("epoch"))
    more = o.number("listeners", 1) > 1
    return BeginQuorumEpochRequest(CLUSTER_ID, None, leader, listeners(leader.leader_id, more=more))


def _fetch(o: _Options) -> Request:
    replica = key(o.number("replica"), o.number("disk", 0))
    epoch, last, offset = o.number("epoch"), o.number("last"), o.number("offset")
    return FetchRequest(CLUSTER_ID, replica, epoch, offset, last, 0, _MAX_BYTES, -1)


def _vote(o: _Options, *, pre_vote: bool = False) -> Request:
    candidate = key(o.number("candidate"), o.number("disk", 0))
    return VoteRequest(
        CLUSTER_ID,
        None,
        o.number("epoch"),
        candidate,
        o.number("last"),
        o.number("offset"),
        pre_vote,
    )


def _pre_vote(o: _Options) -> Request:
    return _vote(o, pre_vote=True)


_KINDS: Final[Mapping[str, Callable[[_Options], Request]]] = {
    "Add": _add,
    "Remove": _remove,
    "Update": _update,
    "Begin": _begin,
    "Fetch": _fetch,
    "Vote": _vote,
    "PreVote": _pre_vote,
}
