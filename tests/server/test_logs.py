"""Log lines: levels of notes, escapes, and the limit on repeated lines."""

import asyncio
import logging
import re

import pytest

from narrow import as_any
from quorate.base.notes import Fault, Warn
from quorate.server import logs
from quorate.server.logs import RateLimitedLog, level_of


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
    [("info", logging.INFO), (Warn("hm"), logging.WARNING), (Fault("no"), logging.ERROR)],
)
def test_the_level_of_a_note(note, level):
    assert level_of(note) == level


def test_the_level_warning_hides_information(capsys):
    kept = logs.LOG.handlers[:], logs.LOG.level, logs.LOG.propagate
    try:
        logs.configure(1, level="WARNING")
        for note in ("info", Warn("repaired"), Fault("broken")):
            logs.LOG.log(level_of(note), "%s", note)
    finally:
        logs.LOG.handlers[:], logs.LOG.level, logs.LOG.propagate = kept
        logging.getLogger("asyncio").handlers.clear()
    logged = capsys.readouterr().err
    assert "WARNING node 1: repaired" in logged and "ERROR node 1: broken" in logged
    assert "info" not in logged


@pytest.mark.parametrize("style", ["human", "json"])
def test_text_from_a_peer_cannot_forge_a_log_line(capsys, style):
    kept = logs.LOG.handlers[:], logs.LOG.level, logs.LOG.propagate
    try:
        logs.configure(1, style)
        logs.LOG.warning(
            "host [%s] moved", "x\n2026-11-24 ERROR node 1: forged \x1b[31m\r\x9b\x85\u2028"
        )
    finally:
        logs.LOG.handlers[:], logs.LOG.level, logs.LOG.propagate = kept
        logging.getLogger("asyncio").handlers.clear()
    logged = capsys.readouterr().err
    assert not any(line.startswith("2026-11-24 ERROR") for line in logged.splitlines())
    assert not {*"\x1b\r\x9b\x85\u2028"} & set(logged) and logged.count("forged") == 1


def test_a_repeated_note_is_counted(caplog):
    loop = FakeLoop()
    sparing = RateLimitedLog(as_any(loop), 3)
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


def test_many_lines_of_one_source_hide_no_other(caplog):
    loop = FakeLoop()
    sparing = RateLimitedLog(as_any(loop), 3)

    def refuse(host, times=1):
        for _ in range(times):
            sparing.log(logging.WARNING, "Refused", f"Refused {host}", host)

    with caplog.at_level(logging.INFO, "quorate"):
        refuse("10.0.0.1", 50)
        refuse("10.0.0.2", 3)
        refuse("10.0.0.3")
        hosts = ["10.0.0.1"] * 3 + ["10.0.0.2", "10.0.0.3"]
        assert caplog.messages == [f"Refused {host}" for host in hosts]
        loop.pass_a_minute()
        [last] = caplog.messages[5:]
        assert last == "Refused (49 more times within a minute: 47 from 10.0.0.1, 2 from 10.0.0.2)"
        refuse("10.0.0.2")
        assert caplog.messages[6:] == ["Refused 10.0.0.2"]


def test_the_number_of_sources_is_bounded(caplog):
    loop = FakeLoop()
    sparing = RateLimitedLog(as_any(loop), 3)
    with caplog.at_level(logging.INFO, "quorate"):
        for number in range(60_000):
            sparing.log(logging.WARNING, "Refused", "x", f"fe80:0:0:{number:x}::1")
        assert len(caplog.messages) == 100
        sparing.log(logging.WARNING, "Refused", "x", "fe80:0:0:7::2")
        loop.pass_a_minute()
        [last] = caplog.messages[100:]
        assert last.endswith(" other sources (at least 59900 from fe80::/48))")
        found = re.search(r"59901 .*: 1 from fe80:0:0:7::/64, 59900 from about (\d+)", last)
        assert found is not None
        assert 58_000 < int(found[1]) < 62_000


def test_late_sources_are_named_by_their_largest_networks(caplog):
    """A scan from everywhere hides neither a single late address nor a network that sends a lot."""
    loop = FakeLoop()
    sparing = RateLimitedLog(as_any(loop), 3)

    def refuse(address, times=1):
        for _ in range(times):
            sparing.log(logging.WARNING, "Refused", "x", address)

    def summary():
        loop.pass_a_minute()
        return caplog.messages[-1]

    for number in range(200):
        refuse(f"10.1.{number}.1")
    refuse("10.9.9.9", 300)
    assert "10.9.9.9" in summary()
    for number in range(100):
        refuse(f"10.1.{number}.1")
    refuse("host.example", 2)
    refuse("fe80::1")
    assert summary().endswith(
        "(3 more times within a minute: 3 from 2 other sources "
        "(at least 2 from host.example, 1 from fe80::/64))"
    )
    for number in range(100):
        refuse(f"10.1.{number}.1")
    for number in range(30_000):
        refuse(f"10.{number % 200}.{number // 200}.1")
        refuse(f"172.16.5.{number % 50}", number % 2)
    last = summary()
    assert "from 172.16.5.0/24" in last and " from about " in last
    assert len(last) < 6_000
    assert "10.9.9.9" not in last, "each minute begins anew"


def test_the_number_of_remembered_notes_is_bounded():
    sparing = RateLimitedLog(as_any(FakeLoop()), 1)
    for number in range(100_000):
        sparing.log(logging.DEBUG, f"note {number}", "x")
    assert len(sparing._seen) <= 1001
