"""`quorate dump-log`: print log segments, snapshots and indexes.

Flags, output and exit codes are those of Kafka's kafka-dump-log (`DumpLogSegments`). It opens files for
reading only and takes no lock, so it also works on the files of a running node.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import click

from quorate.cli.options import CONTEXT, ToolCommand, json_option
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
)
from quorate.formats.dump import DumpError, DumpOptions
from quorate.formats.files import (
    BOOTSTRAP_CHECKPOINT,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
)

NO_LIMIT: Final = 0x7FFFFFFF
_SNAPSHOT_NAME: Final = re.compile(r"(\d{20}).(\d{10}).*\.checkpoint")


@dataclass(frozen=True, slots=True)
class DumpLogOptions:
    """The options of one run."""

    batches: BatchOptions
    index: IndexChecks
    max_bytes: int


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
                self._file(os.path.normpath(path) if path else path)
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
            size = min(os.fstat(file.fileno()).st_size, options.max_bytes)
            dump = LogDump(path, file.fileno(), size, options.batches)
            progress = DumpProgress()
            try:
                if can_share(dump, output):
                    dump_shared(dump, output, progress)
                else:
                    dump_alone(dump, output, progress)
            finally:
                if progress.trail.gaps:
                    self._gaps[os.path.abspath(path)] = progress.trail.gaps
        if progress.position < size and options.max_bytes == NO_LIMIT:
            left = size - progress.position
            self._print(
                f"Found {left} invalid bytes at the end of {os.path.basename(path)}",
                {"kind": "trailing", "bytes": left, "position": progress.position},
            )


class _SingleDashCommand(ToolCommand):
    """Accepts `-files` for `--files`, as the parser of Kafka's tool does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        names = {param.opts[0][1:] for param in self.get_params(ctx)}
        return super().parse_args(
            ctx, [f"-{arg}" if arg.partition("=")[0] in names else arg for arg in args]
        )


@click.command(
    cls=_SingleDashCommand,
    context_settings=CONTEXT,
    epilog="""\b
Examples:
  quorate dump-log --cluster-metadata-decoder --files 00000000000000000000.log
  quorate dump-log --cluster-metadata-decoder --json --files a.log,b.checkpoint""",
)
@click.option(
    "--files",
    required=True,
    multiple=True,
    metavar="FILE,...",
    help="Logs, snapshots and indexes to print.",
)
@click.option(
    "--cluster-metadata-decoder", "decode", is_flag=True, help="Decode records as cluster metadata."
)
@click.option(
    "--skip-record-metadata", is_flag=True, help="Omit offsets, sizes and control records."
)
@click.option("--print-data-log", is_flag=True, help="Print the records; implied by a decoder.")
@click.option("--deep-iteration", is_flag=True, help="Read records, not only batch headers.")
@click.option(
    "--max-bytes",
    type=click.IntRange(0, NO_LIMIT),
    default=NO_LIMIT,
    metavar="BYTES",
    help="Read at most this many bytes of each file.",
)
@click.option("--verify-index-only", is_flag=True, help="Check indexes without printing them.")
@click.option(
    "--index-sanity-check", is_flag=True, help="Check indexes only as a node does at its start."
)
@click.option(
    "--max-message-size",
    type=click.IntRange(1, NO_LIMIT),
    default=5 * 1024 * 1024,
    show_default=True,
    metavar="BYTES",
    help="Largest batch to which an index entry may point.",
)
@json_option
def dump_log(files: tuple[str, ...], as_json: bool, **flags: Any) -> None:
    """Print the batches and records of log segments and snapshots (Kafka's kafka-dump-log).

    \b
    Only cluster metadata is decoded. Kafka's decoders for brokers' internal topics
    (--offsets-decoder, --transaction-log-decoder, --share-group-state-decoder,
    --remote-log-metadata-decoder) and for Java classes (--key-decoder-class,
    --value-decoder-class) are not supported.
    """
    if len(files) > 1:
        raise click.UsageError(
            "Found multiple arguments for option files, but you asked for only one: "
            "--files FILE,FILE"
        )
    print_data = flags["decode"] or flags["print_data_log"]
    options = DumpLogOptions(
        BatchOptions(
            DumpOptions(flags["decode"], print_data, flags["skip_record_metadata"]),
            flags["deep_iteration"] or print_data or as_json,
            as_json,
        ),
        IndexChecks(
            flags["verify_index_only"], flags["index_sanity_check"], flags["max_message_size"]
        ),
        flags["max_bytes"],
    )
    Dump(options, Output(sys.stdout.buffer)).run(_names(files[0]))


def _names(text: str) -> list[str]:
    """Split like Java's `split`, which drops empty strings at the end."""
    names = text.split(",")
    while text and names and not names[-1]:
        names.pop()
    return names


def _title(path: str, name: str, suffix: str) -> tuple[str, dict[str, object]]:
    """The second line of a file's dump, as text and as facts. Raises DumpError."""
    if suffix == LOG_SUFFIX:
        start = base_offset(path)
        return f"Log starting offset: {start}", {"kind": "log", "startOffset": start}
    if name == BOOTSTRAP_CHECKPOINT:
        return "KRaft bootstrap snapshot", {"kind": "bootstrap"}
    match = _SNAPSHOT_NAME.fullmatch(name)
    if match is None:
        raise DumpError(
            f"{path}: a snapshot's file name must have the form OFFSET-EPOCH.checkpoint"
        )
    end, epoch = int(match[1]), int(match[2])
    facts: dict[str, object] = {"kind": "snapshot", "endOffset": end, "epoch": epoch}
    return f"Snapshot end offset: {end}, epoch: {epoch}", facts
