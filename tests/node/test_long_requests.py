"""Requests that are too long: each API answers with its response, an error and the limit."""

import random
import struct

import pytest

from embed.member_world import MemberWorld
from narrow import not_none
from node.world import World
from quorate.base.errors import ErrorCode as E
from quorate.node import long_requests
from quorate.node.apis import API_TABLE, ROWS
from quorate.node.long_requests import decode_long_request, refusal
from quorate.node.node_io import NodeEffects
from quorate.node.request_limits import REFUSED_BYTES, size_refusal
from quorate.node.requests import ENVELOPE, Call
from quorate.security.authorizer import AuthorizerConfig
from quorate.wire import messages as m
from quorate.wire.codec import encode
from quorate.wire.errors import WireError
from quorate.wire.header import (
    WireRequest,
    decode_request,
    decode_response,
    encode_request,
)
from quorate.wire.registry import APIS

KIB, MIB = 1024, 1024 * 1024
TOO_LONG = 9 * MIB
VALUES = {"string": "x", "uuid": bytes(16)}
"""Of lists; a number otherwise."""
FETCH_ERROR_SINCE = 7
"""The first version of Fetch with an error of the whole request. No replica sends an older one."""
BROKER, ALICE = "User:broker", "User:alice"


def errors(item):
    """Every (code, message) of an error in a response; the message is None where there is no place."""
    code = getattr(item, "error_code", 0)
    if code:
        yield E(code), getattr(item, "error_message", None)
    for field in item.schema.fields:
        if field.type_name == "array" and field.holds_structs:
            for each in getattr(item, field.name) or ():
                yield from errors(each)


def some_items(cls, version=None):
    """A request with three items in each of its lists, and so on."""
    values = {}
    for field in cls.schema.fields:
        if field.type_name == "array" and (version is None or field.in_version(version)):
            if field.holds_structs:
                values[field.name] = [some_items(field.struct, version) for _ in range(3)]
            else:
                values[field.name] = [VALUES.get(field.element, 1)] * 3
    return cls(**values)


def begun(message, version=None):
    key = message.schema.key
    version = APIS[key].max_version if version is None else version
    return encode_request(message, version, 7, "test")[4:][:REFUSED_BYTES]


def call_of(start, size=TOO_LONG, token=1, principal=ALICE):
    request, text = decode_long_request(start, size)
    return Call(token, request, "CONTROLLER", None, principal, "10.0.0.7", size=size, too_long=text)


def refused(message, version=None, size=TOO_LONG):
    call = call_of(begun(message, version), size)
    answer = refusal(API_TABLE[message.schema.key], call, is_denied=False)
    assert not isinstance(answer, str), answer
    frame = call.encode(answer)
    correlation_id, response = decode_response(
        frame[4:], call.request.api_key, call.request.version
    )
    assert correlation_id == 7
    return response


def text_of(name, size=TOO_LONG):
    most = next(row.max_bytes for row in ROWS if row.name == name)
    return f"A request of {name} has {most} bytes at most here, not {size}."


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.key != ENVELOPE], ids=lambda row: row.name
)
def test_each_version_of_each_api_refuses_what_is_too_long(row):
    """A response without an error would say that the request is done."""
    api = APIS[row.key]
    code = E.INVALID_REQUEST if row.operation is None else E.POLICY_VIOLATION
    first = FETCH_ERROR_SINCE if row.key == 1 else api.min_version
    for version in range(first, api.max_version + 1):
        response = refused(some_items(api.request, version), version)
        found = list(errors(response))
        assert found and {error for error, _ in found} == {code}
        assert {said for _, said in found} <= {text_of(row.name), None, ""}, found
        if getattr(response, "error_code", 0):  # Java's Admin compares the number of its items
            assert len(found) == 1 and not any(
                getattr(response, field.name)
                for field in response.schema.fields
                if field.type_name == "array"
            )


@pytest.mark.parametrize(
    ("message", "codes"),
    [
        (some_items(m.CreateTopicsRequest), 3),
        (some_items(m.CreateAclsRequest), 3),
        (some_items(m.DeleteAclsRequest), 3),
        (some_items(m.IncrementalAlterConfigsRequest), 3),
        (some_items(m.AlterConfigsRequest), 3),
        (some_items(m.DeleteTopicsRequest, 6), 3),
        (some_items(m.AlterClientQuotasRequest), 3),
        (some_items(m.DescribeConfigsRequest), 3),
        (some_items(m.UpdateFeaturesRequest), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_message_says_how_long_the_request_may_be(message, codes):
    found = list(errors(refused(message)))
    most = API_TABLE[message.schema.key].max_bytes
    assert len(found) >= codes
    assert all(f"has {most} bytes at most here, not {TOO_LONG}" in said for _, said in found)


def test_the_topics_at_the_beginning_are_named_and_the_first_have_the_message():
    cls = m.CreateTopicsRequest.CreatableTopic
    names = [f"topic-{number}" for number in range(1_000)]
    response = refused(m.CreateTopicsRequest(topics=[cls(name=name) for name in names]))
    found = [topic.name for topic in response.topics]
    assert 10 < len(found) < 100
    assert found == names[: len(found)]
    assert {topic.error_code for topic in response.topics} == {E.POLICY_VIOLATION}
    said = [topic.error_message for topic in response.topics]
    assert said == [text_of("CreateTopics")] * 5 + [None] * (len(found) - 5)


def test_a_topic_of_a_million_partitions_is_named():
    cls = m.CreateTopicsRequest.CreatableTopic
    one = cls.CreatableReplicaAssignment(partition_index=1, broker_ids=[1])
    topic = cls(name="wide", num_partitions=-1, replication_factor=-1, assignments=[one] * 1_000)
    [answer] = refused(m.CreateTopicsRequest(topics=[topic])).topics
    assert (answer.name, answer.error_code) == ("wide", E.POLICY_VIOLATION)


def test_a_request_that_cannot_be_read_so_far_has_no_response():
    call = call_of(begun(some_items(m.CreateAclsRequest))[:16])
    for is_denied in (False, True):
        why = "its response has no place for an error"
        assert refusal(API_TABLE[30], call, is_denied=is_denied) == why
    for data in (b"\xff" * 100, struct.pack(">h", 30_000), struct.pack(">h", 1) + b"a\xff"):
        with pytest.raises(WireError):
            decode_long_request(struct.pack(">hhi", 19, 7, 7) + data, TOO_LONG)


# -- whatever the bytes are ------------------------------------------------------------------------
FILLINGS = (b"\0", b"\1", b"\2", b"\xff", b"\2a\1", b"\0\1a\0\0\0\2", b"\xff\xff\x7f\1")


def beginnings():
    """Of all APIs and of versions that exist and do not: what no client sends, and requests that are cut."""
    rng = random.Random(7)
    for key in (*API_TABLE, 9_999):
        api = APIS.get(key)
        for version in range(-2, (api.max_version if api else 0) + 4):
            head = struct.pack(">hhih", key, version, 7, 1) + b"c"
            for filling in FILLINGS:
                lead = rng.choice([b"", b"\0", b"\xff\xff\x7f", b"\0\0\x7f\xff", b"\0\2"])
                yield (head + lead + filling * REFUSED_BYTES)[:REFUSED_BYTES]
            yield head + rng.randbytes(100)
            if api and api.min_version <= version <= api.max_version:
                whole = begun(some_items(api.request, version), version)
                yield whole
                yield whole[: rng.randrange(len(whole))]
    for size in range(12):
        yield bytes(size)


def enclosed(data, **fields):
    return m.EnvelopeRequest(
        request_data=data,
        **{
            "request_principal": bytes(2)
            + encode(m.DefaultPrincipalData(type="User", name="a"), 0),
            "client_host_address": bytes(4),
            **fields,
        },
    )


@pytest.fixture(scope="module")
def world():
    return started()


def started(**config):
    world = World((1,), audited=True, **config)
    world.run_until(lambda: world.active)
    world.run(100)
    return world


class Asked:
    """Asks the node of a world, and has what became of it."""

    def __init__(self, world):
        self.node = world.leader.running
        self.world = world
        self.effects = NodeEffects()

    def __call__(self, call):
        self.effects = self.node.step([call], self.world.now)
        found: dict[int, bytes | str] = {**dict(self.effects.answers)}
        found |= {closed.token: closed.reason for closed in self.effects.closed}
        assert list(found) == [call.token]
        return found[call.token]


def test_no_bytes_of_a_client_can_end_a_node(world):
    ask, answered, members = Asked(world), 0, MemberWorld(1)
    members.start(members.members[1])
    member = not_none(members.members[1].node)
    for start in beginnings():
        try:
            call = call_of(start)
        except WireError:
            continue
        found = ask(call)
        answered += isinstance(found, bytes)
        for member.allowed in (None, frozenset()):
            assert len(member.step([call], world.now).too_long) == 1
    assert answered > 500


def test_no_bytes_in_an_envelope_can_end_a_node(world):
    ask, seen = Asked(world), set()
    whole = begun(enclosed(b"start".ljust(MIB + 1)))
    head = whole[: whole.index(b"start")]
    for start in beginnings():
        calls = [call_of(head + start, MIB + 99)]
        data = start.ljust(80 * KIB, b"\0")
        if size_refusal(data, len(data)) is not None:
            calls.append(short_envelope(data))
        seen |= {answer_in(ask(call))[0] for call in calls}
    assert seen == {E.NONE, E.INVALID_REQUEST, E.UNSUPPORTED_VERSION}


def test_no_request_without_permission_ends_an_embedded_member(world):
    members = MemberWorld(1)
    members.start(members.members[1])
    member = not_none(members.members[1].node)
    member.allowed = frozenset()
    for row in ROWS:
        api = APIS[row.key]
        request = WireRequest(row.key, api.max_version, 7, "c", some_items(api.request))
        effects = member.step([Call(1, request, "CONTROLLER")], world.now)
        assert len(effects.answers) + len(effects.closed) == 1, row.name


@pytest.mark.parametrize("is_enclosed", [False, True])
def test_what_nobody_has_foreseen_closes_a_connection_or_refuses_an_envelope(
    world, monkeypatch, is_enclosed
):
    def fail(*_):
        raise KeyError("unforeseen")

    monkeypatch.setattr(long_requests, "refused", fail)
    data = begun(some_items(m.CreateTopicsRequest))
    ask = Asked(world)
    if is_enclosed:
        assert answer_in(ask(call_of(begun(enclosed(data + bytes(MIB)))))) == (
            E.INVALID_REQUEST,
            None,
        )
    else:
        assert "KeyError('unforeseen')" in ask(call_of(data))
    [(_, why)] = ask.effects.too_long
    assert "KeyError('unforeseen')" in why
    monkeypatch.setattr(long_requests, "decode_beginning", fail)
    with pytest.raises(WireError, match="KeyError"):
        call_of(data)


# -- in an Envelope --------------------------------------------------------------------------------
def inside(message, version=None):
    key = message.schema.key
    return encode_request(message, version or APIS[key].max_version, 9, "client")[4:]


def answer_in(frame, key=19, version=7):
    """The error of an Envelope, and the errors in the response inside."""
    _, outer = decode_response(frame[4:], ENVELOPE, 0)
    assert isinstance(outer, m.EnvelopeResponse)
    if outer.response_data is None:
        return E(outer.error_code), None
    try:
        correlation_id, response = decode_response(outer.response_data, key, version)
    except WireError:
        return E(outer.error_code), "another"
    return E(outer.error_code), list(errors(response)) if correlation_id == 9 else "another"


def test_the_client_of_a_broker_learns_the_limit_too(world):
    data = inside(some_items(m.CreateTopicsRequest)).ljust(MIB, b"\0")
    start = begun(enclosed(data))
    found = answer_in(Asked(world)(call_of(start, MIB + 100)))
    text = f"A request of Envelope has {MIB} bytes at most here, not {MIB + 100}."
    assert found == (E.NONE, [(E.POLICY_VIOLATION, text)] * 3)


def test_the_limit_is_that_of_the_request_inside_where_it_is_too_long(world):
    data = inside(some_items(m.UpdateFeaturesRequest)).ljust(2 * MIB, b"\0")
    found = answer_in(Asked(world)(call_of(begun(enclosed(data)))), 57, 2)
    assert found == (E.NONE, [(E.POLICY_VIOLATION, text_of("UpdateFeatures", 2 * MIB))])


def short_envelope(data):
    request = decode_request(encode_request(enclosed(data), 0, 7, "b")[4:])
    return Call(1, request, "CONTROLLER", None, BROKER, size=len(data))


def test_a_node_answers_for_the_request_in_an_envelope_of_a_size_that_may_be(world):
    data = inside(some_items(m.UpdateFeaturesRequest)).ljust(70_000, b"\0")
    ask = Asked(world)
    found = answer_in(ask(short_envelope(data)), 57, 2)
    assert found == (E.NONE, [(E.POLICY_VIOLATION, text_of("UpdateFeatures", 70_000))])
    [(call, _)] = ask.effects.too_long
    assert (call.principal, call.request.client_id, call.size) == ("User:a", "client", 70_000)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (inside(m.FetchRequest()), E.INVALID_REQUEST),
        (struct.pack(">hhi", 9999, 0, 7) + bytes(100), E.UNSUPPORTED_VERSION),
        (struct.pack(">hhi", 19, 99, 7) + bytes(100), E.UNSUPPORTED_VERSION),
        (struct.pack(">hhih", 64, 9, 7, 1) + b"c", E.UNSUPPORTED_VERSION),
        (struct.pack(">hhi", 19, -1, 7) + bytes(100), E.UNSUPPORTED_VERSION),
        (struct.pack(">hhi", 57, 2, 7) + b"\xff" * 100, E.INVALID_REQUEST),
    ],
    ids=["not forwardable", "no API", "no version", "a later one", "negative", "no message"],
)
def test_an_envelope_around_what_has_no_response_is_refused(world, data, error):
    """With the same error as where it is short."""
    ask = Asked(world)
    assert answer_in(ask(short_envelope(data.ljust(80 * KIB, b"\0")))) == (error, None)
    start = begun(enclosed(data.ljust(2 * MIB, b"\0")))
    assert answer_in(ask(call_of(start))) == (error, None)


# -- as every call ---------------------------------------------------------------------------------
def test_an_authorizer_is_asked_first_and_the_audit_trail_has_both():
    world = started(authorizer=AuthorizerConfig(super_users=frozenset({BROKER})))
    ask, message = Asked(world), some_items(m.CreateAclsRequest)
    for principal, code in ((ALICE, E.CLUSTER_AUTHORIZATION_FAILED), (BROKER, E.POLICY_VIOLATION)):
        frame = ask(call_of(begun(message), principal=principal))
        response = decode_response(frame[4:], 30, 3)[1]
        assert {error for error, _ in errors(response)} == {code}
        [entry] = ask.effects.audit
        shown = (entry["request"], entry["principal"], entry["clientId"], entry["result"])
        assert shown == ("CreateAcls", principal, "test", code.name)
        [(call, why)] = ask.effects.too_long
        assert (call.principal, why) == (principal, text_of("CreateAcls"))


def test_the_work_for_it_counts_for_the_quota_of_its_client(world):
    entry = m.AlterClientQuotasRequest.EntryData
    user = entry.EntityData(entity_type="user", entity_name="alice")
    quota = entry(entity=[user], ops=[entry.OpData(key="request_percentage", value=0.5)])
    world.ask(1, m.AlterClientQuotasRequest(entries=[quota]))
    ask = Asked(world)
    for attempt in range(2):
        start = begun(some_items(m.CreateTopicsRequest))
        call = call_of(start)
        ask(
            Call(
                1,
                call.request,
                "CONTROLLER",
                None,
                ALICE,
                "",
                False,
                10**9,
                TOO_LONG,
                call.too_long,
            )
        )
        assert ask.effects.throttled == [(1, 1_000)], attempt


def test_a_standby_refuses_the_envelope_itself():
    world = World()
    world.run_until(lambda: world.active)
    node_id = next(number for number in world.nodes if number != world.leader.node_id)
    world.run(100)
    data = inside(some_items(m.CreateTopicsRequest)).ljust(MIB, b"\0")
    effects = world.nodes[node_id].running.step([call_of(begun(enclosed(data)))], world.now)
    [(_, frame)] = effects.answers
    assert answer_in(frame) == (E.NOT_CONTROLLER, None)


@pytest.mark.parametrize(
    "message",
    [
        m.CreateAclsRequest(creations=[m.CreateAclsRequest.AclCreation(resource_name="x")] * 20),
        m.DeleteAclsRequest(filters=[m.DeleteAclsRequest.DeleteAclsFilter()] * 20),
    ],
    ids=["create", "delete"],
)
def test_a_response_that_repeats_one_result_has_the_message_too(message):
    found = list(errors(refused(message)))
    text = text_of(APIS[message.schema.key].name)
    assert len(found) > 5 and all(said == text for _, said in found)
