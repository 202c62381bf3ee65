"""How long one request holds the event loop of a controller: malicious requests, and reads of much."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import bench.systems  # noqa: F401 - the harness of the tests can be imported then
from bench.report import Goal, Report
from immutables import Map

from narrow import not_none
from node.world import LISTENER, World
from quorate.base.ids import Uuid
from quorate.controller.activation import Bootstrap
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.result import (
    MAX_RECORDS,
    Part,
    Result,
    Steps,
    WriteOperation,
    controller_task,
)
from quorate.controller.token_config import TokenConfig
from quorate.formats.records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    PartitionRecord,
    TopicRecord,
    UserScramCredentialRecord,
    encode_record,
)
from quorate.node.apis import ROWS
from quorate.node.request_limits import size_refusal
from quorate.node.requests import ENVELOPE, Call
from quorate.replica.snapshot_policy import SnapshotPolicy
from quorate.security.acl import AclOperation, AclResource
from quorate.security.authorizer import AuthorizerConfig
from quorate.security.principal import ANONYMOUS
from quorate.server.collector import Collector
from quorate.wire import messages as m
from quorate.wire.errors import EncodeError
from quorate.wire.header import WireRequest, decode_request_in_steps, encode_request
from quorate.wire.registry import APIS
from quorate.wire.schema import Field, Message, Struct

SYSTEM = "quorate"
LIMIT_MS = 50.0
NOBODY = "User:nobody"
"""A requester without permissions."""
HEADER_BYTES = 200
"""Room for what is no item."""
MOST_ITEMS = 1_000_000
GROUPS = 300
"""Of a list of lists, beside one that has all items."""
MANY = 100_000
PARTITIONS_PER_TOPIC = 10
LEVEL = encode_record(FeatureLevelRecord(name="metadata.version", feature_level=30), 0)
LOST = Uuid(bytes(15) + b"\x01")
CONTENT = {"int8": 0, "int16": 0, "int32": 0, "int64": 0, "string": "", "uuid": bytes(16)}


class Timed(World):
    """Controllers in memory; it keeps the longest step of each, in processor time, s."""

    def __init__(self, *nodes: int, **words: Any) -> None:
        self.longest = 0.0
        self.answering: dict[int, bool] = {}
        """Whether a node has not done with an answer."""
        super().__init__(nodes, **words)

    def _step(self, node: Any, happened: Any) -> None:
        began = time.thread_time()
        effects = node.running.step(happened, self.now)
        happened.clear()  # to drop a request takes its time, too
        self.longest = max(self.longest, time.thread_time() - began)
        self.answering[node.node_id] = effects.is_answering
        node.wake_at_ms = effects.wake_at_ms
        node.notes += effects.notes
        node.faulted, node.stopped = effects.faulted, effects.stopped
        self.give(node.node_id, *node.disk.perform(list(effects.jobs)))
        self._carry(node, effects)

    def longest_s(self, node_id: int, frame: bytes, principal: str) -> float:
        """The longest time for which the loop of the node is held by this request."""
        done: list[bool] = []
        token = self._answer_to(lambda answer: done.append(True))
        assert size_refusal(frame, len(frame)) is None
        request, decoding = _decoded(frame)
        call = Call(token, request, LISTENER, None, principal, "10.0.0.7", size=len(frame))
        del request
        gc.collect()
        gc.freeze()  # as a node does after its start
        self.longest = 0.0
        self.give(node_id, call)
        del call
        collector = Collector(time.monotonic)
        collector.set_busy(True)
        self.run_until(lambda: done or token in self.closed, 600_000)
        self.run_until(lambda: not self.answering[node_id], 600_000)
        collector.set_busy(False)
        return max(decoding, self.longest)


def _decoded(frame: bytes) -> tuple[WireRequest, float]:
    """The request, and the longest step of decoding it, s."""
    steps, longest = decode_request_in_steps(frame), 0.0
    while True:
        began = time.thread_time()
        try:
            next(steps)
        except StopIteration as end:
            return end.value, max(longest, time.thread_time() - began)
        longest = max(longest, time.thread_time() - began)


def blocks(quick: bool) -> Report:
    """Requests as long as they may be, with as many items as fit; and reads of 100,000 entries."""
    report = Report()
    worst = max((*_requests(report, quick), *_reads(report, quick)))
    report.goals.append(Goal("longest block of the loop, ms of processor time", worst, LIMIT_MS))
    return report


def _requests(report: Report, quick: bool) -> Iterator[float]:
    world = Timed(1, 2, 3, bootstrap=Bootstrap((LEVEL,)), authorizer=_authorizer())
    world.run_until(lambda: world.active and world.active.image.features.metadata_version)
    active = world.leader.node_id
    standby = next(node_id for node_id in world.nodes if node_id != active)
    kinds = (
        ("active", active, ANONYMOUS),
        ("standby", standby, ANONYMOUS),
        ("denied", active, NOBODY),
    )
    for row in ROWS:
        if row.key == ENVELOPE or (row.operation is None and row.handler is None):
            continue
        most = row.max_bytes // 20 if quick else row.max_bytes
        frames = list(_frames(row.key, most))
        for kind, node_id, principal in kinds if frames else ():
            spans = {
                what: world.longest_s(node_id, frame, principal) * 1000 for what, frame in frames
            }
            what = max(spans, key=spans.__getitem__)
            report.add(f"{row.name} of {what}, {kind}", SYSTEM, spans[what], "ms")
            yield spans[what]


def _authorizer() -> AuthorizerConfig:
    return AuthorizerConfig(super_users=frozenset({ANONYMOUS}))


def _frames(key: int, size: int) -> Iterator[tuple[str, bytes]]:
    """Requests of about `size` bytes, each with one of its lists as long as can be."""
    request = APIS[key].request
    longest: dict[str, tuple[int, bytes]] = {}
    for version in range(APIS[key].min_version, APIS[key].max_version + 1):
        for path in _lists(request, version):
            try:
                step = len(_frame(request, path, 2_000, version)) - len(
                    _frame(request, path, 1_000, version)
                )
                count = min(MOST_ITEMS, (size - HEADER_BYTES) * 1_000 // step)
                frame = _frame(request, path, count, version)
            except EncodeError:
                continue
            what = ".".join(field.name for field in path)
            if count > longest.get(what, (0, b""))[0]:
                longest[what] = count, frame
            if len(path) > 1:
                each = count * 9 // 10 // GROUPS
                frame = _frame(request, path, each, version, GROUPS)
                if len(frame) <= size and each > longest.get(f"{GROUPS} x {what}", (0, b""))[0]:
                    longest[f"{GROUPS} x {what}"] = each, frame
    for what, (count, frame) in longest.items():
        yield f"{count:,} {what}", frame


def _lists(
    cls: type[Struct], version: int, above: tuple[Field, ...] = ()
) -> Iterator[tuple[Field, ...]]:
    for field in cls.schema.fields:
        if field.type_name == "array" and field.in_version(version):
            yield (*above, field)
            if field.holds_structs:
                yield from _lists(field.struct, version, (*above, field))


def _frame(
    request: type[Message], path: tuple[Field, ...], count: int, version: int, groups: int = 1
) -> bytes:
    message = _filled(request, path, count, groups)
    assert isinstance(message, Message)
    return encode_request(message, version, 1, "bench")[4:]


def _filled(cls: type[Struct], path: tuple[Field, ...], count: int, groups: int = 1) -> Struct:
    field, *deeper = path
    if deeper:
        return cls(**{field.name: [_filled(field.struct, tuple(deeper), count)] * groups})
    item = field.struct() if field.holds_structs else CONTENT[str(field.element)]
    return cls(**{field.name: [item] * count})


# -- reads --------------------------------------------------------------------------------------------
def _reads(report: Report, quick: bool) -> Iterator[float]:
    count = MANY // 20 if quick else MANY
    policy = SnapshotPolicy(max_bytes=1 << 60, max_interval_ms=0)
    world = Timed(
        1,
        bootstrap=Bootstrap((LEVEL,)),
        authorizer=_authorizer(),
        policy=policy,
        tokens=TokenConfig("a secret key"),
        security_protocols=Map({LISTENER: "SASL_SSL"}),
    )
    world.nodes[1].running.add_task(_load(_image(count)), 1)
    world.run_until(lambda: world.active and len(world.active.image.scram) == count, 10_000_000)
    partitions = m.DescribeTopicPartitionsRequest
    asked = {
        "ListConfigResources": m.ListConfigResourcesRequest(),
        "ListPartitionReassignments": m.ListPartitionReassignmentsRequest(topics=None),
        "DescribeAcls": m.DescribeAclsRequest(
            resource_type_filter=1,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        ),
        "DescribeClientQuotas": m.DescribeClientQuotasRequest(),
        "DescribeUserScramCredentials": m.DescribeUserScramCredentialsRequest(users=None),
        "DescribeTopicPartitions": partitions(),
        "DescribeTopicPartitions by a requester who may see nothing": partitions(),
        "DescribeConfigs of 64 KiB": _configs(),
        "RenewDelegationToken, the first": m.RenewDelegationTokenRequest(hmac=bytes(64)),
        "RenewDelegationToken with another secret": m.RenewDelegationTokenRequest(hmac=b"x" * 64),
        "DescribeDelegationToken": m.DescribeDelegationTokenRequest(owners=None),
        "DescribeDelegationToken by a requester who may see nothing": (
            m.DescribeDelegationTokenRequest(owners=None)
        ),
    }
    for name, request in asked.items():
        version = APIS[not_none(type(request).schema.key)].max_version
        frame = encode_request(request, version, 1, "bench")[4:]
        span = world.longest_s(1, frame, NOBODY if "nothing" in name else ANONYMOUS) * 1000
        report.add(f"{count:,} entries: {name}", SYSTEM, span, "ms")
        yield span


def _configs() -> Message:
    resource = m.DescribeConfigsRequest.DescribeConfigsResource
    names = (f"topic-{number:06}" for number in range(3_500))
    return m.DescribeConfigsRequest(
        resources=[
            resource(resource_type=2, resource_name=n, configuration_keys=None) for n in names
        ],
        include_synonyms=True,
    )


def _image(count: int) -> Iterator[Message]:
    """The records of a cluster with so many topics of ten partitions, ACLs, quotas, credentials
    and delegation tokens."""
    for number in range(count):
        name, own = f"topic-{number:06}", Uuid((number + 1).to_bytes(16, "big"))
        yield TopicRecord(name=name, topic_id=own)
        for index in range(PARTITIONS_PER_TOPIC):
            yield PartitionRecord(
                partition_id=index,
                topic_id=own,
                replicas=[1, 2],
                isr=[1],
                leader=1,
                adding_replicas=[2] if index == 0 else [],
                directories=[LOST, LOST],
            )
        yield AccessControlEntryRecord(
            id=own,
            resource_type=AclResource.TOPIC,
            resource_name=name,
            pattern_type=3,
            principal=f"User:user-{number:06}",
            host="*",
            operation=AclOperation.WRITE,
            permission_type=3,
        )
        yield ClientQuotaRecord(
            entity=[ClientQuotaRecord.EntityData(entity_type="user", entity_name=name)],
            key="producer_byte_rate",
            value=1.0,
        )
        yield UserScramCredentialRecord(
            name=name, mechanism=1, salt=b"s", stored_key=b"s", server_key=b"s", iterations=4096
        )
        yield DelegationTokenRecord(
            owner=ANONYMOUS,
            requester=ANONYMOUS,
            max_timestamp=2**63 - 1,
            expiration_timestamp=2**63 - 1,
            token_id=name,
        )


def _load(records: Iterator[Message]) -> WriteOperation[None, bool]:
    def decide(head: HeadView, request: None, context: Context) -> Steps[bool]:
        while part := list(islice(records, MAX_RECORDS)):
            yield Part(part)
        return Result((), False)

    return controller_task("load", decide)
