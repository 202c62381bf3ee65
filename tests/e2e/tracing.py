"""A node's system calls, traced with ptrace(2) by `trace_calls.c`.

What a node promises is looked for in what it sent and what it had made durable before, by the
clock that all processes share. The frames are read by `kio`, a codec that is not ours.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader

from interop.process import QuorateNode
from quorate.formats.batch import iter_batches

WRITES = {"write", "pwrite", "writev", "pwritev", "sendto", "sendmsg"}
READS = {"read", "readv", "recvfrom", "recvmsg"}
SYNCS = {"fsync", "fdatasync"}
RENAMES = {"rename", "renameat", "renameat2"}
FETCH, VOTE, REGISTER = 1, 52, 70


def compile_tracer(folder: Path) -> Path:
    """The program `trace_calls`; AssertionError when there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler, "no C compiler: install one (apt-get install gcc) to trace system calls"
    program = folder / "trace_calls"
    source = Path(__file__).with_name("trace_calls.c")
    subprocess.run([compiler, "-O1", "-o", program, source], check=True, timeout=60)
    return program


class Call(NamedTuple):
    """One system call; times in ns. `end` of one before `begin` of another: that order, surely."""

    begin: int
    end: int
    name: str
    result: int
    file: str
    other: str
    data: bytes

    @property
    def is_socket(self) -> bool:
        return self.file.startswith("socket:")

    @property
    def is_log(self) -> bool:
        return self.file.endswith(".log")


class Message(NamedTuple):
    """A request or response of an api that was looked for; `asked` is the request."""

    sent: bool
    begin: int
    """When its first byte was handed to the kernel."""
    end: int
    """When its last byte was taken from, or by, the kernel."""
    key: int
    asked: Any
    answer: Any


class TracedNode(QuorateNode):
    tracer: Path

    @property
    def calls_file(self) -> Path:
        return self.directory / "calls"

    def server_command(self, *args: str) -> list[str]:
        return [str(self.tracer), str(self.calls_file), *super().server_command(*args)]


def read_calls(path: Path) -> list[Call]:
    """By the time they began."""
    calls = []
    for line in path.read_text().splitlines():
        begin, end, _, name, result, file, other, data = line.split(" ")
        content = b"" if data == "-" else bytes.fromhex(data)
        calls.append(Call(int(begin), int(end), name, int(result), file, other, content))
    return sorted(calls)


# -- what was said ----------------------------------------------------------------------------


def _frames(calls: Iterable[Call]) -> Iterator[tuple[int, int, bytes]]:
    """(begin, end, frame) of one direction of one connection."""
    data, marks = b"", []
    for call in calls:
        marks.append((len(data), call))
        data += call.data
    at = 0
    while at + 4 <= len(data):
        stop = at + 4 + int.from_bytes(data[at : at + 4], "big")
        if stop > len(data):
            break
        first = [call for start, call in marks if start <= at][-1]
        last = [call for start, call in marks if start < stop][-1]
        yield first.begin, last.end, data[at + 4 : stop]
        at = stop


def _read(schema: Any, frame: bytes) -> Any:
    _, position = entity_reader(schema.__header_schema__)(frame, 0)
    return entity_reader(schema)(frame, position)[0]


def messages(calls: Iterable[Call], keys: set[int]) -> list[Message]:
    """What was said on all connections in the apis `keys`, requests and answers."""
    connections: dict[str, list[Call]] = {}
    for call in calls:
        if call.is_socket:
            connections.setdefault(call.file, []).append(call)
    return [m for connection in connections.values() for m in _conversation(connection, keys)]


def _conversation(calls: list[Call], keys: set[int]) -> Iterator[Message]:
    asks = any(call.name == "connect" for call in calls)
    requests: dict[int, tuple[int, int, Any]] = {}
    for begin, end, frame in _frames(c for c in calls if c.name in (WRITES if asks else READS)):
        key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
        if key in keys:
            asked = _read(load_request_schema(key, version), frame)
            requests[int.from_bytes(frame[4:8], "big")] = key, version, asked
            yield Message(asks, begin, end, key, asked, None)
    for begin, end, frame in _frames(c for c in calls if c.name in (READS if asks else WRITES)):
        found = requests.get(int.from_bytes(frame[:4], "big"))
        if found is not None:
            key, version, asked = found
            answer = _read(load_response_schema(key, version), frame)
            yield Message(not asks, begin, end, key, asked, answer)


# -- what was durable -------------------------------------------------------------------------


class Batch(NamedTuple):
    base_offset: int
    end_offset: int
    data: bytes
    begin: int
    """When its bytes were handed to the kernel."""
    durable_at: float
    """When the sync that covers them had returned; infinite when none did."""


def batches(calls: list[Call]) -> list[Batch]:
    """Every batch written to the log, and when it became durable."""
    syncs = [c for c in calls if c.is_log and c.name in SYNCS and c.result == 0]
    found = []
    for call in calls:
        if call.is_log and call.name in WRITES:
            durable_at = min(
                (s.end for s in syncs if s.file == call.file and s.begin > call.end),
                default=float("inf"),
            )
            found += [
                Batch(v.base_offset, v.end_offset, bytes(v.data), call.begin, durable_at)
                for v in iter_batches(call.data)
            ]
    return found


def durable_end(log: list[Batch], at: int) -> int:
    """Up to which offset (exclusive) the log was on the disk at a time, without a gap."""
    end = 0
    for batch in sorted(log):
        if batch.base_offset == end and batch.durable_at < at:
            end = batch.end_offset
    return end


class Save(NamedTuple):
    """quorum-state was replaced: content, and when that was durable under its name."""

    state: dict[str, Any]
    durable_at: float


def saves(calls: list[Call]) -> list[Save]:
    """Those of a write, its sync, the rename and the directory's sync, each after the other."""
    own = [c for c in calls if "quorum-state" in c.file or c.file.endswith("-0")]
    found = []
    for call in own:
        if call.file.endswith("quorum-state.tmp") and call.name in WRITES:
            done: Call | None = call
            for names, file in ((SYNCS, call.file), (RENAMES, call.file), (SYNCS, None)):
                done = done and _next(own, done, names, file)
            durable_at = float("inf") if done is None else done.end
            found.append(Save(json.loads(call.data), durable_at))
    return found


def _next(calls: list[Call], after: Call, names: set[str], file: str | None) -> Call | None:
    """The next successful call of these, on `file` or else on the directory."""
    for call in calls:
        fits = call.file == file if file else call.file.endswith("__cluster_metadata-0")
        if call.begin > after.end and call.name in names and fits and call.result == 0:
            return call
    return None
