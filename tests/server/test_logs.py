"""Log lines: how grave a note is, and what is left out when the same is said again and again."""

import asyncio
import logging

import pytest

from quorate.base.notes import Fault, Warn
from quorate.server import logs
from quorate.server.logs import Sparing, level_of


class FakeLoop:
    """Keeps the timers instead of waiting for them."""

    def __init__(self):
        self.timers = []

    def call_later(self, delay_s, call):
        loop = asyncio.new_event_loop()
        loop.close()
        handle = asyncio.TimerHandle(delay_s, call, (), loop)
        self.timers.append(handle)
        return handle

    def pass_a_minute(self):
        timers, self.timers = self.timers, []
        for timer in timers:
            if not timer.cancelled():
                timer._run()


@pytest.mark.parametrize(
    ("note", "level"),
    [("news", logging.INFO), (Warn("hm"), logging.WARNING), (Fault("no"), logging.ERROR)],
)
def test_the_level_of_a_note(note, level):
    assert level_of(note) == level


def test_an_operator_who_wants_warnings_gets_no_news(capsys):
    kept = logs.LOG.handlers[:], logs.LOG.level, logs.LOG.propagate
    try:
        logs.configure(1, level="WARNING")
        for note in ("news", Warn("repaired"), Fault("broken")):
            logs.LOG.log(level_of(note), "%s", note)
    finally:
        logs.LOG.handlers[:], logs.LOG.level, logs.LOG.propagate = kept
        logging.getLogger("asyncio").handlers.clear()
    told = capsys.readouterr().err
    assert "WARNING node 1: repaired" in told and "ERROR node 1: broken" in told
    assert "news" not in told


@pytest.mark.parametrize("style", ["human", "json"])
def test_what_a_peer_says_looks_like_no_line_of_the_log(capsys, style):
    kept = logs.LOG.handlers[:], logs.LOG.level, logs.LOG.propagate
    try:
        logs.configure(1, style)
        logs.LOG.warning("host [%s] moved", "x\n2026-11-24 ERROR node 1: forged \x1b[31m\r")
    finally:
        logs.LOG.handlers[:], logs.LOG.level, logs.LOG.propagate = kept
        logging.getLogger("asyncio").handlers.clear()
    told = capsys.readouterr().err
    assert not any(line.startswith("2026-11-24 ERROR") for line in told.splitlines())
    assert not {"\x1b", "\r"} & set(told) and told.count("forged") == 1


def test_a_note_repeated_again_and_again_is_counted(caplog):
    loop = FakeLoop()
    sparing = Sparing(loop, 3)
    with caplog.at_level(logging.INFO, "quorate"):
        for _ in range(50):
            sparing.log(logging.WARNING, "leader 2 errs", "leader 2 errs")
        sparing.log(logging.INFO, "other", "other")
        assert caplog.messages == ["leader 2 errs"] * 3 + ["other"]
        loop.pass_a_minute()
        assert caplog.messages[4:] == ["leader 2 errs (47 more times within a minute)"]
        assert caplog.records[-1].levelno == logging.WARNING
        sparing.log(logging.INFO, "leader 2 errs", "leader 2 errs")
        loop.pass_a_minute()
    assert caplog.messages[5:] == ["leader 2 errs"]


def test_many_different_notes_are_not_kept_for_ever():
    sparing = Sparing(FakeLoop(), 1)
    for number in range(100_000):
        sparing.log(logging.DEBUG, f"note {number}", "x")
    assert len(sparing._seen) <= 1001
