"""Print whole files, each by its kind: logs, snapshots and indexes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import click

from quorate.cli.java_files import absolute_text, file_text
from quorate.cli.tools.dump_batches import (
    BatchOptions,
    DumpProgress,
    LogDump,
    Output,
    can_share,
    dump_alone,
    dump_shared,
)
from quorate.cli.tools.dump_index import (
    IndexChecks,
    IndexFaults,
    IndexLine,
    base_offset,
    dump_index,
    dump_time_index,
    wrong_name,
)
from quorate.cli.tools.dump_producers import (
    CorruptSnapshotError,
    dump_aborted_transactions,
    dump_producers,
)
from quorate.formats.files import (
    BOOTSTRAP_CHECKPOINT,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    PRODUCERS_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)

_SNAPSHOT_NAME: Final = re.compile(r"(\d{20}).(\d{10}).*\.checkpoint")


@dataclass(frozen=True, slots=True)
class DumpLogOptions:
    """The options of one run."""

    batches: BatchOptions
    index: IndexChecks
    max_bytes: int | None
    """Of each file; None: all."""


class Dump:
    """One run of the tool, over all its files."""

    def __init__(self, options: DumpLogOptions, output: Output) -> None:
        self._options = options
        self._output = output
        self._faults = IndexFaults()
        self._gaps: dict[str, dict[int, int]] = {}

    def run(self, paths: list[str]) -> None:
        """Dump every file. Raises DumpError or OSError at the first unreadable one."""
        try:
            for path in paths:
                self._file(file_text(path))
        finally:
            self._output.flush()
        for line in self._faults.lines():
            click.echo(line, err=True)
        for path, pairs in self._gaps.items():
            click.echo(f"Non-consecutive offsets in {path}", err=True)
            for before in sorted(pairs):
                click.echo(f"  {before} is followed by {pairs[before]}", err=True)

    def _file(self, path: str) -> None:
        name = os.path.basename(path)
        suffix = os.path.splitext("x" + name)[1]
        self._print(f"Dumping {path}")
        if suffix in (LOG_SUFFIX, SNAPSHOT_SUFFIX):
            title, facts = _title(path, name, suffix)
            self._print(title, facts | {"path": path})
            self._batches(path)
        elif suffix == INDEX_SUFFIX:
            self._index(dump_index(path, self._options.index, self._faults))
        elif suffix == TIME_INDEX_SUFFIX:
            self._index(dump_time_index(path, self._options.index, self._faults))
        elif suffix == TRANSACTION_INDEX_SUFFIX:
            self._index(dump_aborted_transactions(path))
        elif suffix == PRODUCERS_SUFFIX:
            try:
                self._index(dump_producers(path))
            except CorruptSnapshotError as error:
                self._output.flush()
                click.echo(str(error), err=True)
        else:
            self._output.flush()
            click.echo(f"Ignoring unknown file {path}", err=True)

    def _print(self, line: str, facts: dict[str, object] | None = None) -> None:
        """Print a line of text; with --json its facts, if it has any."""
        if not self._options.batches.as_json:
            self._output.add(line)
        elif facts is not None:
            self._output.add(json.dumps(facts, separators=(",", ":")))

    def _index(self, lines: Iterator[IndexLine]) -> None:
        for line in lines:
            self._print(*line)

    def _batches(self, path: str) -> None:
        options, output = self._options, self._output
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if options.max_bytes is not None:
                size = min(size, options.max_bytes)
            dump = LogDump(path, file.fileno(), size, options.batches)
            progress = DumpProgress()
            try:
                if can_share(dump, output):
                    dump_shared(dump, output, progress)
                else:
                    dump_alone(dump, output, progress)
            finally:
                if progress.trail.gaps:
                    self._gaps[absolute_text(path)] = progress.trail.gaps
        if progress.position < size and options.max_bytes is None:
            left = size - progress.position
            self._print(
                f"Found {left} invalid bytes at the end of {os.path.basename(path)}",
                {"kind": "trailing", "bytes": left, "position": progress.position},
            )


def _title(path: str, name: str, suffix: str) -> tuple[str, dict[str, object]]:
    """The second line of a file's dump, as text and as facts. Raises DumpError, OSError."""
    if suffix == LOG_SUFFIX:
        start = base_offset(path)
        return f"Log starting offset: {start}", {"kind": "log", "startOffset": start}
    if name == BOOTSTRAP_CHECKPOINT:
        return "KRaft bootstrap snapshot", {"kind": "bootstrap"}
    match = _SNAPSHOT_NAME.fullmatch(name)
    if match is None:
        raise wrong_name(path, "a snapshot's file name must have the form OFFSET-EPOCH.checkpoint")
    end, epoch = int(match[1]), int(match[2])
    facts: dict[str, object] = {"kind": "snapshot", "endOffset": end, "epoch": epoch}
    return f"Snapshot end offset: {end}, epoch: {epoch}", facts
