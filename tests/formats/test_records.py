from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from formats.record_strategies import records
from formats.samples import BATCH_FILES, DUMPED_FILES, dump_of, short
from quorate.base.ids import Uuid
from quorate.formats.batch import iter_batches, values
from quorate.formats.errors import RecordError
from quorate.formats.json_text import double, record_json, text
from quorate.formats.quick_json import RecordPrinter, compile_shape
from quorate.formats.records import (
    RECORD_TYPES,
    AbortTransactionRecord,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    NoOpRecord,
    PartitionChangeRecord,
    TopicRecord,
    UnregisterControllerRecord,
    change_version,
    decode_record,
    encode_record,
)
from quorate.wire.schema import Message

TOPIC = encode_record(TopicRecord(name="orders"), 0)


def data_values(path: Path) -> list[bytes]:
    views = list(iter_batches(path.read_bytes()))
    return [value for view in views if not view.is_control for value in values(view)]


@pytest.mark.parametrize("path", BATCH_FILES, ids=short)
def test_every_sample_record_encodes_back_to_the_same_bytes(path: Path) -> None:
    for value in data_values(path):
        assert encode_record(*decode_record(value)) == value


@pytest.mark.parametrize("path", DUMPED_FILES, ids=short)
def test_every_sample_record_says_what_kafka_prints(path: Path) -> None:
    printed = re.findall(r" payload: (\{.*\})$", dump_of(path).read_text(), re.MULTILINE)
    ours = [record_json(*decode_record(value)) for value in data_values(path)]
    # the nodes ran on between copy and dump: one of both may end a record earlier
    assert abs(len(ours) - len(printed)) <= 1
    for mine, theirs in zip(ours, printed, strict=False):
        assert mine == theirs


def test_an_unregistered_controller_is_shown_as_kafka_shows_it() -> None:
    """No sample holds record 29, which comes with metadata.version 33."""
    assert decode_record(b"\x01\x1d\x00\x00\x00\x00\x02\x00") == (
        UnregisterControllerRecord(controller_id=2),
        0,
    )
    assert record_json(UnregisterControllerRecord(controller_id=2), 0) == (
        '{"type":"UNREGISTER_CONTROLLER_RECORD","version":0,"data":{"controllerId":2}}'
    )


@given(records())
def test_every_record_in_every_version_is_read_back(pair: tuple[Message, int]) -> None:
    record, version = pair
    assert decode_record(encode_record(record, version)) == (record, version)


@given(records())
def test_the_json_of_every_record_is_json(pair: tuple[Message, int]) -> None:
    record, version = pair
    said = json.loads(record_json(record, version))
    assert said["version"] == version
    names = {field.json_name for field in type(record).schema.fields}
    assert set(said["data"]) <= names


@given(records(), st.data())
def test_the_quick_way_prints_the_same_text(pair: tuple[Message, int], data: st.DataObject) -> None:
    value = encode_record(*pair)
    quick = compile_shape(value)
    if quick is not None:
        assert quick(value) == record_json(*pair)
        # another value of the same length: the same text as the codec's, or none
        other = bytearray(value)
        for _ in range(data.draw(st.integers(1, 3))):
            other[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
        try:
            printed = quick(bytes(other))
        except UnicodeDecodeError:
            printed = None
        if printed is not None:
            assert printed == record_json(*decode_record(bytes(other)))


@given(st.lists(records(), min_size=1, max_size=6))
def test_the_printer_prints_the_same_with_any_shapes_learned(
    pairs: list[tuple[Message, int]],
) -> None:
    printer = RecordPrinter()
    for _ in range(20):
        for record, version in pairs:
            assert printer.print(encode_record(record, version)) == record_json(record, version)
    encoded = [encode_record(record, version) for record, version in pairs]
    assert printer.print_all(encoded) == [record_json(*pair) for pair in pairs]


def test_most_sample_records_have_a_shape() -> None:
    logs = [path for path in DUMPED_FILES if path.suffix == ".log"]
    found = [compile_shape(value) is not None for path in logs for value in data_values(path)]
    assert sum(found) > len(found) * 0.95 and len(found) > 1000


@pytest.mark.parametrize(
    ("tag", "default"),
    [(b"\x01\x01\x04\xff\xff\xff\xfe", "leader -2"), (b"\x01\x00\x01\x00", "isr null")],
)
def test_a_tagged_field_that_spells_its_default_is_not_printed(tag: bytes, default: str) -> None:
    value = encode_record(PartitionChangeRecord(partition_id=7), 0)[:-1] + tag
    record, version = decode_record(value)
    assert record == PartitionChangeRecord(partition_id=7), default
    quick = compile_shape(value)
    assert quick is None or quick(value) is None
    assert RecordPrinter().print(value) == record_json(record, version)


@given(st.binary(max_size=60), st.booleans())
@example(b"", False)
@example(b"\xff\xff\xff\xff\xff\x01", False)
def test_random_bytes_raise_only_record_errors(data: bytes, framed: bool) -> None:
    value = b"\x01" + data if framed else data
    for read in (decode_record, RecordPrinter().print):
        try:
            read(value)
        except RecordError as error:
            assert str(error)


@given(records(), st.data())
def test_damaged_records_raise_only_record_errors(
    pair: tuple[Message, int], data: st.DataObject
) -> None:
    value = bytearray(encode_record(*pair))
    value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
    del value[len(value) - data.draw(st.integers(0, 3)) :]
    try:
        record, version = decode_record(bytes(value))
    except RecordError:
        return
    assert decode_record(encode_record(record, version))[1] == version


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (b"", "Error while reading frame version"),
        (b"\x00\x02\x00", "frame version 0"),
        (b"\x02\x02\x00", r"unknown frame version 2\(only frame version 1 is supported\)"),
        (b"\x01\x06\x00", "Unknown metadata id 6"),
        (b"\x01\x1e\x00", "Unknown metadata id 30"),
        (b"\x01\xff\xff\x03\x00", "Value for type was too large"),
        (b"\x01\x02", "Error while reading version"),
        (b"\x01\x02\x01", "TopicRecord version 1 is not supported, only 0 to 0"),
        (TOPIC + b"\0", r"Found 1 byte\(s\) of garbage after 2"),
        (TOPIC[:-1], "Failed to deserialize record with type 2: TopicRecord v0"),
    ],
)
def test_each_hazard_of_a_frame_is_named(value: bytes, what: str) -> None:
    with pytest.raises(RecordError, match=what):
        decode_record(value)


def test_a_padded_frame_is_read_as_kafka_reads_it() -> None:
    assert decode_record(b"\x81\x00\x94\x00\x80\x00" + b"\0") == (NoOpRecord(), 0)


def test_unknown_tagged_fields_are_kept_but_not_printed() -> None:
    value = b"\x01\x14\x00" + b"\x01\x63\x02hi"
    record, version = decode_record(value)
    assert encode_record(record, version) == value
    assert RecordPrinter().print(value) == '{"type":"NO_OP_RECORD","version":0,"data":{}}'


def test_a_version_that_does_not_exist_cannot_be_written() -> None:
    with pytest.raises(RecordError, match="TopicRecord has no version 1"):
        encode_record(TopicRecord(), 1)


def test_all_27_types_are_declared() -> None:
    assert sorted(RECORD_TYPES) == [n for n in range(30) if n not in (6, 13, 16)]


@pytest.mark.parametrize(
    ("change", "version"),
    [
        ({"fenced": 1}, 0),
        ({"in_controlled_shutdown": 1}, 1),
        ({"log_dirs": [Uuid(bytes(16))]}, 2),
        ({"cordoned_log_dirs": []}, 3),
        ({"log_dirs": []}, 2),
    ],
)
def test_a_registration_change_takes_the_lowest_version_that_can_say_it(
    change: dict[str, object], version: int
) -> None:
    record = BrokerRegistrationChangeRecord(**change)  # type: ignore[arg-type]
    assert change_version(record) == version
    assert decode_record(encode_record(record, version)) == (record, version)


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (20.0, "20.0"),
        (55.5, "55.5"),
        (0.001, "0.001"),
        (0.00012, "1.2E-4"),
        (9999999.0, "9999999.0"),
        (10000000.0, "1.0E7"),
        (1.25e300, "1.25E300"),
        (-1.5e-10, "-1.5E-10"),
        (math.inf, '"Infinity"'),
        (-math.inf, '"-Infinity"'),
        (math.nan, '"NaN"'),
    ],
)
def test_numbers_are_printed_as_java_does(value: float, printed: str) -> None:
    assert double(value) == printed


def test_text_is_escaped_as_jackson_does() -> None:
    assert text('a"b\\c/é\u2028\x7f\n\t\x0b\x1f') == '"a\\"b\\\\c/é\u2028\x7f\\n\\t\\u000B\\u001F"'
    assert text("\\u001f") == '"\\\\u001f"'


def test_a_text_with_broken_utf_8_is_no_fault_but_others_beside_it_are() -> None:
    good = encode_record(ConfigRecord(resource_name="abc"), 0)
    printer = RecordPrinter()
    for _ in range(20):
        printer.print(good)
    broken = good.replace(b"abc", b"a\xffc")
    assert "a\ufffdc" in printer.print(broken)
    assert printer.print_all([good, broken]) == [printer.print(good), printer.print(broken)]
    with pytest.raises(RecordError, match="frame version"):
        printer.print_all([good, b""])


def test_null_text_by_tag_is_kept_apart_from_empty_text() -> None:
    for reason in (None, "", "why"):
        record = AbortTransactionRecord(reason=reason)
        assert decode_record(encode_record(record, 0))[0] == record
