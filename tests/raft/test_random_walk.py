"""Random walks keep Raft's laws; and the walk is worth something: it finds planted bugs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.raft import election
from quorate.raft.durable import Durable
from quorate.raft.log_index import LogIndex
from quorate.raft.outbox import Outbox
from quorate.raft.ready import Reply
from raft.walk import Walk

SHAPES: dict[str, dict[str, object]] = {
    "one": {"voters": 1, "spare": 1},
    "three": {"voters": 3},
    "five": {"voters": 5},
    "changing": {"voters": 3, "spare": 2},
    "static": {"voters": 3, "spare": 1, "static": True},
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(6))
def test_laws_hold(shape: str, seed: int) -> None:
    Walk(seed, **SHAPES[shape]).go(1500)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_laws_hold_for_long(shape: str) -> None:
    for seed in range(100, 120):
        Walk(seed, **SHAPES[shape]).go(4000)  # type: ignore[arg-type]


def speak_before_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    def reply(self: Outbox, reply_to: int, response: object) -> None:
        self.replies.append(Reply(reply_to, response))  # type: ignore[arg-type]

    monkeypatch.setattr(Outbox, "reply", reply)


def ask_before_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Durable, "election", property(lambda self: True))


def fetch_before_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Durable, "log", property(lambda self: True))


def count_before_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    def appended(self: Durable, end_offset: int) -> None:
        self.log_seq = self.next_seq
        self.end_offset = end_offset

    monkeypatch.setattr(Durable, "appended", appended)


def vote_for_shorter_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    true_grants = election.grants
    monkeypatch.setattr(
        election, "grants", lambda role, e, key, up, pre: true_grants(role, e, key, True, pre)
    )


def vote_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    def grants(role: object, e: object, key: object, up: bool, pre: bool) -> bool:
        return up

    monkeypatch.setattr(election, "grants", grants)


def take_any_place_for_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first line of the lessons of others: no look at the last fetched epoch."""
    true_validate = LogIndex.validate

    def validate(self: LogIndex, offset: int, epoch: int) -> object:
        found = self.end_offset_for_epoch(epoch)
        if found.epoch != epoch and offset <= self.end_offset:
            return None
        return true_validate(self, offset, epoch)

    monkeypatch.setattr(LogIndex, "validate", validate)


BUGS: list[Callable[[pytest.MonkeyPatch], None]] = [
    speak_before_durable,
    ask_before_durable,
    fetch_before_durable,
    count_before_durable,
    vote_for_shorter_logs,
    vote_twice,
    take_any_place_for_valid,
]


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_the_walk_finds(
    bug: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError):
        for seed in range(250):
            Walk(seed, **SHAPES[["three", "changing", "one"][seed % 3]]).go(3000)  # type: ignore[arg-type]
