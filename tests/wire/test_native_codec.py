"""The codec in C does what the one in Python does, for every message, and leaves it the rest."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
import sysconfig
import weakref
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quorate.base.ids import Uuid
from quorate.wire import generated
from quorate.wire.build import build
from quorate.wire.errors import WireError
from quorate.wire.messages import ApiVersionsRequest, FetchRequest, FetchResponse
from quorate.wire.program import program_for
from quorate.wire.schema import Message
from time_budget import examples, one_in
from wire.message_strategies import all_messages, messages, stored_messages, versions

EACH = pytest.mark.parametrize(
    "cls", [*one_in(4, all_messages()), *stored_messages()], ids=lambda cls: cls.__name__
)
FEW = settings(
    max_examples=examples(15),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    database=None,
)


class FaultError(Exception):
    """Raised instead of falling back, so that the tests see when the C code gives up."""


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A fresh build of the extension that gives up with Fault, and knows every message."""
    path = build(tmp_path_factory.mktemp("native"))
    loaded = _load(path)

    def give_up(*_: object) -> None:
        raise FaultError

    loaded.fall_back(give_up, give_up)
    for cls in (*all_messages(), *stored_messages()):
        for version in versions(cls):
            loaded.learn(cls, version, program_for(cls, version))
    return loaded


def _load(path: Path) -> Any:
    from importlib.machinery import ExtensionFileLoader
    from importlib.util import module_from_spec, spec_from_file_location

    loader = ExtensionFileLoader("_native", str(path))
    spec = spec_from_file_location("_native", path, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


@EACH
@FEW
@given(data=st.data())
def test_both_codecs_agree_on_messages(
    native: Any, cls: type[Message], data: st.DataObject
) -> None:
    version = data.draw(st.sampled_from(versions(cls)))
    message = data.draw(messages(cls, version))
    wire = generated.encode(message, version)
    assert native.encode(message, version) == wire
    assert native.decode(cls, version, wire) == message
    assert native.decode_prefix(cls, version, b"ab" + wire + b"c", 2) == (message, 2 + len(wire))


@EACH
@FEW
@given(data=st.data())
def test_the_codec_in_c_takes_no_bytes_that_the_one_in_python_refuses(
    native: Any, cls: type[Message], data: st.DataObject
) -> None:
    version = data.draw(st.sampled_from(versions(cls)))
    wire = generated.encode(data.draw(messages(cls, version, unknown=True)), version)
    chance = data.draw(st.randoms(use_true_random=False))
    for _ in range(examples(20)):
        mutated = _mutated(wire, chance)
        try:
            found = native.decode_prefix(cls, version, mutated, 0)
        except FaultError:
            continue
        assert repr(found) == repr(generated.decode_prefix(cls, version, mutated, 0))


def _mutated(wire: bytes, chance: random.Random) -> bytes:
    out = bytearray(wire)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(out) + 1)
        if chance.random() < 0.6 and at < len(out):
            out[at] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
        else:
            del out[at : at + chance.randrange(1, 9)]
    return bytes(out)


@pytest.mark.parametrize(
    "message",
    [
        FetchRequest(max_wait_ms=2**31),
        FetchRequest(max_wait_ms=2**70),
        FetchRequest(max_wait_ms="1"),  # type: ignore[arg-type]
        FetchRequest(rack_id=None),  # type: ignore[arg-type]
        FetchRequest(rack_id="n" * 32768),
        FetchRequest(rack_id="\ud800"),
        FetchRequest(topics=(FetchRequest.FetchTopic(),)),  # type: ignore[arg-type]
        FetchRequest(topics=[None]),  # type: ignore[list-item]
        FetchRequest(topics=[FetchRequest.FetchTopic(topic_id=b"short")]),  # type: ignore[arg-type]
        FetchRequest(replica_id=7),
        FetchRequest(replica_state=None),  # type: ignore[arg-type]
        FetchRequest(unknown_tags=((7, b""),)),
    ],
)
def test_what_is_unusual_is_left_to_python(native: Any, message: FetchRequest) -> None:
    with pytest.raises(FaultError):
        native.encode(message, 17)


def test_what_was_not_learned_is_left_to_python(native: Any) -> None:
    for version in (-1, 3, 19, 2**70, True, None):
        with pytest.raises(FaultError):
            native.encode(FetchRequest(), version)
        with pytest.raises(FaultError):
            native.decode(FetchRequest, version, b"")
    with pytest.raises(FaultError):
        native.decode(FetchRequest, 17, bytearray(b"abc"))
    for pos in (-1, 4, 2**62):
        with pytest.raises(FaultError):
            native.decode_prefix(FetchRequest, 17, b"abc", pos)


def test_a_message_whose_field_was_deleted_is_left_to_python(native: Any) -> None:
    message = FetchRequest()
    del message.topics
    with pytest.raises(FaultError):
        native.encode(message, 17)


def test_large_messages_outgrow_the_first_buffer(native: Any) -> None:
    topic = FetchResponse.FetchableTopicResponse
    for size in (900, 1000, 1023, 1024, 1025, 5000, 3_000_000):
        message = FetchResponse(
            responses=[topic(partitions=[topic.PartitionData(records=bytes(size))])],
            node_endpoints=[FetchResponse.NodeEndpoint(host="h" * 200)] * 300,
        )
        assert native.encode(message, 17) == generated.encode(message, 17)


def test_neither_memory_nor_references_leak(native: Any) -> None:
    topic = FetchRequest.FetchTopic
    message = FetchRequest(
        cluster_id="a cluster", topics=[topic(partitions=[topic.FetchPartition()])]
    )
    wire = native.encode(message, 17)
    gc.collect()  # what pytest's exceptions leave in cycles is not the codec's
    before = sys.getrefcount(FetchRequest), sys.getrefcount("a cluster"), sys.getrefcount(None)
    for _ in range(1000):
        native.encode(message, 17)
        native.decode(FetchRequest, 17, wire)
        with pytest.raises(FaultError):
            native.decode(FetchRequest, 17, wire[:-1])
    gc.collect()
    after = sys.getrefcount(FetchRequest), sys.getrefcount("a cluster"), sys.getrefcount(None)
    assert all(abs(one - other) < 100 for one, other in zip(before, after, strict=True))


def test_objects_that_are_used_again_carry_nothing_over(native: Any) -> None:
    full = FetchRequest(
        cluster_id="c" * 20,
        max_wait_ms=77_777,
        topics=[FetchRequest.FetchTopic(topic_id=Uuid(b"t" * 16))],
        rack_id="rack",
    )
    newest, oldest = versions(FetchRequest)[-1], versions(FetchRequest)[0]
    plain = generated.encode(FetchRequest(), oldest)
    for _ in range(100):
        native.decode(FetchRequest, newest, generated.encode(full, newest))
        assert (
            native.decode(FetchRequest, oldest, plain)
            == generated.decode_prefix(FetchRequest, oldest, plain, 0)[0]
        )
        with pytest.raises(FaultError):
            native.decode(FetchRequest, newest, generated.encode(full, newest)[:-3])


def test_what_is_kept_for_the_next_message_is_not_shared_with_it(native: Any) -> None:
    wire = generated.encode(FetchRequest(topics=[FetchRequest.FetchTopic()]), 17)
    one, two = native.decode(FetchRequest, 17, wire), native.decode(FetchRequest, 17, wire)
    one.topics.append(one.topics[0])
    one.topics[0].partitions.append(FetchRequest.FetchTopic.FetchPartition())
    assert two == native.decode(FetchRequest, 17, wire) != one


def _response(records: bytes, high_watermark: int) -> FetchResponse:
    topic = FetchResponse.FetchableTopicResponse
    leader = topic.PartitionData.LeaderIdAndEpoch(leader_id=high_watermark, leader_epoch=7)
    partition = topic.PartitionData(
        high_watermark=high_watermark, current_leader=leader, records=records
    )
    return FetchResponse(responses=[topic(partitions=[partition])])


@pytest.mark.parametrize("size", [200, 5000])
@pytest.mark.parametrize("held", ["responses", "partitions", "partition", "leader", "records"])
def test_a_referenced_buffer_is_not_overwritten_after_its_message_is_freed(
    native: Any, held: str, size: int
) -> None:
    one, two = _response(b"a" * size, 1000), _response(b"b" * size, 2000)
    wires = generated.encode(one, 17), generated.encode(two, 17)
    message = native.decode(FetchResponse, 17, wires[0])
    [topic] = message.responses
    [partition] = topic.partitions
    kept = {
        "responses": message.responses,
        "partitions": topic.partitions,
        "partition": partition,
        "leader": partition.current_leader,
        "records": partition.records,
    }[held]
    said = repr(kept)
    del message, topic, partition
    for _ in range(20):
        assert native.decode(FetchResponse, 17, wires[1]) == two
    assert repr(kept) == said


def test_bytes_that_are_written_over_are_hashed_anew(native: Any) -> None:
    wires = [generated.encode(_response(letter * 200, 1), 17) for letter in (b"a", b"b")]
    found = []
    for wire in wires:
        message = native.decode(FetchResponse, 17, wire)
        records = message.responses[0].partitions[0].records
        found.append((id(records), hash(records)))
        del records, message
    (one, _), (two, hashed) = found
    assert one == two, "they were not written over: this shows nothing"
    assert hashed == hash(b"b" * 200)


def _in_a_slot(message: Any, value: Any) -> None:
    message.responses[0].partitions[0].high_watermark = value


def _in_a_list(message: Any, value: Any) -> None:
    message.responses[0].partitions.append(value)


def _in_a_list_of_lists(message: Any, value: Any) -> None:
    message.node_endpoints.append([value])


def _in_a_long_list(message: Any, value: Any) -> None:
    message.responses[0].partitions[0].aborted_transactions = [0] * 200 + [value]


@pytest.mark.parametrize("place", [_in_a_slot, _in_a_list, _in_a_list_of_lists, _in_a_long_list])
@pytest.mark.parametrize("value", ["t" * 100, b"b" * 5000, 2**100, {1: 2}, 1.5], ids=repr)
def test_what_a_dead_message_had_is_let_go_where_it_is_large_or_foreign(
    native: Any, place: Any, value: Any
) -> None:
    wire = generated.encode(_response(b"", 1), 17)
    before = sys.getrefcount(value)
    for _ in range(3):
        message = native.decode(FetchResponse, 17, wire)
        place(message, value)
        del message
        assert sys.getrefcount(value) == before
        assert native.decode(FetchResponse, 17, wire) == _response(b"", 1)


def test_lists_of_lists_without_end_are_let_go_without_deep_calls(native: Any) -> None:
    wire = generated.encode(_response(b"", 1), 17)
    for _ in range(20):
        message = native.decode(FetchResponse, 17, wire)
        for _ in range(2000):
            outer = native.decode(FetchResponse, 17, wire)
            outer.responses[0].partitions.append(message)
            message = outer
        del message, outer
    assert native.decode(FetchResponse, 17, wire) == _response(b"", 1)


def test_objects_of_a_subclass_die_as_any_other(native: Any) -> None:
    class Mine(FetchRequest.FetchTopic):
        extra: object

    class Witness:
        pass

    witness = Witness()
    gone = weakref.ref(witness)
    before = sys.getrefcount(FetchRequest.FetchTopic)
    for _ in range(50):
        mine = object.__new__(Mine)
        mine.topic_id = witness  # type: ignore[assignment]  # any object with weak references
        del mine
    del witness
    gc.collect()
    assert gone() is None
    assert sys.getrefcount(FetchRequest.FetchTopic) < before + 10


def test_a_program_that_is_none_is_refused(native: Any) -> None:
    cls, flexible, fields = program_for(ApiVersionsRequest, 3)
    name, _, *rest = fields[0]
    with pytest.raises(ValueError, match="not a program"):
        native.learn(ApiVersionsRequest, 3, (cls, flexible, ((name, 99, *rest),)))
    with pytest.raises(AttributeError):
        native.learn(ApiVersionsRequest, 3, (cls, flexible, (("no_slot", 9, *rest),)))
    with pytest.raises(TypeError):
        native.learn(ApiVersionsRequest, 3, (cls, flexible, (("__init__", 9, *rest),)))


CHOICE = """
import sys
sys.modules["quorate.wire._native"] = None
import quorate.wire.codec as codec
from quorate.wire.messages import VoteRequest
assert codec.decode(VoteRequest, 2, memoryview(codec.encode(VoteRequest(), 2))) == VoteRequest()
try:
    codec.decode(VoteRequest, 2, b"")
except codec.WireError as error:
    print(codec.NATIVE, type(codec.encode).__name__, error)
"""


def test_without_the_extension_python_does_it_all() -> None:
    found = subprocess.run(
        [sys.executable, "-c", CHOICE], capture_output=True, text=True, check=True
    )
    assert found.stdout.startswith("False function VoteRequest v2: cannot read cluster_id at byte")


def test_without_a_compiler_the_build_says_so_and_ends(tmp_path: Path) -> None:
    script = (
        "import sysconfig, sys; sysconfig.get_config_vars()['CC'] = 'no-such-compiler';"
        "from quorate.wire import build; sys.exit(build.main(sys.argv[1:]))"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert found.returncode == 1
    assert found.stderr == "No C compiler found: the codec in Python stays in use.\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_build_makes_one_extension_for_this_python(tmp_path: Path) -> None:
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    assert build(tmp_path) == tmp_path / f"_native{suffix}"
    assert [path.name for path in tmp_path.iterdir()] == [f"_native{suffix}"]


def test_garbage_is_refused_the_same_way_whichever_codec_is_in_use() -> None:
    from quorate.wire.codec import decode

    with pytest.raises(WireError, match="FetchRequest v17: cannot read topics"):
        decode(FetchRequest, 17, bytes(22))
