"""dump-log prints what Kafka's tool prints: the samples' dumps are the oracle."""

import io
import json
import os
import struct
from pathlib import Path

import pytest

from formats.filled_records import data_batch
from formats.samples import DATA, DUMPED_FILES, dump_of, named, short
from quorate.base.ids import Uuid
from quorate.cli.tools.dump_batches import (
    PIECE_SIZE,
    BatchOptions,
    DumpProgress,
    LogDump,
    Output,
    can_share,
    dump_alone,
    dump_shared,
)
from quorate.formats.batch import (
    encode_batch,
    encode_control_batch,
    encode_keyed_batch,
    iter_batches,
)
from quorate.formats.dump import DumpOptions
from quorate.formats.loose_records import DumpError
from quorate.formats.records import (
    ConfigRecord,
    NoOpRecord,
    TopicRecord,
    decode_record,
    encode_record,
)
from quorate.raft.values import KRaftVersion

DECODE = "--cluster-metadata-decoder"
NO_OP = encode_record(NoOpRecord(), 0)
TOPIC = encode_record(TopicRecord(name="orders"), 0)
LOG = "00000000000000000000.log"


@pytest.fixture
def log(tmp_path):
    """Write a log of these bytes; its path."""

    def log(*batches: bytes, name: str = LOG) -> Path:
        path = tmp_path / name
        path.write_bytes(b"".join(batches))
        return path

    return log


def without_gaps(lines):
    """Kafka's reports of offsets that do not follow went to the dumps' end, from stderr."""
    return [
        line for line in lines if "Non-consecutive" not in line and "is followed by" not in line
    ]


@pytest.mark.parametrize("path", DUMPED_FILES, ids=short)
def test_the_text_of_every_sample_is_kafkas(quorate, path):
    code, out, _ = quorate("dump-log", DECODE, "--files", path)
    ours, kafkas = out.splitlines(), without_gaps(dump_of(path).read_text().splitlines())
    assert code == 0
    assert ours[0] == f"Dumping {path}"
    # the nodes ran on between copy and dump: one of both may end a batch of one record earlier
    common = min(len(ours), len(kafkas))
    assert abs(len(ours) - len(kafkas)) in (0, 2)
    assert ours[1:common] == kafkas[1:common]


@pytest.mark.parametrize("path", named("*.log", "*.checkpoint"), ids=short)
def test_json_of_every_sample_has_the_same_facts(quorate, path):
    code, out, _ = quorate("dump-log", DECODE, "--json", "--files", path)
    assert code == 0
    head, *lines = map(json.loads, out.splitlines())
    assert head["path"] == str(path) and head["kind"] in ("log", "snapshot", "bootstrap")
    views = list(iter_batches(path.read_bytes()))
    batches = [line for line in lines if line["kind"] == "batch"]
    records = [line for line in lines if line["kind"] == "record"]
    assert len(batches) + len(records) == len(lines)
    assert [line["crc"] for line in batches] == [view.crc for view in views]
    offsets = [view.base_offset + index for view in views for index in range(view.count)]
    assert [line["offset"] for line in records] == offsets
    assert all("type" in line and "data" in line for line in records)


def test_several_files_in_one_run(quorate):
    one, two = DUMPED_FILES[:2]
    both = quorate("dump-log", DECODE, "--files", f"{one},{two}").out
    assert both == "".join(quorate("dump-log", DECODE, "--files", p).out for p in (one, two))


@pytest.mark.parametrize(
    ("given", "printed"),
    [("./LOG", "./LOG"), ("d/../LOG", "d/../LOG"), ("d//..///LOG", "d/../LOG"), ("LOG/", "LOG")],
)
def test_a_path_is_printed_as_it_was_given(quorate, log, tmp_path, monkeypatch, given, printed):
    (tmp_path / "d").mkdir()
    log(encode_batch(0, 1, 1, [NO_OP]), encode_batch(5, 1, 1, [NO_OP]))
    monkeypatch.chdir(tmp_path)
    run = quorate("dump-log", "--deep-iteration", "--files", given.replace("LOG", LOG))
    printed = printed.replace("LOG", LOG)
    assert run.out.splitlines()[0] == f"Dumping {printed}"
    assert run.err.splitlines()[0] == f"Non-consecutive offsets in {tmp_path}/{printed}"


def test_without_a_decoder_only_batches_are_printed(quorate):
    path = DUMPED_FILES[0]
    out = quorate("dump-log", "--files", path).out.splitlines()
    full = dump_of(path).read_text().splitlines()
    assert out[1:] == [line for line in full[1:] if not line.startswith("|")]


def test_deep_iteration_prints_records_without_their_data(quorate, log):
    path = log(encode_batch(0, 1, 5, [NO_OP]))
    out = quorate("dump-log", "--deep-iteration", "--files", path).out.splitlines()
    assert out[3] == (
        "| offset: 0 CreateTime: 5 keySize: -1 valueSize: 4 sequence: -1 headerKeys: []"
    )


def test_print_data_log_prints_values_as_text(quorate, log):
    path = log(encode_batch(0, 1, 5, [b"plain \xff text"]))
    out = quorate("dump-log", "--print-data-log", "--files", path).out.splitlines()
    assert out[3].endswith("headerKeys: [] payload: plain \ufffd text")


def test_skip_record_metadata_leaves_control_records_empty(quorate, log):
    path = log(encode_control_batch(0, 1, 5, [KRaftVersion(1)]), encode_batch(1, 1, 5, [TOPIC]))
    flags = (DECODE, "--skip-record-metadata")
    lines = quorate("dump-log", *flags, "--files", path).out.splitlines()
    assert lines[3] == ""
    assert lines[5] == (
        '| payload: {"type":"TOPIC_RECORD","version":0,"data":'
        '{"name":"orders","topicId":"AAAAAAAAAAAAAAAAAAAAAA"}}'
    )


def test_a_bootstrap_checkpoint_has_its_own_title(quorate):
    path = named("bootstrap.checkpoint")[0]
    assert quorate("dump-log", "--files", path).out.splitlines()[1] == "KRaft bootstrap snapshot"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"\x02\x14\x00\x00", "Could not deserialize metadata record due to unknown frame version"),
        (
            b"\x01\x06\x00\x00",
            "org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id 6",
        ),
        (TOPIC[:-1], "Failed to deserialize record with type 2"),
        (TOPIC + b"\0", "Found 1 byte(s) of garbage after 2"),
    ],
)
def test_a_record_that_cannot_be_read_is_skipped(quorate, log, value, said):
    path = log(encode_batch(7, 1, 5, [NO_OP, value, NO_OP]))
    code, out, _ = quorate("dump-log", DECODE, "--files", path)
    lines = out.splitlines()
    assert code == 0 and len(lines) == 6
    assert f"payload: Error at 8, skipping. {said}" in lines[4]
    assert lines[4].endswith(said) or said.endswith("frame version")
    assert "NO_OP_RECORD" in lines[3] and "NO_OP_RECORD" in lines[5]
    said_json = [
        json.loads(line)
        for line in quorate("dump-log", DECODE, "--json", "--files", path).out.splitlines()
    ]
    assert "error" in said_json[3] and said_json[4]["type"] == "NO_OP_RECORD"


def test_a_flipped_byte_shows_in_the_checksum(quorate, log):
    batch = bytearray(encode_batch(0, 1, 5, [TOPIC]))
    batch[-3] ^= 0xFF
    code, out, _ = quorate("dump-log", DECODE, "--files", log(bytes(batch)))
    assert code == 0
    assert out.splitlines()[2].endswith("isvalid: false")


@pytest.mark.parametrize("cut", [1, 30, 60, 70])
def test_a_torn_tail_is_counted(quorate, log, cut):
    whole, torn = encode_batch(0, 1, 5, [NO_OP]), encode_batch(1, 1, 5, [NO_OP])
    path = log(whole, torn[:cut])
    code, out, _ = quorate("dump-log", DECODE, "--files", path)
    assert code == 0
    assert out.splitlines()[-1] == f"Found {cut} invalid bytes at the end of {LOG}"
    trailing = quorate("dump-log", "--json", "--files", path).out.splitlines()[-1]
    assert json.loads(trailing) == {"kind": "trailing", "bytes": cut, "position": len(whole)}


def test_max_bytes_reads_only_the_front(quorate, log):
    one, two = encode_batch(0, 1, 5, [NO_OP]), encode_batch(1, 1, 5, [NO_OP])
    limit = len(one) + 10
    out = quorate("dump-log", DECODE, "--max-bytes", limit, "--files", log(one, two)).out
    assert len(out.splitlines()) == 4


def test_an_impossible_batch_length_ends_the_dump(quorate, log):
    whole = encode_batch(0, 1, 5, [NO_OP])
    path = log(whole, bytes(40))
    code, out, err = quorate("dump-log", DECODE, "--files", path)
    assert code == 1
    assert len(out.splitlines()) == 4
    assert err.startswith(f"{path}: the batch at byte {len(whole)} has 12 bytes, fewer")


def test_undecodable_records_end_the_dump(quorate, log):
    batch = bytearray(encode_batch(0, 1, 5, [NO_OP, TOPIC]))
    batch[61] = 0x7F
    code, out, err = quorate("dump-log", DECODE, "--files", log(bytes(batch)))
    assert code == 1
    assert "isvalid: false" in out
    assert "record 0 is cut or malformed" in err


def test_keys_and_headers_of_other_logs_are_printed(quorate, log):
    header = b"\x02h\x02v"
    body = b"\0\x04\0\x02k\x02v\x02" + header
    batch = bytearray(encode_keyed_batch(0, 1, 5, [(b"k", b"v")]))[:61]
    batch += bytes([len(body) << 1]) + body
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">h", batch, 21, 0)
    out = quorate("dump-log", "--print-data-log", "--files", log(bytes(batch))).out.splitlines()
    assert out[3] == (
        "| offset: 0 CreateTime: 7 keySize: 1 valueSize: 1 sequence: -1 headerKeys: [h] "
        "key: k payload: v"
    )


def test_an_unknown_control_record_is_named(quorate, log):
    path = log(encode_keyed_batch(0, 1, 5, [(b"\0\0\0\x09", b"\0\0")]))
    code, out, _ = quorate("dump-log", DECODE, "--files", path)
    assert code == 0 and out.splitlines()[3].endswith("controlType: UNKNOWN(9)")


@pytest.mark.parametrize(
    ("number", "codec", "data"),
    [
        (1, "gzip", b"no gzip"),
        (2, "snappy", b"\xff\xff\xff\xff\x0fno snappy"),
        (2, "snappy", b"\x82SNAPPY\0\0\0\0\1\0\0\0\1\0\0\1\0cut"),
        (3, "lz4", b"no lz4"),
        (3, "lz4", b"\x04\x22\x4d\x18"),
        (4, "zstd", b"no zstd"),
        (4, "zstd", b"\x28\xb5\x2f\xfd"),
    ],
)
def test_damaged_compressed_records_end_the_dump_after_the_batch(quorate, log, number, codec, data):
    batch = bytearray(encode_batch(0, 1, 5, [NO_OP]))[:61] + data
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">h", batch, 21, number)
    code, out, err = quorate("dump-log", DECODE, "--files", log(bytes(batch)))
    assert code == 1 and f"compresscodec: {codec}" in out
    assert f"batch at byte 0: damaged {codec} data: " in err


def test_non_consecutive_offsets_are_reported(quorate, log):
    path = log(
        encode_batch(5, 1, 5, [NO_OP]),
        encode_batch(6, 1, 5, [NO_OP]),
        encode_batch(9, 1, 5, [NO_OP]),
    )
    err = quorate("dump-log", DECODE, "--files", path).err.splitlines()
    assert err == [
        f"Non-consecutive offsets in {path}",
        "  -1 is followed by 5",
        "  6 is followed by 9",
    ]


def test_files_that_cannot_be_dumped_are_errors(quorate, tmp_path):
    missing = quorate("dump-log", "--files", tmp_path / LOG)
    assert missing.code == 1 and missing.err == f"{tmp_path / LOG}: No such file or directory\n"
    unknown = quorate("dump-log", "--files", f"{tmp_path}/x.txt,{tmp_path}/noend")
    assert unknown.code == 0
    assert unknown.err.splitlines() == [
        f"Ignoring unknown file {tmp_path}/x.txt",
        f"Ignoring unknown file {tmp_path}/noend",
    ]
    for name in ("nope.log", "nope.checkpoint", "nope.index", "nope.timeindex", "nope.snapshot"):
        missing = quorate("dump-log", "--files", tmp_path / name)
        assert (
            missing.code == 1 and missing.err == f"{tmp_path / name}: No such file or directory\n"
        )
    (tmp_path / "abc.log").touch()
    (tmp_path / "abc.checkpoint").touch()
    nameless = quorate("dump-log", "--files", tmp_path / "abc.log")
    assert nameless.code == 1 and "does not begin with the segment's base offset" in nameless.err
    snapshot = quorate("dump-log", "--files", tmp_path / "abc.checkpoint")
    assert snapshot.code == 1 and "must have the form OFFSET-EPOCH.checkpoint" in snapshot.err
    usage = quorate("dump-log")
    assert usage.code == 1 and "--files" in usage.err


def test_options_may_be_abbreviated_and_have_one_dash_as_in_kafka(quorate, log):
    path = log(encode_batch(0, 1, 5, [TOPIC]))
    whole = quorate("dump-log", DECODE, "--skip-record-metadata", "--files", path)
    assert whole.code == 0
    assert quorate("dump-log", "--cluster", "--skip-rec", f"--fi={path}") == whole
    assert quorate("dump-log", "-cluster-metadata-decoder", "--skip-r", "-files", path) == whole
    unclear = quorate("dump-log", "--max", "5", "--files", path)
    assert unclear.code == 1 and "--max" in unclear.err


@pytest.mark.parametrize(
    ("decoder", "data", "shown"),
    [
        ("StringDecoder", b"ab", "ab"),
        ("IntegerDecoder", b"\xff\xff\xff\xfe", "-2"),
        ("LongDecoder", b"\0\0\0\1\0\0\0\1more", "4294967297"),
        ("DefaultDecoder", b"\0\xff", "00ff"),
    ],
)
def test_keys_and_values_have_the_decoders_of_kafka(quorate, log, decoder, data, shown):
    name = f"org.apache.kafka.tools.api.{decoder}"
    for part, pair in (("key", (data, b"v")), ("value", (b"k", data))):
        words = ("dump-log", f"--{part}-decoder-class", name, "--files", log(data_batch(0, [pair])))
        key, value = (shown, "v") if part == "key" else ("k", shown)
        assert quorate(*words).out.splitlines()[3].endswith(f"key: {key} payload: {value}")
        fact = json.loads(quorate(*words, "--json").out.splitlines()[-1])
        assert (fact["key"], fact["value"]) == (key, value)


def test_a_record_that_is_too_short_for_its_decoder_ends_the_dump(quorate, log):
    path = log(data_batch(0, [(None, b"\0\0\0\1"), (None, b"abc")]))
    name = "org.apache.kafka.tools.api.IntegerDecoder"
    code, out, err = quorate("dump-log", "--value-decoder-class", name, "--files", path)
    assert code == 1 and out.splitlines()[3].endswith("payload: 1")
    assert "IntegerDecoder needs 4 bytes, and the record at offset 1 has 3" in err


def test_a_decoder_that_kafka_does_not_have_is_refused_with_those_it_has(quorate, log):
    found = quorate("dump-log", "--key-decoder-class", "com.x.Mine", "--files", log(b""))
    assert found.code == 1 and "'org.apache.kafka.tools.api.LongDecoder'" in found.err


def test_the_option_files_is_given_once(quorate, log):
    """The second one silently took the place of the first."""
    path = log(encode_batch(0, 1, 5, [TOPIC]))
    twice = quorate("dump-log", "--files", path, "--files", path)
    assert (twice.code, twice.out) == (1, "")
    assert "Found multiple arguments for option files, but you asked for only one" in twice.err


def test_a_batch_larger_than_a_piece_is_printed(quorate, log):
    big = encode_record(ConfigRecord(name="k", value="v" * 30_000), 0)
    path = log(encode_batch(0, 1, 5, [big] * 200), encode_batch(200, 1, 5, [NO_OP]))
    assert path.stat().st_size > 4 << 20
    flags = (DECODE, "--skip-record-metadata")
    lines = quorate("dump-log", *flags, "--files", path).out.splitlines()
    assert len(lines) == 2 + 1 + 200 + 1 + 1
    assert lines[3] == lines[202] and "NO_OP" in lines[-1]


def test_random_records_print_the_same_in_both_implementations(quorate, log):
    values = [
        encode_record(TopicRecord(name="t" * (index % 37), topic_id=Uuid(os.urandom(16))), 0)
        for index in range(3000)
    ]
    path = log(encode_batch(0, 1, 5, values))
    flags = (DECODE, "--skip-record-metadata")
    lines = quorate("dump-log", *flags, "--files", path).out.splitlines()[3:]
    said = [json.loads(line.removeprefix("| payload: "))["data"]["name"] for line in lines]
    assert said == [decode_record(value)[0].name for value in values]  # type: ignore[attr-defined]


def shared_and_alone(path, tmp_path, flags):
    """What several processes and what one print of the same file, and how they ended."""
    results = []
    for way in (dump_shared, dump_alone):
        out, progress, error = tmp_path / way.__name__, DumpProgress(), None
        with path.open("rb") as file, out.open("wb") as stream:
            size = path.stat().st_size
            try:
                way(LogDump(str(path), file.fileno(), size, flags), Output(stream), progress)
            except DumpError as raised:
                error = str(raised)
        reached = None if error else (progress.position, progress.trail)
        results.append((out.read_bytes(), error, reached))
    return results


@pytest.fixture(scope="module")
def large():
    """Six pieces of a log, with a gap in the offsets in the middle of one and between two."""
    value = encode_record(ConfigRecord(name="k", value="v" * 1250), 0)
    batches = [encode_batch(n * 40 + (n > 50) + (n > 62), 1, 5, [value] * 40) for n in range(120)]
    assert sum(map(len, batches)) > 5 * PIECE_SIZE
    return b"".join(batches)


@pytest.mark.parametrize("as_json", [False, True])
def test_several_processes_print_the_same_as_one(tmp_path, log, large, as_json):
    flags = BatchOptions(DumpOptions(), True, as_json)
    shared, alone = shared_and_alone(log(large), tmp_path, flags)
    assert shared == alone
    position, trail = alone[2]
    assert position == len(large) and len(trail.gaps) == 2


@pytest.mark.slow
@pytest.mark.parametrize("place", [0.1, 0.5, 0.99])
@pytest.mark.parametrize("damage", ["length", "format", "record", "torn"])
def test_several_processes_stop_at_damage_like_one(tmp_path, log, large, place, damage):
    data = bytearray(large)
    size = len(large) // 120
    start = next(v.position for v in iter_batches(large) if v.position >= place * len(large) - size)
    if damage == "torn":
        del data[start + 100 :]
    else:
        at = {"length": 8, "format": 16, "record": 62}[damage]
        data[start + at] = {"length": 0x80, "format": 1, "record": 0x01}[damage]
    flags = BatchOptions(DumpOptions(), True, False)
    shared, alone = shared_and_alone(log(bytes(data)), tmp_path, flags)
    assert shared == alone
    assert (alone[1] is None) == (damage == "torn")


@pytest.mark.parametrize(
    ("at", "damage", "code", "last_line"),
    [
        (16, b"\xff", 1, "offset: 2"),  # no format: Kafka prints this much of the line
        (16, b"\x01\x07", 1, "offset: 2"),  # format 1 with an unknown codec
        (16, b"\x00\x00\x00\x00\x01", 1, "offset: 2 position: 83 "),  # a key beyond the end
        (16, b"\x03", 0, "| offset: 5 "),  # a later format is read as 2
        (57, b"\xff\xff\xff\xff", 1, "baseOffset: 2 lastOffset: 3 count: -1 "),
        (57, b"\0\0\0\0", 0, "| offset: 5 "),
        (57, b"\0\0\0\x03", 1, "| offset: 3 "),
    ],
)
def test_a_damaged_format_or_count_ends_the_dump_where_kafkas_does(
    quorate, log, at, damage, code, last_line
):
    batches = [bytearray(encode_batch(base, 1, 5, [NO_OP] * 2)) for base in (0, 2, 4)]
    batches[1][at : at + len(damage)] = damage
    outcome = quorate("dump-log", "--deep-iteration", "--files", log(*map(bytes, batches)))
    assert outcome.code == code
    assert outcome.out.splitlines()[-1].startswith(last_line)
    assert ("batch at byte " in outcome.err) == bool(code)
    assert "| offset: 1 " in outcome.out


def test_a_process_that_is_killed_is_reported(tmp_path, log, large, monkeypatch):
    def die(*_: object) -> None:
        os._exit(9)

    monkeypatch.setattr(LogDump, "print", die)
    dump_flags = BatchOptions(DumpOptions(), True, False)
    path = log(large)
    with path.open("rb") as file, (tmp_path / "out").open("wb") as stream:
        dump = LogDump(str(path), file.fileno(), len(large), dump_flags)
        with pytest.raises(DumpError, match="was killed"):
            dump_shared(dump, Output(stream), DumpProgress())


def test_a_large_file_is_shared_when_the_output_has_a_descriptor(log, large, tmp_path):
    path = log(large)
    with path.open("rb") as file, (tmp_path / "out").open("wb") as stream:
        dump_flags = BatchOptions(DumpOptions(), True, False)
        small = LogDump(str(path), file.fileno(), 2 * PIECE_SIZE, dump_flags)
        big = LogDump(str(path), file.fileno(), 1 << 30, dump_flags)
        assert not can_share(small, Output(stream))
        assert can_share(big, Output(stream)) == ((os.cpu_count() or 1) > 1)
        assert not can_share(big, Output(io.BytesIO()))


INDEXED = tuple(encode_batch(offset, 1, 100 + offset, [NO_OP] * 2) for offset in (0, 2, 4))


def test_an_offset_index_is_printed_and_checked(quorate, log):
    log(*INDEXED)
    size = len(INDEXED[0])
    index = log(struct.pack(">iiii", 3, size, 5, 2 * size), name="00000000000000000000.index")
    code, out, err = quorate("dump-log", "--files", index)
    assert (code, err) == (0, "")
    assert out.splitlines()[1:] == [
        f"offset: 3 position: {size}",
        f"offset: 5 position: {2 * size}",
    ]
    assert len(quorate("dump-log", "--verify-index-only", "--files", index).out.splitlines()) == 1
    facts = map(json.loads, quorate("dump-log", "--json", "--files", index).out.splitlines())
    assert list(facts) == [
        {"kind": "index", "offset": 3, "position": size},
        {"kind": "index", "offset": 5, "position": 2 * size},
    ]
    checked = quorate("dump-log", "--json", "--index-sanity-check", "--files", index)
    assert json.loads(checked.out)["result"] == "sane"
    sane = quorate("dump-log", "--index-sanity-check", "--files", index)
    assert sane.out.splitlines()[1:] == [f"{index} passed sanity check."]
    index.write_bytes(struct.pack(">iiii", 3, size, 4, 2 * size))
    wrong = quorate("dump-log", "--files", index)
    assert wrong.err.splitlines() == [f"Mismatches in :{index}", "  Index offset: 4, log offset: 5"]
    index.write_bytes(b"")
    assert quorate("dump-log", "--files", index).out.splitlines()[1] == f"{index} is empty."
    index.write_bytes(struct.pack(">iix", 3, size))
    insane = quorate("dump-log", "--index-sanity-check", "--files", index)
    assert insane.code == 1 and "neither positive nor a multiple of 8" in insane.err
    index.write_bytes(struct.pack(">ii", 3, 99999))
    assert "where the log has no batch" in quorate("dump-log", "--files", index).err
    index.write_bytes(struct.pack(">ii", 3, 7))  # inside the first batch
    assert "byte 7, where the log has no batch" in quorate("dump-log", "--files", index).err


def test_a_time_index_is_printed_and_checked(quorate, log):
    log(*INDEXED)
    index = log(struct.pack(">qiqi", 102, 3, 104, 5), name="00000000000000000000.timeindex")
    code, out, err = quorate("dump-log", "--files", index)
    assert (code, err) == (0, "")
    assert out.splitlines()[1:] == ["timestamp: 102 offset: 3", "timestamp: 104 offset: 5"]
    index.write_bytes(struct.pack(">qiqiqi", 110, 3, 104, 5, 105, 9))
    assert quorate("dump-log", "--files", index).err.splitlines() == [
        f"Found timestamp mismatch in :{index}",
        "  Index timestamp: 110, log timestamp: 102",
        f"Found out of order timestamp in :{index}",
        "  Index timestamp: 104, Previously indexed timestamp: 110",
        f"The following indexed offsets are not found in :{index}",
        "Indexed offset: 9, found log offset: -1",
    ]
    insane = quorate("dump-log", "--index-sanity-check", "--files", index)
    assert insane.code == 1 and "last timestamp is 105 which is less than" in insane.err


def test_the_samples_exist():
    assert len(DUMPED_FILES) > 50 and DATA.is_dir()


@pytest.mark.parametrize(
    ("behind", "named"),
    [("", ["LOG"]), (",", ["LOG"]), (",,", ["LOG"]), (",,LOG", ["LOG", "", "LOG"])],
)
def test_empty_file_names_are_dropped_as_by_javas_split(quorate, log, behind, named):
    path = str(log(encode_batch(0, 1, 0, [NO_OP])))
    out = quorate("dump-log", "--files", path + behind.replace("LOG", path)).out.splitlines()
    dumped = [line.removeprefix("Dumping ") for line in out if line.startswith("Dumping ")]
    assert dumped == [path if name else "" for name in named]
