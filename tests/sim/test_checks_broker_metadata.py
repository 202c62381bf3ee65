"""The checks of brokers, topics and partitions: each rule broken once, on images made by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from immutables import Map

from narrow import as_any
from quorate.base.ids import Uuid
from quorate.controller.partition_index import PartitionIndex
from quorate.metadata.image import (
    NO_LEADER,
    Broker,
    Cluster,
    ConfigResource,
    Controller,
    Image,
    Partition,
    Topic,
    Topics,
)
from quorate.sim.checks.broker_metadata import BrokerMetadataCheck
from quorate.sim.world.controller import ControllerResponse
from quorate.sim.world.observer import ViolationError
from quorate.wire.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    UnregisterControllerRequest,
    UnregisterControllerResponse,
)

pytestmark = pytest.mark.interpreted  # it hands stand-ins to the check

TOPIC = Uuid(b"topic".ljust(16))
PLACE = Uuid(b"directory".ljust(16))
GOOD = Partition((1, 2), (PLACE, PLACE), (1, 2), (), (), 1, 0, 5, 7)
INCARNATION = Uuid(b"incarnation".ljust(16))


def brokers(*found: Broker) -> Cluster:
    return Cluster(brokers=Map({broker.id: broker for broker in found}))


BOTH = brokers(
    Broker(1, 10, INCARNATION, fenced=False),
    Broker(2, 11, INCARNATION, fenced=False),
)


def image(
    *partitions: Partition, cluster: Cluster = BOTH, name: str = "kept1", topic_id: Uuid = TOPIC
) -> Image:
    topic = Topic(topic_id, name, Map(enumerate(partitions)))
    topics = Topics(Map({topic_id: topic}), Map({name: topic_id})) if partitions else Topics()
    return Image(cluster=cluster, topics=topics)


def node(committed: Image, offset: int, head: Image | None = None) -> Any:
    """A controller whose index follows its head."""
    index = PartitionIndex()
    index.rebuild(committed.topics)
    found = SimpleNamespace(image=head or committed, index=index)
    return SimpleNamespace(node_id=1, image=committed, image_offset=offset, head=found)


def step(check: BrokerMetadataCheck, stepped: Any, *responses: ControllerResponse) -> None:
    process = SimpleNamespace(id=1, controller=SimpleNamespace(node=stepped))
    check.node_stepped(process, None, responses)  # type: ignore[arg-type]


def refused(*images: tuple[Image, int]) -> str:
    """The check that the last of these images fails, after the others passed."""
    check = BrokerMetadataCheck()
    for committed, offset in images[:-1]:
        step(check, node(committed, offset))
    with pytest.raises(ViolationError) as found:
        step(check, node(*images[-1]))
    return found.value.check


def test_images_of_several_nodes_in_any_order() -> None:
    check = BrokerMetadataCheck()
    later = GOOD._replace(isr=(1,), partition_epoch=8)
    for committed, offset in ((image(GOOD), 20), (image(later), 30), (image(GOOD), 20)):
        step(check, node(committed, offset))


@pytest.mark.parametrize(
    "broken",
    [
        {"replicas": (), "directories": (), "isr": (), "leader": NO_LEADER},
        {"replicas": (1, 1)},
        {"directories": (PLACE,)},
        {"isr": (1, 3)},
        {"isr": (1,), "elr": (1,)},
        {"isr": (), "leader": NO_LEADER},
        {"isr": (2,)},
        {"adding_replicas": (3,)},
        {"removing_replicas": (3,)},
    ],
)
def test_a_partition_with_contradicting_replica_sets(broken: dict[str, Any]) -> None:
    assert refused((image(GOOD._replace(**broken)), 1)) == "partition states"


@pytest.mark.parametrize(
    "cluster",
    [brokers(Broker(2, 11, INCARNATION, fenced=False)), brokers(Broker(1, 10, INCARNATION))],
    ids=["unknown", "fenced"],
)
def test_a_leader_that_is_not_in_service(cluster: Cluster) -> None:
    assert refused((image(GOOD, cluster=cluster), 1)) == "partition states"


@pytest.mark.parametrize(
    ("later", "check"),
    [
        ({"partition_epoch": 6}, "partition epochs grow"),
        ({"isr": (1,)}, "partition epochs grow"),
        ({"partition_epoch": 8, "leader_epoch": 4}, "leader epochs grow"),
        ({"partition_epoch": 8, "leader": 2}, "leader epochs grow"),
    ],
)
def test_epochs_of_a_partition(later: dict[str, Any], check: str) -> None:
    assert refused((image(GOOD), 1), (image(GOOD._replace(**later)), 2)) == check
    # A node at an earlier offset is checked by the later one.
    earlier = {
        key: value if isinstance(value, tuple) else value + 2 for key, value in later.items()
    }
    if check == "leader epochs grow" and "leader_epoch" in later:
        newer = GOOD._replace(partition_epoch=9)
        assert refused((image(newer), 2), (image(GOOD._replace(leader_epoch=6)), 1)) == check
    elif "isr" not in later and "leader" not in later:
        assert refused((image(GOOD), 2), (image(GOOD._replace(**as_any(earlier))), 1)) == check


@pytest.mark.parametrize(
    "later",
    [
        Broker(1, 9, INCARNATION, fenced=False),
        Broker(1, 10, Uuid(b"another".ljust(16)), fenced=False),
    ],
    ids=["falls", "of another process"],
)
def test_epochs_of_a_broker(later: Broker) -> None:
    first = image(cluster=brokers(Broker(1, 10, INCARNATION, fenced=False)))
    assert refused((first, 1), (image(cluster=brokers(later)), 2)) == "broker epochs grow"


def created(count: int = 1) -> ControllerResponse:
    topic = CreateTopicsResponse.CreatableTopicResult
    made = topic(name="kept1", topic_id=TOPIC, num_partitions=count)
    return ControllerResponse(-1, CreateTopicsRequest(), CreateTopicsResponse(topics=[made]), 11)


def grown(count: int) -> ControllerResponse:
    topic = CreatePartitionsRequest.CreatePartitionsTopic(name="kept1", count=count)
    result = CreatePartitionsResponse.CreatePartitionsTopicResult(name="kept1")
    request = CreatePartitionsRequest(topics=[topic])
    return ControllerResponse(-1, request, CreatePartitionsResponse(results=[result]), 12)


def deleted() -> ControllerResponse:
    result = DeleteTopicsResponse.DeletableTopicResult(name="kept1", topic_id=TOPIC)
    response = DeleteTopicsResponse(responses=[result])
    return ControllerResponse(-1, DeleteTopicsRequest(), response, 11)


@pytest.mark.parametrize(
    ("responses", "later"),
    [
        ([created()], image()),
        ([created()], image(GOOD, topic_id=Uuid(b"another".ljust(16)))),
        ([created(), grown(3)], image(GOOD, GOOD)),
        ([deleted()], image(GOOD)),
    ],
    ids=["gone", "another", "fewer partitions", "deleted"],
)
def test_acknowledged_topics(responses: list[ControllerResponse], later: Image) -> None:
    check = BrokerMetadataCheck()
    step(check, node(image(), 5), *responses)
    step(check, node(later, 9))  # before the records of the acknowledged requests
    with pytest.raises(ViolationError) as found:
        step(check, node(later, 11))
    assert found.value.check == "acknowledged topics"


def test_other_responses_change_nothing() -> None:
    check = BrokerMetadataCheck()
    quotas = ControllerResponse(-1, AlterClientQuotasRequest(), AlterClientQuotasResponse(), 3)
    failed = CreateTopicsResponse.CreatableTopicResult(name="kept1", topic_id=TOPIC, error_code=7)
    refusal = ControllerResponse(
        -1, CreateTopicsRequest(), CreateTopicsResponse(topics=[failed]), 3
    )
    step(check, node(image(), 5), quotas, refusal)
    step(check, node(image(), 9))


@pytest.mark.parametrize(
    "head", [image(GOOD._replace(leader=2)), image(GOOD, cluster=brokers())], ids=["led", "counted"]
)
def test_an_index_that_does_not_follow_its_head(head: Image) -> None:
    committed = image(GOOD)
    stepped = node(committed, 1, head)
    if not head.cluster.brokers:
        stepped.head.index.partitions = 2
    check = BrokerMetadataCheck()
    with pytest.raises(ViolationError) as found:
        for _ in range(16):
            step(check, stepped)
    assert found.value.check == "index equals image"


def test_a_broker_that_is_caught_up_has_its_registration() -> None:
    def heartbeat(offset: int) -> ControllerResponse:
        asked = BrokerHeartbeatRequest(broker_id=1, broker_epoch=9, current_metadata_offset=offset)
        return ControllerResponse(1, asked, BrokerHeartbeatResponse(is_caught_up=True), 20)

    check = BrokerMetadataCheck()
    registered = ControllerResponse(
        0, BrokerRegistrationRequest(broker_id=1), BrokerRegistrationResponse(broker_epoch=9), 13
    )
    check.check_registration(registered, 13, (1, 5))
    check.check_registration(heartbeat(12), 20, (1, 5))
    check.check_registration(heartbeat(11), 20, (2, 6))
    with pytest.raises(ViolationError) as found:
        check.check_registration(heartbeat(11), 20, (1, 5))
    assert found.value.check == "brokers are caught up"


def configured(name: str = "kept1", error: int = 0) -> ControllerResponse:
    request, answer = IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
    resource = request.AlterConfigsResource
    change = resource.AlterableConfig(name="min.insync.replicas", config_operation=0, value="2")
    asked = resource(resource_type=2, resource_name=name, configs=[change])
    result = answer.AlterConfigsResourceResponse(resource_name=name, error_code=error)
    return ControllerResponse(-1, request(resources=[asked]), answer(responses=[result]), 11)


def test_acknowledged_configs() -> None:
    check = BrokerMetadataCheck()
    step(check, node(image(), 5), configured(), configured("dropped1"), configured("kept2", 40))
    step(check, node(image(), 9))
    value = Map({"min.insync.replicas": "1"})
    later = replace(image(), configs=Map({ConfigResource(2, "kept1"): value}))
    step(check, node(later, 11))
    with pytest.raises(ViolationError) as found:
        step(check, node(image(), 12))
    assert found.value.check == "acknowledged configs"


@pytest.mark.parametrize("why", ["lost", "unregistered", "refused", "there"])
def test_acknowledged_registrations_of_controllers(why: str) -> None:
    error = 35 if why == "refused" else 0
    request, response = ControllerRegistrationRequest, ControllerRegistrationResponse
    responses = [
        ControllerResponse(-1, request(controller_id=3), response(error_code=error), 11),
    ]
    if why == "unregistered":
        gone = UnregisterControllerRequest(controller_id=3)
        responses.append(ControllerResponse(-2, gone, UnregisterControllerResponse(), 12))
    known = Map({3: Controller(3, INCARNATION)}) if why == "there" else Map()
    later = Image(cluster=Cluster(controllers=known))
    if why != "lost":
        step(BrokerMetadataCheck(), node(later, 12), *responses)
        return
    with pytest.raises(ViolationError) as found:
        step(BrokerMetadataCheck(), node(later, 12), *responses)
    assert found.value.check == "acknowledged registrations"
