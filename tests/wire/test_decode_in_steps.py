"""A long request is decoded in steps, with the same result as at once, also where it is malformed."""

import random
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quorate.controller.building import at_once
from quorate.wire import generated, native
from quorate.wire import messages as m
from quorate.wire.codec import SMALL_BYTES, decode_prefix, encode
from quorate.wire.errors import WireError
from quorate.wire.generated import decode_in_steps
from quorate.wire.header import decode_request, decode_request_in_steps, encode_request
from quorate.wire.registry import APIS
from quorate.wire.source_decode import STEP_BYTES
from time_budget import examples
from wire.message_strategies import messages

LONG = (
    (m.AlterPartitionRequest, 3),
    (m.AlterClientQuotasRequest, 1),
    (m.CreateTopicsRequest, 7),
    (m.CreateTopicsRequest, 2),
    (m.DeleteTopicsRequest, 5),
)
FEW = settings(
    max_examples=examples(20),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)


def outcome(decode):
    """What it decodes, or the text of the error."""
    try:
        return decode()
    except WireError as error:
        return str(error)


@pytest.mark.parametrize(("cls", "version"), LONG)
@FEW
@given(data=st.data())
def test_steps_decode_what_is_decoded_at_once(cls, version, data):
    whole = encode(data.draw(messages(cls, version, unknown=True)), version)
    chance = data.draw(st.randoms(use_true_random=False))
    for _ in range(examples(10)):
        wire = bytearray(whole)
        with suppress(IndexError, ValueError):
            wire[chance.randrange(len(wire))] = chance.randrange(256)
        for cut in (len(wire), chance.randrange(len(wire) + 1)):
            found = bytes(wire[:cut])
            at_once_found = outcome(lambda found=found: decode_prefix(cls, version, found, 0))
            in_steps = outcome(lambda found=found: at_once(decode_in_steps(cls, version, found, 0)))
            assert in_steps == at_once_found


def test_every_request_can_be_decoded_in_steps():
    for api in APIS.values():
        message = api.request()
        data = encode(message, api.max_version)
        found = at_once(decode_in_steps(api.request, api.max_version, data, 0))
        assert found == (message, len(data))


def test_the_codec_in_python_alone_decodes_the_same(monkeypatch):
    """Where there is no compiler."""
    frame = quotas(10 * SMALL_BYTES)
    expected = decode_request(frame).message
    monkeypatch.setattr(generated, "_STEP_DECODERS", {})
    monkeypatch.setattr(native, "is_loaded", False)
    found = at_once(decode_request_in_steps(frame))
    assert found.message == expected


def quotas(size):
    """A frame of at least so many bytes, each of whose items has three."""
    entry = m.AlterClientQuotasRequest.EntryData()
    request = m.AlterClientQuotasRequest(entries=[entry] * (size // 3))
    return encode_request(request, 1, 1, "t")[4:]


@pytest.mark.parametrize(
    "harm", [lambda frame: frame[:-1], lambda frame: frame[:-1] + b"\x01\x63\x00"]
)
@pytest.mark.parametrize("size", [SMALL_BYTES, 1 << 20])
def test_no_step_reads_more_than_some_kilobytes(size, harm):
    """Neither of what the codec in C knows nor of what only the one in Python does: an unknown tag, or a
    frame that ends early."""
    frame = quotas(size)
    for found in (frame, harm(frame)):
        pauses = 0
        steps = decode_request_in_steps(found)
        try:
            while True:
                next(steps)
                pauses += 1
        except StopIteration as end:
            assert end.value.message == decode_request(found).message
        except WireError as error:
            assert str(error) == outcome(lambda found=found: decode_request(found))
        assert pauses >= len(frame) // (2 * STEP_BYTES)


def test_a_small_request_is_decoded_at_once():
    frame = quotas(random.Random(1).randrange(SMALL_BYTES - 100))
    with pytest.raises(StopIteration):
        next(decode_request_in_steps(frame))
