"""Kafka's DumpLogSegments and ours, side by side, over the same files."""

import re
import struct
import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from random import Random

import pytest
from fastcrc.crc32 import iscsi as crc32c

from formats.filled_records import coordinator_pairs, data_batch, filled
from formats.samples import DATA, TOPICS
from interop import java
from interop.java import DUMP_LOG, KAFKA_4_3, KAFKA_4_4, java_command, java_tool
from narrow import as_any
from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import (
    HEADER_SIZE,
    encode_batch,
    encode_control_batch,
    encode_keyed_batch,
)
from quorate.formats.records import RECORD_TYPES, encode_record
from quorate.formats.snapshot import encode_snapshot
from quorate.formats.topics.coordinator import GROUP_RECORDS, SHARE_RECORDS, TRANSACTION_RECORDS
from quorate.formats.topics.groups import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    GroupMetadataValue,
)
from quorate.formats.topics.remote_log import SegmentLeaderEpochEntry
from quorate.formats.topics.remote_log_text import REMOTE_LOG_RECORDS
from quorate.raft.values import ControlState, KRaftVersion, LeaderChange, Voters
from quorate.wire.codec import encode

pytestmark = pytest.mark.interop

DECODE = "--cluster-metadata-decoder"
REMOTE = "--remote-log-metadata-decoder"
SKIP = "--skip-record-metadata"
EPOCHS = [
    SegmentLeaderEpochEntry(leader_epoch=epoch, offset=offset)
    for epoch, offset in ((9, 30), (10, 35), (2, 4), (9, 31))
]
MARKERS = (
    (0, b"\0\0\0\0\0\x07"),
    (1, b"\0\0\xff\xff\xff\xff"),
    (1, b"\0\x05\0\0\0\x07more"),
)


def every_record() -> list[bytes]:
    """Every type in every version, with defaults and with values of all kinds."""
    values = []
    for cls in RECORD_TYPES.values():
        for version in range(cls.schema.versions[0], cls.schema.versions[1] + 1):
            values.append(encode_record(cls(), version))
            values += [encode_record(filled(cls, version, turn), version) for turn in range(12)]
    return values


def reasonless(line: str) -> str:
    """A line without the reason why a coordinator's record cannot be read: Java's is `null` mostly."""
    return re.sub(r"(Could not read record with version .*? from .*? due to:).*", r"\1", line)


def same(quorate, *arguments: object, release: str = KAFKA_4_3) -> None:
    """Both tools print the same on stdout, and end alike."""
    ours = quorate("dump-log", *arguments)
    kafka = java_tool(DUMP_LOG, *map(str, arguments), release=release)
    assert [reasonless(line) for line in ours.out.splitlines()] == [
        reasonless(line) for line in kafka.stdout.splitlines()
    ]
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


def test_damaged_records(quorate, tmp_path):
    """One byte of each is another one: sound batches, so every kind of fault in a record is met."""
    rng = Random(24)
    values = []
    for whole in every_record() * 2:
        if len(whole) > 3:
            value = bytearray(whole)
            value[rng.randrange(3, len(value))] = rng.choice((0, 0x7F, 0x80, 0xC3, 0xED, 0xFF))
            values.append(bytes(value))
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(encode_batch(0, 3, 1795241624169, values))
    assert len(values) > 500
    same(quorate, DECODE, "--files", path, release=KAFKA_4_4)


def test_our_snapshots_and_control_records(quorate, tmp_path):
    snapshot = tmp_path / "00000000000000000040-0000000002.checkpoint"
    pieces = encode_snapshot(
        OffsetAndEpoch(40, 2), ControlState(1, ()), 77, every_record() * 4, 1795241624169
    )
    snapshot.write_bytes(b"".join(pieces))
    log = tmp_path / "00000000000000000040.log"
    control = (LeaderChange(1, (1, 2), (1,)), KRaftVersion(1), Voters(()))
    log.write_bytes(
        encode_control_batch(40, 2, 5, control)
        + encode_keyed_batch(43, 2, 5, [(b"\0\0\0\x09", b"\0\0")])
    )
    for flags in ((DECODE,), (DECODE, SKIP), (), ("--deep-iteration",), ("--print-data-log",)):
        same(quorate, *flags, "--files", f"{snapshot},{log}", release=KAFKA_4_4)


TOPIC_DECODERS = {
    "--offsets-decoder": (GROUP_RECORDS, KAFKA_4_4),
    "--transaction-log-decoder": (TRANSACTION_RECORDS, KAFKA_4_3),
    "--share-group-state-decoder": (SHARE_RECORDS, KAFKA_4_3),
}
"""With the first release that has all these records."""


@pytest.mark.parametrize("option", TOPIC_DECODERS)
def test_every_record_of_a_coordinator_in_every_version(quorate, tmp_path, option):
    """Also a type and a version that do not exist, a deletion, and keys and values that are cut."""
    types, release = TOPIC_DECODERS[option]
    pairs = coordinator_pairs(types)
    key, value = pairs[0]
    assert key and value
    pairs += [
        (b"\0\x63key", b"\0\0"),
        (b"\xff\xffkey", None),
        (key, b"\0\x09"),
        (key, b"\xff\xff"),
        (key, None),
        (key, b"\0"),
        (b"\0", value),
        (b"", None),
        (key + b"more", value + b"more"),
    ]
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(data_batch(0, pairs))
    for flags in ((option,), (option, SKIP)):
        same(quorate, *flags, "--files", path, release=release)
    # a record without a key ends the dump
    path.write_bytes(data_batch(0, [(key, value)]) + data_batch(1, [(None, value)] * 2))
    same(quorate, option, "--files", path, release=release)


def test_what_consumers_wrote_into_a_classic_group(quorate, tmp_path):
    """Of known and later versions, of other protocols, and of other clients."""
    contents = [b"", b"\0", b"\0\0", b"\0\x09", b"\xff\xff", bytes(range(40))]
    for cls in (ConsumerProtocolSubscription, ConsumerProtocolAssignment):
        for version in range(4):
            data = encode(filled(cls, version, version + 1), version)
            contents += [bytes((0, stated)) + data for stated in (version, version + 4)]
    member = GroupMetadataValue.MemberMetadata
    members = [member(subscription=data, assignment=data) for data in contents]
    pairs = []
    for protocol in ("consumer", "connect"):
        for found in (members, []):
            group = GroupMetadataValue(protocol_type=protocol, members=found)
            pairs += [(b"\0\x02\0\x01g", b"\0\x04" + encode(group, 4))]
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(data_batch(0, pairs))
    same(quorate, "--offsets-decoder", "--files", path, release=KAFKA_4_4)


def test_every_record_about_remote_segments(quorate, tmp_path):
    """Also values that Kafka refuses, and records without or with a damaged value."""
    values = []
    for type_id, cls in REMOTE_LOG_RECORDS.items():
        frame = bytes((1, type_id, 0))
        values += [frame + encode(filled(cls, 0, turn), 0) for turn in range(12)]
        values += [frame, frame + encode(cls(), 0), frame + encode(cls(), 0) + b"x"]
        for change in (
            {"remote_log_segment_state": 3, "segment_leader_epochs": EPOCHS},
            {"remote_log_segment_state": 9, "segment_leader_epochs": EPOCHS},
            {"remote_log_segment_state": 2, "segment_leader_epochs": []},
            {"start_offset": 4, "end_offset": 3},
            {"remote_partition_delete_state": 2},
            {"remote_partition_delete_state": 7},
        ):
            known = {field.name for field in cls.schema.fields}
            found = {name: value for name, value in change.items() if name in known}
            values.append(frame + encode(cls(**as_any(found)), 0))
    values += [b"", b"\x01", b"\x02\0\0", b"\x01\x09\0"]
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(data_batch(0, [(None, value) for value in values]))
    for flags in ((), (SKIP,)):
        same(quorate, REMOTE, *flags, "--files", path, release=KAFKA_4_4)


def test_the_first_of_several_decoders_is_taken(quorate):
    log = TOPICS / "__transaction_state-0/00000000000000000000.log"
    several = ("--share-group-state-decoder", REMOTE, DECODE, "--transaction-log-decoder")
    for count in range(1, 5):
        same(quorate, *several[:count], "--files", log)


def test_gzip_headers_and_the_ends_of_transactions(quorate, tmp_path):
    path = tmp_path / "00000000000000000000.log"
    pairs = [(b"k", b"v"), (None, None), (b"", b""), (b"\xed\xa0\x80\xff", b"\xf0\x90\xed\xb1.")]
    batches = [data_batch(0, pairs, attributes=0x01), data_batch(4, pairs, attributes=0x19)]
    for offset, (type_id, value) in enumerate(MARKERS, 8):
        batches.append(data_batch(offset, [(bytes((0, 0, 0, type_id)), value)], attributes=0x30))
    path.write_bytes(b"".join(batches))
    same(quorate, "--print-data-log", "--files", path)
    for value in (b"", b"\xff\xff\0\0\0\1", b"\0\0\0"):
        path.write_bytes(data_batch(0, [(b"\0\0\0\1", value)], attributes=0x30))
        same(quorate, "--print-data-log", "--files", path)


def test_snapshots_of_producers_and_transaction_indexes(quorate, tmp_path):
    """Sound, cut, of another version, and with damage that only the checksum shows."""
    path = tmp_path / "00000000000000000007.snapshot"
    entries = b"".join(
        struct.pack(">qhiqiqiq", *entry)
        for entry in (
            (1, 0, 5, 9, 2, 1795241624169, 3, -1),
            (2, 1, 1, 9, 4, 1795241624169, -1, 44),
            (3, -1, -1, -1, 0, -1, -1, -1),
        )
    )
    body = struct.pack(">i", 3) + entries
    sound = struct.pack(">hI", 1, crc32c(body)) + body
    for data in (
        sound,
        sound[:-1] + b"\x01",
        sound + b"\0",
        *(sound[:size] for size in (0, 1, 2, 6, 10, 40, len(sound) - 1)),
        b"\0\2" + sound[2:],
        b"\xff\xff" + sound[2:],
        sound[:6] + b"\xff\xff\xff\xff" + sound[10:],
        sound[:6] + b"\x7f\0\0\0" + sound[10:],
    ):
        path.write_bytes(data)
        same(quorate, "--files", path)
    index = tmp_path / "00000000000000000007.txnindex"
    entry = struct.pack(">hqqqq", 0, 7, 8, 9, 10)
    for data in (
        b"",
        entry,
        entry * 2 + entry[:20],
        entry + b"\0\1" + entry[2:],
        entry + b"\1" + entry[1:],
    ):
        index.write_bytes(data)
        same(quorate, "--files", index)


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
