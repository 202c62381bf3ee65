"""What a request names is authorized before it takes the write queue: who it holds up, and how long."""

import pytest

from controller.cluster import Cluster
from narrow import as_any
from node.test_write_queue import Queue, writes
from node.world import World
from quorate.base.errors import ErrorCode
from quorate.controller.activation import Bootstrap
from quorate.controller.configs import IncrementalAlterConfigs
from quorate.controller.result import PAUSE_EVERY, ApiError, Result
from quorate.formats.records import FeatureLevelRecord, encode_record
from quorate.node.apis import ROWS
from quorate.node.queued_write import SHUTTING_DOWN, wrong_controller
from quorate.security.acl import AclResource
from quorate.security.authorizer import (
    COMPARED_IN_ONE_STEP,
    WILDCARD,
    AuthorizerConfig,
    Requester,
    Verdicts,
)
from quorate.wire.messages import (
    AlterClientQuotasRequest,
    AlterConfigsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    IncrementalAlterConfigsRequest,
)
from security.test_authorizer import entry

EVE, ADMIN, APP = "User:eve", "User:admin", "User:app"
DENIED = "denied"


def denied_after(steps):
    """An authorization of several steps of which nothing is left."""

    def authorize():
        for _ in range(steps):
            yield None
        return Result((), DENIED)

    return authorize


def left_after(steps, left="left"):
    def authorize():
        for _ in range(steps):
            yield None
        return left

    return authorize


def never(head):
    raise AssertionError("nothing is left to decide")


def answered(queue, tokens, most=100):
    """The names of the tokens in the order of their responses, each behind the step that gave it."""
    found = []
    for step in range(1, most):
        queue.queue.resume(1)
        for part in queue.inputs:
            queue.commit(part)
        found += [(step, tokens[one]) for one, *_ in queue.responses if one in tokens]
        if not queue.queue.unanswered:
            return found
    raise AssertionError(found)


def test_requests_of_which_nothing_is_left_never_hold_the_write_queue():
    queue = Queue()
    denied = {queue.add(never, who=EVE, authorize=denied_after(5)) for _ in range(30)}
    steps = 0
    while queue.queue.unanswered:
        assert queue.queue.wake_at_ms(7) == 7
        queue.queue.resume(1)
        steps += 1
        assert not queue.queue.is_deciding
        queue.add(writes(1), who=ADMIN)
        [part] = queue.inputs  # decided in the step in which it came
        queue.commit(part)
        denied -= {token for token, message, *_ in queue.responses if message == DENIED}
    assert not denied
    assert steps == 30 * 6 - 29, "one pause each step"


def test_requesters_take_turns_and_each_has_one_authorization_under_way():
    queue = Queue()
    tokens = {queue.add(never, who=EVE, authorize=denied_after(4)): f"eve{n}" for n in range(3)}
    tokens[queue.add(never, who=APP, authorize=denied_after(2))] = "app"
    found = answered(queue, tokens)
    assert [name for _, name in found] == ["app", "eve0", "eve1", "eve2"]
    assert found[0] == (6, "app"), "each second step is its own"


def test_what_a_requester_sends_later_waits_behind_its_authorization():
    queue = Queue()
    tokens = {
        queue.add(writes(1), who=EVE, authorize=left_after(3)): "long",
        queue.add(writes(1), who=EVE): "short",
        queue.add(writes(1), who=ADMIN): "admin",
    }
    [part] = queue.inputs
    queue.commit(part)
    assert [tokens[token] for token, *_ in queue.responses] == ["admin"]
    assert [name for _, name in answered(queue, tokens)] == ["long", "short"]


def test_the_decision_takes_what_the_authorization_leaves():
    queue = Queue()
    token = queue.add(lambda head: Result((), "decided"), who=EVE, authorize=left_after(1))
    assert queue.queue.unanswered == 1
    queue.queue.resume(1)
    assert queue.responses == []
    queue.queue.resume(1)
    assert queue.responses == [(token, "decided", ErrorCode.NONE, -1)]


def refused():
    yield None
    raise ApiError(ErrorCode.POLICY_VIOLATION, "too much")


def broken():
    yield None
    raise ZeroDivisionError("a defect")


@pytest.mark.parametrize(
    ("authorize", "error", "message", "faults"),
    [
        (refused, ErrorCode.POLICY_VIOLATION, "too much", 0),
        (broken, ErrorCode.UNKNOWN_SERVER_ERROR, None, 1),
    ],
)
def test_an_authorization_that_fails_refuses_its_request_alone(authorize, error, message, faults):
    queue = Queue()
    token = queue.add(never, who=EVE, authorize=authorize)
    queue.queue.resume(1)
    queue.queue.resume(1)
    assert queue.responses == [(token, message, error, -1)]
    assert queue.queue.is_active and queue.queue.out.faults == faults


def test_writes_that_are_authorized_time_out_and_fail_as_those_that_wait():
    queue = Queue()
    late = queue.add(never, who=EVE, timeout_ms=5, authorize=denied_after(9))
    kept = queue.add(never, who=EVE, authorize=denied_after(9))
    queue.queue.resume(4)
    assert queue.responses == []
    queue.queue.resume(5)
    assert queue.responses == [(late, None, ErrorCode.REQUEST_TIMED_OUT, -1)]
    queue.queue.leadership_changed(None)
    text = wrong_controller(1)
    assert queue.responses == [(kept, text, ErrorCode.NOT_CONTROLLER, -1)]
    queue = Queue()
    kept = queue.add(never, who=EVE, authorize=denied_after(9))
    queue.queue.shut_down()
    assert queue.responses == [(kept, SHUTTING_DOWN, ErrorCode.REQUEST_TIMED_OUT, -1)]


# -- the APIs of the table -----------------------------------------------------------------------
LEVEL = encode_record(FeatureLevelRecord(name="metadata.version", feature_level=30), 0)
MANY = 10 * PAUSE_EVERY
_Topic = CreateTopicsRequest.CreatableTopic
_Partitions = CreatePartitionsRequest.CreatePartitionsTopic
_Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
_Replaced = AlterConfigsRequest.AlterConfigsResource
_Named = DeleteTopicsRequest.DeleteTopicState
NAMES = [f"t{number}" for number in range(MANY)]
DENIED_TO_EVE = {
    19: CreateTopicsRequest(topics=[_Topic(name=name) for name in NAMES], timeout_ms=60_000),
    20: DeleteTopicsRequest(topics=[_Named(name=name) for name in NAMES], timeout_ms=60_000),
    33: AlterConfigsRequest(
        resources=[_Replaced(resource_type=2, resource_name=name) for name in NAMES]
    ),
    37: CreatePartitionsRequest(
        topics=[_Partitions(name=name, count=2, assignments=None) for name in NAMES],
        timeout_ms=60_000,
    ),
    44: IncrementalAlterConfigsRequest(
        resources=[_Resource(resource_type=2, resource_name=name) for name in NAMES]
    ),
}


def test_each_api_that_names_many_resources_is_authorized_before_it_is_decided():
    asks_by_item = {
        row.key
        for row in ROWS
        if row.operation is not None
        and row.acl is not None
        and row.acl.resource not in (AclResource.CLUSTER, AclResource.USER)
    }
    assert asks_by_item == set(DENIED_TO_EVE)
    authorizing = {row.key for row in ROWS if row.operation and row.operation.authorize}
    assert authorizing == asks_by_item


@pytest.fixture(scope="module")
def world():
    config = AuthorizerConfig(super_users=frozenset({ADMIN, "User:ANONYMOUS"}))
    world = World((1,), authorizer=config, bootstrap=Bootstrap((LEVEL,)))
    world.run_until(lambda: world.active and world.active.image.features.metadata_version)
    return world


def quota(number):
    entry = AlterClientQuotasRequest.EntryData
    entity = entry.EntityData(entity_type="user", entity_name=f"bob{number}")
    op = entry.OpData(key="producer_byte_rate", value=1.0)
    return AlterClientQuotasRequest(entries=[entry(entity=[entity], ops=[op])])


@pytest.mark.parametrize("key", DENIED_TO_EVE)
def test_commits_go_on_beside_requests_that_are_denied(world, key):
    """A commit takes as many steps of the node as without them."""

    def commit(number):
        began_ms = world.now_ms
        assert world.ask(1, quota(number), principal=ADMIN).entries[0].error_code == 0
        return world.now_ms - began_ms

    commit(0)  # the first one waits for what the new leader writes unasked
    alone_ms = commit(key)
    flood = [world.call(1, DENIED_TO_EVE[key], principal=EVE) for _ in range(4)]
    for number in range(1, 6):
        assert commit(1000 * number + key) == alone_ms
    assert not all(flood)
    world.run_until(lambda: all(flood))
    for [response] in flood:
        [rows] = [found for found in vars_of(response) if isinstance(found, list)]
        assert {row.error_code for row in rows} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        assert [row.name if hasattr(row, "name") else row.resource_name for row in rows] == NAMES


def vars_of(message):
    return [getattr(message, field.name) for field in type(message).schema.fields]


@pytest.mark.parametrize("key", DENIED_TO_EVE)
def test_an_authorization_pauses_where_many_entries_are_compared(key):
    """Before PAUSE_EVERY names, if each of them has many: a step took seconds."""
    cluster = Cluster(authorizer=AuthorizerConfig())
    cluster.write([entry(name=WILDCARD)])
    cluster.requester = Requester(EVE, "h")
    verdicts = cluster.verdicts = Verdicts()
    request = DENIED_TO_EVE[key]
    for field in type(request).schema.fields:
        rows = getattr(request, field.name)
        if isinstance(rows, list):
            request = request.replace(**{field.name: rows[:3]})
    asked = IncrementalAlterConfigs(as_any(request)) if key == 44 else request
    [operation] = [as_any(row.operation) for row in ROWS if row.key == key]

    def pauses(compared):
        verdicts.compared = compared
        steps = operation.authorize(asked, cluster.context())
        found = 0
        while True:
            try:
                next(steps)
            except StopIteration:
                return found
            found += 1

    assert pauses(0) == 0
    assert pauses(COMPARED_IN_ONE_STEP - 1) == 1
