"""Where `quorate cluster events` reads audit trails: files of a node, or the page of a running node."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from time import sleep
from typing import Any, Final, Protocol
from urllib.parse import urlencode

import click

from quorate.base.errors import QuorateError
from quorate.base.ids import Address
from quorate.base.times import parse_time_in_utc
from quorate.cli.columns import cell, fold
from quorate.cli.tools.page_access import PageAccess, PageAccessError
from quorate.config.host_port import parse_host_port
from quorate.server.audit_log import parse_entries, trail_files

Entry = dict[str, Any]
_POLL_S: Final = 0.5


class EventsError(QuorateError):
    """A source cannot be read: which one, why, and what to do."""


class Source(Protocol):
    """The trail of one node."""

    notices: list[str]
    """What the user should know of what was read; the caller empties it."""

    def read(self) -> list[Entry]:
        """The entries since the last call, the oldest first. Raises EventsError."""


def open_source(text: str, access: PageAccess | None = None) -> Source:
    """A directory, a file, or `HOST:PORT` of `quorate.metrics.listener`. Raises EventsError.

    access: what the listeners ask for
    """
    path = Path(text)
    if path.exists():
        return TrailFiles(path)
    address = parse_host_port(re.sub("^https?://", "", text).rstrip("/"))
    if address is None or "/" in address.host:
        raise EventsError(
            f"{text} is neither a file or directory (quorate.audit.dir) nor HOST:PORT of a node's "
            "quorate.metrics.listener"
        )
    return TrailPage(address, access)


class TrailFiles:
    """The trail on disk, also while the node writes it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.notices: list[str] = []
        self._seen: tuple[int, int] | None = None
        """The inode of the file that was read last, and the position after its last whole line."""

    def read(self) -> list[Entry]:
        """Read what is new.

        1. Open the files, the newest first: a rotation meanwhile moves one to a name that comes later,
           so none is missed. The inode shows that a file was opened twice.
        2. Go back to the file where the last call ended; where it is deleted, all files are new.
        """
        is_folder = self._path.is_dir()
        files: dict[int, bytes] = {}
        try:
            for path in trail_files(self._path) if is_folder else [self._path]:
                if not path.exists():
                    continue
                with path.open("rb") as file:
                    inode = os.fstat(file.fileno()).st_ino
                    if inode in files:
                        continue
                    last = self._seen is not None and self._seen[0] == inode
                    if last and self._seen is not None:
                        file.seek(self._seen[1])
                    files[inode] = file.read()
                if last:
                    break
        except OSError as error:
            raise EventsError(f"{self._path}: {error.strerror or error}") from None
        if not files and self._seen is None:
            raise EventsError(
                f"{self._path} has no audit.jsonl: is it quorate.audit.dir of a node?"
            )
        return self._parsed(files)

    def _parsed(self, files: dict[int, bytes]) -> list[Entry]:
        found: list[Entry] = []
        for inode, data in reversed(files.items()):
            whole = data[: data.rfind(b"\n") + 1]
            start = self._seen[1] if self._seen is not None and self._seen[0] == inode else 0
            found += parse_entries(whole)
            self._seen = inode, start + len(whole)
        return found


class TrailPage:
    """The newest entries in the memory of a running node, from its page `/audit`."""

    def __init__(self, address: Address, access: PageAccess | None = None) -> None:
        self._access = access or PageAccess()
        self._address = address
        self.notices: list[str] = []
        self._start: str | None = None
        """Names the process that numbered the entries."""
        self._next = 0

    def read(self) -> list[Entry]:
        found: list[Entry] = []
        while True:
            page = self._page()
            is_new = page["start"] != self._start
            self._start = page["start"]
            if is_new and self._next > 0:
                self._next = 0  # the node has started again and counts from 0
                continue
            if page["from"] > self._next:
                self.notices.append(
                    f"{self._address}: {page['from'] - self._next} entries are no longer in the "
                    "memory of the node: quorate.audit.dir has them"
                )
            self._next = page["next"]
            found += page["entries"]
            if self._next >= page["end"]:
                return found

    def _page(self) -> dict[str, Any]:
        try:
            answer = self._access.get(self._address, "/audit?" + urlencode({"from": self._next}))
        except PageAccessError as error:
            raise EventsError(str(error)) from None
        if answer.status == HTTPStatus.NOT_FOUND:
            raise EventsError(
                f"{self._address} has no page /audit: set quorate.audit.dir on that node, and give "
                "the address of its quorate.metrics.listener"
            )
        try:
            page = json.loads(answer.body)
            if answer.status == HTTPStatus.OK and isinstance(page["entries"], list):
                return dict(page)
        except (ValueError, TypeError, KeyError):
            pass
        raise EventsError(
            f"{self._address}/audit answered {answer.status}, which is no audit trail: is it "
            "quorate.metrics.listener of a node?"
        )


@dataclass(frozen=True)
class Filter:
    """Which entries to show; an empty tuple or text lets all pass."""

    since: str = ""
    """In the form of the field `time`."""
    principals: tuple[str, ...] = ()
    apis: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    failed: bool = False

    def passes(self, entry: Entry) -> bool:
        """Whether the entry is shown."""
        return (
            str(entry.get("time", "")) >= self.since
            and (not self.principals or entry.get("principal") in self.principals)
            and (not self.apis or _lower(entry.get("request")) in map(_lower, self.apis))
            and (not self.failed or entry.get("result") != "NONE")
            and (not self.topics or any(_names(entry.get("what"), t) for t in self.topics))
        )


def watch(sources: list[Source], kept: Filter, *, follow: bool, as_json: bool) -> int:
    """Print what passes; with `follow` for ever. Returns the exit code.

    A source that cannot be read is named on stderr, once until it can be read again.
    """
    failing: dict[Source, str] = {}
    while True:
        found: list[Entry] = []
        for source in sources:
            try:
                found += source.read()
                failing.pop(source, None)
            except EventsError as error:
                if failing.get(source) != str(error):
                    click.echo(error, err=True)
                failing[source] = str(error)
            for notice in source.notices:
                click.echo(notice, err=True)
            source.notices.clear()
        entries = merged(found, kept)
        if as_json and not follow:
            click.echo(json.dumps(entries, indent=2))
        for entry in entries if follow or not as_json else ():
            for shown in (json.dumps(entry),) if as_json else fold([line(entry)]):
                click.echo(shown)
        if not follow:
            return 1 if failing else 0
        sleep(_POLL_S)


def merged(entries: Iterable[Entry], kept: Filter) -> list[Entry]:
    """The entries that pass, in the order of time; of one time, in the order of the log."""

    def place(entry: Entry) -> tuple[str, int, float]:
        # The last entry of an operation in parts may have no records: the others come before it.
        no_offset = math.inf if "part" in entry else -1
        offset = entry.get("firstOffset", no_offset)
        return str(entry.get("time", "")), entry.get("epoch", -1), offset

    return sorted(filter(kept.passes, entries), key=place)


def since_text(text: str) -> str:
    """A time, or a duration before now such as 15m, as the field `time` has it. Raises EventsError."""
    units = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
    try:
        ago = re.fullmatch(r"(\d{1,6})([smhd])", text)
        if ago is not None:
            time = datetime.now(UTC) - timedelta(**{units[ago[2]]: int(ago[1])})
        else:
            time = parse_time_in_utc(text)
    except (ValueError, OverflowError):
        raise EventsError(
            f"--since: '{text}' is neither a time such as 2026-11-26T12:00:00Z nor a duration such as "
            "90s, 15m, 2h or 1d"
        ) from None
    return time.isoformat(timespec="milliseconds")


def line(entry: Entry) -> str:
    """An entry for people."""
    who = entry.get("principal") or "(controller)"
    if entry.get("address"):
        who += f" at {entry['address']}"
    parts = [
        f"{entry.get('time')}  node {entry.get('node')}  epoch {entry.get('epoch')}",
        cell(who),
        cell(entry.get("request")),
        cell(entry.get("result", "NONE")),
    ]
    if "firstOffset" in entry:
        parts.append(f"offsets {entry['firstOffset']} to {entry.get('endOffset', 0) - 1}")
    if "part" in entry:
        end = "" if entry.get("more") else ", the last one"
        parts.append(f"operation {entry.get('operation')} part {entry['part']}{end}")
    if entry.get("uncommitted"):
        parts.append(f"uncommitted {entry['uncommitted']}")
    parts += [
        f"{name} {cell(entry[name])}"
        for name in ("what", "errors", "reason", "elections")
        if entry.get(name)
    ]
    return "  ".join(parts)


def _lower(value: Any) -> str:
    return str(value).lower()


def _names(value: Any, topic: str) -> bool:
    """Whether a part of a request has this name."""
    if isinstance(value, dict):
        return any(_names(part, topic) for part in value.values())
    if isinstance(value, list):
        return any(_names(part, topic) for part in value)
    return bool(value == topic)
