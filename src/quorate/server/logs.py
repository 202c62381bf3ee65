"""Logging to stderr, as text or as one JSON object per line."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
import time
from collections.abc import Mapping
from typing import Final, Literal

from quorate.base.notes import Fault, Warn
from quorate.node.loggers import ROOT_LOGGER
from quorate.server.log_sources import Sources, source_of

LOG: Final = logging.getLogger("quorate")
LOGGERS: Final = (LOG, logging.getLogger("asyncio"))
"""The loggers that write to the node's log."""

Format = Literal["human", "json"]

PERIOD_S: Final = 60.0
_MAX_KINDS: Final = 1000
_CONTROLS: Final = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")
"""All control characters except the line feed."""


def level_of(note: str) -> int:
    """The logging level of a note."""
    if isinstance(note, Fault):
        return logging.ERROR
    return logging.WARNING if isinstance(note, Warn) else logging.INFO


class _Kind:
    """The lines of a kind in this minute."""

    def __init__(self) -> None:
        self.count = 0
        """Of all lines, also of those that were left out."""
        self.sources = Sources()


class RateLimitedLog:
    """Logs the first `most` lines of a kind per minute, then how many more there were.

    For events that a peer or client can cause at any rate. The first line of a source, such as an address,
    is logged beyond `most`, too: many lines of one source hide no other one. That holds for 100 sources a
    minute; of others, their number and their largest networks are logged.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, most: int) -> None:
        self._loop = loop
        self._most = most
        self._seen: dict[tuple[int, str], _Kind] = {}
        self._timer: asyncio.TimerHandle | None = None

    def log(self, level: int, kind: str, text: str, source: str = "") -> None:
        """Log `text`, unless there were too many lines of its kind in this minute.

        `source`: who caused it, to be counted apart; empty: not known. The IPv6 addresses of a /64 are one.
        """
        source = source_of(source)
        seen = self._seen.setdefault((level, kind), _Kind())
        seen.count += 1
        if seen.sources.is_first(source) or seen.count <= self._most:
            LOG.log(level, "%s", text)
        else:
            seen.sources.leave_out(source)
        if len(self._seen) > _MAX_KINDS:
            self.flush()
        elif self._timer is None:
            self._timer = self._loop.call_later(PERIOD_S, self.flush)

    def flush(self) -> None:
        """Log how many lines were left out, and start a new period."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        seen, self._seen = self._seen, {}
        for (level, kind), lines in seen.items():
            total, text = lines.sources.left_out(), lines.sources.text()
            if total:
                LOG.log(level, "%s (%d more times within a minute%s)", kind, total, text)


class _Human(logging.Formatter):
    """`2026-11-21 07:48:10,123 INFO node 1: what happened`.

    A message may quote text that a peer sent. Control characters are escaped and further lines are
    indented, so that such text cannot forge a log line or control the terminal.
    """

    def __init__(self, node_id: int | None) -> None:
        super().__init__(f"%(asctime)s %(levelname)s node {node_id}: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record).replace("\n", "\n    ")
        return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


class _Json(logging.Formatter):
    def __init__(self, node_id: int | None) -> None:
        super().__init__()
        self._node_id = node_id

    def format(self, record: logging.LogRecord) -> str:
        facts: dict[str, object] = {
            "time": self._time(record),
            "level": record.levelname,
            "node": self._node_id,
            "message": record.getMessage(),
        }
        if record.exc_info:
            facts["exception"] = self.formatException(record.exc_info)
        text = json.dumps(facts, ensure_ascii=False)  # escapes the controls below U+0020 only
        return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)

    @staticmethod
    def _time(record: logging.LogRecord) -> str:
        whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        return f"{whole}.{int(record.msecs):03d}Z"


def configure(node_id: int | None, style: Format = "human", level: str = "INFO") -> None:
    """Log everything at `level` and above to stderr; `node_id` is None while it is unknown."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json(node_id) if style == "json" else _Human(node_id))
    for logger in LOGGERS:
        logger.handlers[:] = [handler]
        logger.propagate = False
    LOG.setLevel(level)
    logging.getLogger().setLevel(level)  # of a logger whose own level a client takes away
    logging.getLogger("asyncio").setLevel(logging.WARNING)


_TO_PYTHON: Final = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": logging.DEBUG // 2,
}
"""Kafka's levels, the gravest first."""


class PythonLoggers:
    """Python's loggers that `configure` sets up, and the root logger: clients change their levels."""

    def levels(self) -> Mapping[str, str]:
        found = {logger.name: logger for logger in (*LOGGERS, logging.getLogger())}
        return {name: _kafka_level(one.getEffectiveLevel()) for name, one in found.items()}

    def set_level(self, name: str, level: str) -> None:
        _logger(name).setLevel(_TO_PYTHON[level])

    def unset_level(self, name: str) -> None:
        _logger(name).setLevel(logging.NOTSET)


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT_LOGGER else name)


def _kafka_level(level: int) -> str:
    """The gravest of Kafka's levels at which such a logger still logs nothing graver."""
    return next((name for name, number in _TO_PYTHON.items() if level >= number), "TRACE")
