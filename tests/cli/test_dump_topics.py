"""dump-log of the internal topics of brokers: the text that Kafka's tool printed is the oracle."""

import json
import struct
from pathlib import Path

import pytest

from formats.filled_records import coordinator_pairs, data_batch
from formats.samples import TOPICS
from quorate.formats.topics.coordinator import GROUP_RECORDS, SHARE_RECORDS, TRANSACTION_RECORDS

DECODERS = {
    "__consumer_offsets-0": "--offsets-decoder",
    "__transaction_state-0": "--transaction-log-decoder",
    "__share_group_state-0": "--share-group-state-decoder",
    "__remote_log_metadata-0": "--remote-log-metadata-decoder",
    "orders-0": "--print-data-log",
    "compressed-0": "--deep-iteration",
}
FILES = [path for path in sorted(TOPICS.rglob("0*")) if path.suffix != ".txt"]


def short(path: Path) -> str:
    return str(path.relative_to(TOPICS))


@pytest.mark.parametrize("path", FILES, ids=short)
def test_the_text_of_every_file_is_kafkas(quorate, path):
    found = quorate("dump-log", DECODERS[path.parent.name], "--files", path)
    said = path.with_name(f"{path.name}.dump.txt").read_text()
    assert (found.code, found.err) == (0, "")
    assert found.out.replace(f"{path.parent}/", "") == said


def test_the_samples_have_what_a_decoder_must_know():
    said = "".join(path.read_text() for path in TOPICS.rglob("*.dump.txt"))
    for fact in (
        '"version":"4"',  # flexible (KIP-915)
        "<DELETE>",
        "endTxnMarker: COMMIT",
        "endTxnMarker: ABORT",
        '"subscription":{"topics":["orders"]',
        '"classicMemberMetadata":null',
        "state=DELETE_SEGMENT_FINISHED",
        "Optional[CustomMetadata{3 bytes}]",
        "headerKeys: [h]",
        "currentTxnFirstOffset: OptionalLong.empty",
        "lastStableOffset",
    ):
        assert fact in said, fact


def test_compressed_records_are_what_was_written(quorate):
    """The segment has of each codec a batch of 1 and one of 2000 words a record."""
    path = TOPICS / "compressed-0/00000000000000000000.log"
    found = quorate("dump-log", "--print-data-log", "--json", "--files", path)
    facts = [json.loads(line) for line in found.out.splitlines()]
    codecs = [fact["compression"] for fact in facts if fact["kind"] == "batch"]
    values = [fact["value"] for fact in facts if fact["kind"] == "record"]
    assert codecs == ["gzip"] * 2 + ["snappy"] * 2 + ["lz4"] * 2 + ["zstd"] * 2
    assert values == 4 * [
        "".join(f"word {i * word % 97}." for word in range(words))
        for words in (1, 2000)
        for i in range(8)
    ]


@pytest.mark.parametrize("path", FILES, ids=short)
def test_json_of_every_file_has_the_same_facts(quorate, path):
    decoder = DECODERS[path.parent.name]
    text = quorate("dump-log", decoder, "--files", path).out.splitlines()
    found = quorate("dump-log", decoder, "--json", "--files", path)
    facts = [json.loads(line) for line in found.out.splitlines()]
    assert found.code == 0
    assert not any("error" in fact for fact in facts)
    # "Dumping ..." has no facts, and of an index or a snapshot there is no title
    assert len(facts) == len(text) - 1


@pytest.mark.parametrize(
    ("option", "types"),
    [
        ("--offsets-decoder", GROUP_RECORDS),
        ("--transaction-log-decoder", TRANSACTION_RECORDS),
        ("--share-group-state-decoder", SHARE_RECORDS),
    ],
)
def test_every_record_has_a_schema(quorate, tmp_path, option, types):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(data_batch(0, coordinator_pairs(types)))
    text, facts = (
        quorate("dump-log", option, *json_flag, "--files", path).out.splitlines()[start:]
        for json_flag, start in (((), 3), (("--json",), 2))
    )
    assert len(text) == len(facts) >= len(types)
    for line, fact in zip(text, map(json.loads, facts), strict=True):
        payload = json.loads(line.split(" payload: ")[1])
        assert fact["version"] == int(payload["version"])
        assert json.dumps(fact["value"]) == json.dumps(payload["data"])


def test_unknown_records_are_named_and_the_dump_goes_on(quorate, tmp_path):
    key = b"\0\x02\0\x01g"
    pairs = [(b"\0\x63key", b"v"), (key, b"\0\x09"), (key, b"\0"), (b"\0", None), (key, None)]
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(data_batch(0, pairs))
    found = quorate("dump-log", "--offsets-decoder", "--skip-record-metadata", "--files", path)
    assert found.code == 0
    assert found.out.splitlines()[3:] == [
        "| key: Unknown record type 99 at offset 0, skipping.",
        "| key: Error at offset 1, skipping. Found an unknown record version 9 for 2 type",
        "| key: Error at offset 2, skipping. Could not read version from value's buffer.",
        "| key: Error at offset 3, skipping. Could not read version from key's buffer.",
        '| key: {"type":"2","data":{"group":"g"}} payload: <DELETE>',
    ]
    as_json = quorate("dump-log", "--offsets-decoder", "--json", "--files", path).out.splitlines()
    assert ["error" in json.loads(line) for line in as_json[2:]] == [True] * 4 + [False]


def test_a_record_without_a_key_ends_the_dump(quorate, tmp_path):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(data_batch(0, [(None, b"v")]))
    found = quorate("dump-log", "--offsets-decoder", "--files", path)
    assert found.code == 1 and "(message had a missing key)" in found.err
    assert found.out.splitlines()[-1].endswith("sequence: 0 headerKeys: []")


def test_gzip_is_read_and_damaged_gzip_is_named(quorate, tmp_path):
    path = tmp_path / "00000000000000000000.log"
    batch = data_batch(0, [(b"k", b"v")], attributes=1)
    path.write_bytes(batch)
    assert quorate("dump-log", "--print-data-log", "--files", path).out.endswith("payload: v\n")
    path.write_bytes(batch[:61] + b"xx" + batch[63:])
    damaged = quorate("dump-log", "--print-data-log", "--files", path)
    assert damaged.code == 1 and "batch at byte 0: damaged gzip data" in damaged.err


def test_a_damaged_snapshot_of_producers_is_skipped(quorate, tmp_path):
    damaged, newer = tmp_path / "1.snapshot", tmp_path / "2.txnindex"
    damaged.write_bytes(struct.pack(">hIi", 1, 7, 0))
    newer.write_bytes(b"\1" + bytes(33))
    found = quorate("dump-log", "--files", f"{damaged},{newer}")
    assert found.out.splitlines() == [f"Dumping {damaged}", f"Dumping {newer}"]
    corrupt, unexpected = found.err.splitlines()
    assert corrupt.startswith("Snapshot is corrupt (CRC is no longer valid). Stored crc: 7. ")
    assert unexpected.startswith("Unexpected aborted transaction version 1 in transaction index ")
    assert found.code == 1
