"""Text that is not UTF-8: printed as Kafka prints it, refused everywhere else."""

from __future__ import annotations

import pytest

from formats.filled_records import coordinator_pairs, filled
from quorate.base.ids import Listener, ReplicaKey, Uuid
from quorate.formats.control import decode_message, encode_control
from quorate.formats.dump_contents import TEXT_DECODERS, LogKind, contents_of
from quorate.formats.errors import RecordError
from quorate.formats.loose_records import LooseRecord
from quorate.formats.quick_json import RecordPrinter
from quorate.formats.records import (
    RECORD_TYPES,
    AbortTransactionRecord,
    TopicRecord,
    decode_record,
    encode_record,
)
from quorate.formats.topics.coordinator import GROUP_RECORDS
from quorate.raft.values import Voter, Voters
from quorate.wire import codec
from quorate.wire.errors import WireError
from quorate.wire.java_decoder import decode_prefix_as_java

WHOLE, DAMAGED, PRINTED = b"plain", b"p\xffa\xc3n", "p\ufffda\ufffdn"
"""A text of the filled records; Java reads the damaged bytes with a mark for each malformed piece."""


def damaged_records() -> list[tuple[bytes, bytes]]:
    """Each record that has the text, in every version, whole and damaged."""
    pairs = []
    for cls in RECORD_TYPES.values():
        for version in range(cls.schema.versions[0], cls.schema.versions[1] + 1):
            for turn in (0, 1, 3, 4):
                value = encode_record(filled(cls, version, turn), version)
                if WHOLE in value:
                    pairs.append((value, value.replace(WHOLE, DAMAGED)))
    return pairs


def test_records_are_printed_with_marks_also_on_the_quick_way():
    pairs = damaged_records()
    assert len({value[1] for value, _ in pairs}) > 12
    for whole, damaged in pairs:
        printer = RecordPrinter()
        expected = [printer.print(whole) for _ in range(12)][-1].replace("plain", PRINTED)
        assert PRINTED in expected
        assert printer.print(damaged) == expected
        assert printer.print_all([damaged, damaged]) == [expected] * 2


def test_a_node_and_the_pipeline_refuse_them():
    for _, damaged in damaged_records():
        with pytest.raises(RecordError, match="Failed to deserialize record") as caught:
            decode_record(damaged)
        assert "not valid UTF-8" in str(caught.value.args)


def test_other_damage_is_refused_for_what_it_is():
    value = encode_record(TopicRecord(name="plain"), 0).replace(WHOLE, DAMAGED)
    with pytest.raises(RecordError, match="Failed to deserialize record with type 2"):
        RecordPrinter().print(value[:-1])
    with pytest.raises(RecordError, match="garbage"):
        RecordPrinter().print(value + b"\0")
    with pytest.raises(WireError, match="has versions 0 to 0, not 7"):
        decode_prefix_as_java(TopicRecord, 7, value, 3)


def test_the_size_before_a_tagged_field_does_not_count():
    value = encode_record(AbortTransactionRecord(reason="why"), 0)
    at = value.index(b"\0\x04\x04why")
    for size in (0, 3, 9, 0x7F):
        damaged = value[: at + 1] + bytes((size,)) + value[at + 2 :]
        assert RecordPrinter().print(damaged) == RecordPrinter().print(value)
        with pytest.raises(RecordError, match="Failed to deserialize"):
            decode_record(damaged)


def test_records_of_coordinators_are_printed_with_marks():
    contents, found = contents_of(LogKind.OFFSETS, TEXT_DECODERS), 0
    for key, value in coordinator_pairs(GROUP_RECORDS):
        assert key is not None and value is not None
        whole = contents.texts(LooseRecord(0, 0, key, value))
        damaged = (key.replace(WHOLE, DAMAGED), value.replace(WHOLE, DAMAGED))
        if damaged == (key, value):
            continue
        found += 1
        assert contents.texts(LooseRecord(0, 0, *damaged)) == tuple(
            text and text.replace("plain", PRINTED) for text in whole
        )
    assert found > 20


def test_control_records_are_printed_with_marks_and_refused_elsewhere():
    key = ReplicaKey(1, Uuid(bytes(range(16))))
    voter = Voter(key, (Listener("plain", "h", 9093),), 0, 1)
    type_key, value = encode_control(Voters((voter,)))
    damaged = value.replace(WHOLE, DAMAGED)
    message = decode_message(type_key, damaged, as_java=True)
    assert PRINTED in repr(message)
    with pytest.raises(RecordError, match="not valid UTF-8"):
        decode_message(type_key, damaged)
    with pytest.raises(RecordError, match="ends at byte"):
        decode_message(type_key, value + b"x", as_java=True)
    assert decode_message(type_key, value, as_java=True) == decode_message(type_key, value)
    assert codec.decode(type(message), 0, value) == decode_message(type_key, value)
