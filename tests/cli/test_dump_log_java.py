"""Kafka's DumpLogSegments and ours, side by side, over the same files."""

import struct
import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from formats.samples import DATA
from interop import java
from interop.java import DUMP_LOG, KAFKA_4_3, KAFKA_4_4, java_command, java_tool
from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import (
    HEADER_SIZE,
    encode_batch,
    encode_control_batch,
    encode_keyed_batch,
)
from quorate.formats.records import RECORD_TYPES, encode_record
from quorate.formats.snapshot import encode_snapshot
from quorate.raft.values import ControlState, KRaftVersion, LeaderChange, Voters
from quorate.wire.schema import Field, Struct

pytestmark = pytest.mark.interop

DECODE = "--cluster-metadata-decoder"
SKIP = "--skip-record-metadata"

EXAMPLES: dict[str, tuple[Any, ...]] = {
    "bool": (True, False),
    "int8": (1, -128, 127),
    "int16": (30, -(2**15), 2**15 - 1),
    "uint16": (9093, 0xFFFF),
    "int32": (3, -(2**31), 2**31 - 1),
    "int64": (1795241624169, -(2**63), 2**63 - 1),
    "float64": (20.0, 1e7, 1.25e-5, -0.0, 1e300, float("inf"), float("nan"), 0.001, 123456.789),
    "uuid": (bytes(range(16)), bytes(16), b"\xff" * 16),
    "string": ("plain", "", 'q"b\\/\t\n\r\x08\x0c\x01\x1f\x7f', "{}", "x" * 300),
    "bytes": (b"salt", b"", bytes(range(256))),
}


def example(field: Field, version: int, turn: int) -> Any:
    """A value for the field; other turns give other values."""
    if field.nullable_in(version) and turn % 3 == 2:
        return None
    if field.type_name == "struct":
        return filled(field.struct, version, turn)
    if field.type_name != "array":
        choice = EXAMPLES[field.type_name]
        return choice[turn % len(choice)]
    if field.holds_structs:
        return [filled(field.struct, version, turn + n) for n in range(turn % 3)]
    choice = EXAMPLES[str(field.element)]
    return [choice[(turn + n) % len(choice)] for n in range(turn % 4)]


def filled(cls: type[Struct], version: int, turn: int) -> Any:
    fields = [field for field in cls.schema.fields if field.in_version(version)]
    return cls(**{field.name: example(field, version, turn) for field in fields})


def every_record() -> list[bytes]:
    """Every type in every version, with defaults and with values of all kinds."""
    values = []
    for cls in RECORD_TYPES.values():
        for version in range(cls.schema.versions[0], cls.schema.versions[1] + 1):
            values.append(encode_record(cls(), version))
            values += [encode_record(filled(cls, version, turn), version) for turn in range(12)]
    return values


def same(quorate, *arguments: object, release: str = KAFKA_4_3) -> None:
    """Both tools print the same on stdout, and end alike."""
    ours = quorate("dump-log", *arguments)
    kafka = java_tool(DUMP_LOG, *map(str, arguments), release=release)
    assert ours.out.splitlines() == kafka.stdout.splitlines()
    assert ours.code == kafka.returncode
    if ours.code == 0:
        theirs = [line for line in kafka.stderr.splitlines() if "log4j" not in line.lower()]
        # Java's map has the files in no order
        assert sorted(ours.err.splitlines()) == sorted(theirs)


def test_every_sample_in_one_run(quorate):
    files = sorted(path for suffix in ("*.log", "*.checkpoint") for path in DATA.rglob(suffix))
    same(quorate, DECODE, "--files", ",".join(map(str, files)))


def test_every_record_type_in_every_version(quorate, tmp_path):
    path = tmp_path / "00000000000000000000.log"
    records = every_record()
    path.write_bytes(encode_batch(0, 3, 1795241624169, records))
    same(quorate, DECODE, "--files", path, release=KAFKA_4_4)
    same(quorate, DECODE, SKIP, "--files", path, release=KAFKA_4_4)
    # met again and again, records take the quick way
    path.write_bytes(encode_batch(0, 3, 1795241624169, records * 30))
    same(quorate, DECODE, SKIP, "--files", path, release=KAFKA_4_4)


def test_our_snapshots_and_control_records(quorate, tmp_path):
    snapshot = tmp_path / "00000000000000000040-0000000002.checkpoint"
    pieces = encode_snapshot(
        OffsetAndEpoch(40, 2), ControlState(1, ()), 77, every_record() * 4, 1795241624169
    )
    snapshot.write_bytes(b"".join(pieces))
    log = tmp_path / "00000000000000000040.log"
    control = [LeaderChange(1, (1, 2), (1,)), KRaftVersion(1), Voters(())]
    log.write_bytes(
        encode_control_batch(40, 2, 5, control)
        + encode_keyed_batch(43, 2, 5, [(b"\0\0\0\x09", b"\0\0")])
    )
    for flags in ((DECODE,), (DECODE, SKIP), (), ("--deep-iteration",), ("--print-data-log",)):
        same(quorate, *flags, "--files", f"{snapshot},{log}", release=KAFKA_4_4)


def damaged(tmp_path: Path, name: str) -> Path:
    """A log of two batches with one kind of damage."""
    topic = every_record()[40]
    first = encode_batch(0, 1, 5, [topic, topic])
    second = bytearray(encode_batch(2, 1, 6, [topic, b"\x01\x06\x00\x00", b"\x02\x00\x00", b"v"]))
    match name:
        case "checksum":
            second[17] ^= 0xFF
        case "torn":
            del second[-7:]
        case "torn-header":
            del second[9:]
        case "zeroes":
            second += bytes(100)
        case "gap":
            second[7] = 9
        case "record-length":
            second[61] = 0x7E
        case "count":
            struct.pack_into(">i", second, 57, 2)
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(first + second)
    return path


@pytest.mark.parametrize(
    "name",
    ["none", "checksum", "torn", "torn-header", "zeroes", "gap", "record-length", "count"],
)
def test_damage_is_reported_as_kafka_does(quorate, tmp_path, name):
    same(quorate, DECODE, "--files", damaged(tmp_path, name))


def each_by_kafka(lines: list[tuple[str, ...]]) -> list[tuple[int, list[str]]]:
    """Exit code and stdout of Kafka's tool for each command line, in one JVM."""
    source = Path(java.__file__).with_name("DumpEach.java")
    texts = ["\n".join(line).encode() for line in lines]
    asked = b"".join(struct.pack(">H", len(text)) + text for text in texts)
    done = subprocess.run(
        java_command(str(source)), input=struct.pack(">i", len(lines)) + asked, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    found, at = [], 0
    for _ in lines:
        code, size = struct.unpack_from(">ii", done.stdout, at)
        text = done.stdout[at + 8 : at + 8 + size].decode()
        found.append((code, text.splitlines()))
        at += 8 + size
    return found


def damaged_headers() -> Iterator[bytes]:
    """Second batches of which every byte of the header has other values, and those of other formats."""
    topic = every_record()[40]
    whole = encode_batch(2, 1, 1795241624101, [topic, b"v"])
    for at in range(HEADER_SIZE):
        for value in {0, 1, 3, 0x7F, 0x80, 0xFF} - {whole[at]}:
            yield whole[:at] + bytes([value]) + whole[at + 1 :]
    control = encode_control_batch(2, 1, 5, [LeaderChange(1, (1,), (1,))])
    for batch in (whole, encode_batch(2, 1, 5, [topic]), control):
        for magic in (0, 1):
            # the first byte of the checksum is where older formats have their attributes
            for attributes, after in product((0, 1, 4, 8), (b"", b"\0", b"\0\0\0", b"\xff\0\0")):
                head = batch[:16] + bytes([magic, attributes]) + after
                yield head + batch[len(head) :]


def test_every_damage_of_a_header_is_reported_as_kafka_does(quorate, tmp_path):
    """Also a format byte that says 0, 1, -1 or 3, and a record count below 0."""
    topic = every_record()[40]
    first, last = encode_batch(0, 1, 5, [topic] * 2), encode_batch(4, 1, 7, [topic])
    lines: list[tuple[str, ...]] = []
    for number, batch in enumerate(damaged_headers()):
        path = tmp_path / str(number) / "00000000000000000000.log"
        path.parent.mkdir()
        path.write_bytes(first + batch + last * (number % 2))
        index = path.with_suffix(".index")
        index.write_bytes(struct.pack(">iiii", 1, 0, 3, len(first)))
        times = path.with_suffix(".timeindex")
        times.write_bytes(struct.pack(">qiqi", 5, 1, 6, 3))
        flags = ((DECODE,), ("--print-data-log", SKIP), (DECODE, SKIP), ())[number % 4]
        lines += [(*flags, "--files", str(path)), ("--files", str(index)), ("--files", str(times))]
    different = []
    for line, kafka in zip(lines, each_by_kafka(lines), strict=True):
        ours = quorate("dump-log", *line)
        if (ours.code, ours.out.splitlines()) != kafka:
            different.append((line, ours, kafka))
    assert different == []
    assert len(lines) > 1000


def test_limits_and_unknown_files(quorate, tmp_path):
    path = damaged(tmp_path, "none")
    for size in (0, 10, 17, 61, 300, 100_000):
        same(quorate, DECODE, "--max-bytes", size, "--files", path)
    same(quorate, "--files", f"{tmp_path}/unknown.txt,{tmp_path}/noend")


def test_indexes(quorate, tmp_path):
    path = damaged(tmp_path, "none")
    size = int.from_bytes(path.read_bytes()[8:12], "big") + 12
    index = path.with_suffix(".index")
    time_index = path.with_suffix(".timeindex")
    for offset, time in ((5, 6), (4, 7)):
        index.write_bytes(struct.pack(">iiii", 1, 0, offset, size) + bytes(80))
        time_index.write_bytes(struct.pack(">qiqi", 5, 1, time, offset) + bytes(120))
        for flags in ((), ("--verify-index-only",), ("--index-sanity-check",)):
            same(quorate, *flags, "--files", f"{index},{time_index}")
    index.write_bytes(b"")
    same(quorate, "--files", index)
