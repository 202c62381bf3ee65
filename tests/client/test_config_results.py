"""Responses with the configs of many resources: what is decoded once is what the codec decodes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.client.admin.config_results import Result, decode_config_response
from quorate.wire.errors import WireError
from quorate.wire.header import decode_response, encode_response
from quorate.wire.messages import DescribeConfigsResponse
from time_budget import examples
from wire.message_strategies import structs

KEY = 32
SCHEMA = DescribeConfigsResponse.schema


def frame_of(response, version):
    return encode_response(response, KEY, version, 7)[4:]


@st.composite
def responses(draw, version):
    """Results of a few kinds, so that some follow their like."""
    kinds = draw(st.lists(structs(Result, SCHEMA, version, unknown=version == 4), max_size=3))
    chosen = draw(st.lists(st.sampled_from(kinds), max_size=8)) if kinds else []
    results = [
        one.replace(resource_name=f"{one.resource_name}-{n}") for n, one in enumerate(chosen)
    ]
    return DescribeConfigsResponse(throttle_time_ms=draw(st.integers(0, 9)), results=results)


@settings(max_examples=examples(60), deadline=None, database=None)
@given(data=st.data())
def test_the_response_is_that_of_the_codec(data):
    version = data.draw(st.sampled_from([1, 3, 4, 4, 4]))
    frame = frame_of(data.draw(responses(version)), version)
    assert decode_config_response(frame, KEY, version) == decode_response(frame, KEY, version)


def a_response(count):
    entry = Result.DescribeConfigsResourceResult(name="retention.ms", value="1", config_source=5)
    other = entry.replace(value="2", config_source=1)
    results = [
        Result(resource_type=2, resource_name=f"t{n}", configs=[other if n == 2 else entry])
        for n in range(count)
    ]
    return DescribeConfigsResponse(results=results)


def test_equal_configs_are_decoded_once():
    _, found = decode_config_response(frame_of(a_response(6), 4), KEY, 4)
    assert isinstance(found, DescribeConfigsResponse)
    lists = [id(result.configs) for result in found.results]
    assert len(set(lists[:2])) == 1 and len(set(lists[3:])) == 1 and len(set(lists)) == 3
    assert found == a_response(6)


def test_damaged_bytes_are_refused():
    frame = frame_of(a_response(4), 4)
    for size in range(len(frame)):
        with pytest.raises(WireError):
            decode_config_response(frame[:size], KEY, 4)
    with pytest.raises(WireError):
        decode_config_response(frame + b"x", KEY, 4)
