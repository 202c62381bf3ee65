"""A controller with a little cluster, and the requests with which it is tested: each has one thing wrong."""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from interop.kafka import Quorum, describe_quorum
from interop.process import HOST
from quorate.base.errors import ErrorCode
from quorate.base.ids import Uuid
from quorate.formats.versions import supported_features
from quorate.wire import messages as m
from quorate.wire.header import decode_response, encode_request
from quorate.wire.registry import APIS

CONFIG = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "broker.session.timeout.ms": 600_000,
    "metadata.max.idle.interval.ms": 0,
}
FOREIGN = "MkU3OEVBNTcwNTJENDM2Qg"
NOBODY, STALE = 99, 1
DIRECTORY, STRAY = (Uuid(bytes([number]) * 16) for number in (7, 8))
FEATURES = dict(supported_features())


@dataclass
class Cluster:
    """A controller and what it has: brokers 1 and 2, of which 1 lives, and the topic `orders`."""

    quorum: Quorum
    epoch: int = 0
    topic_id: Uuid = DIRECTORY

    @property
    def port(self):
        return self.quorum.nodes[1].port

    @property
    def end(self):
        view = describe_quorum(HOST, self.port)
        assert view is not None
        return view.high_watermark

    def ask(self, message, version=None):
        key = message.schema.key
        version = APIS[key].max_version if version is None else version
        frame = self.answer(encode_request(message, version, 1, "test"))
        assert frame is not None
        return decode_response(frame, key, version)[1]

    def answer(self, frame):
        """The frame that answers; None: the node closed the connection."""
        with socket.create_connection((HOST, self.port), 30) as peer:
            try:
                peer.sendall(frame)
                data = b""
                while len(data) < 4 or len(data) < 4 + struct.unpack(">i", data[:4])[0]:
                    piece = peer.recv(1 << 20)
                    if not piece:
                        return None
                    data += piece
            except ConnectionError:
                return None
            return data[4:]


def registration(broker_id=1, **fields):
    cls = m.BrokerRegistrationRequest
    levels = FEATURES | fields.pop("levels", {})
    values = {
        "broker_id": broker_id,
        "incarnation_id": Uuid(bytes([broker_id]) * 16),
        "listeners": [cls.Listener(name="PLAINTEXT", host="h", port=9092)],
        "features": [
            cls.Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in levels.items()
        ],
        "log_dirs": [Uuid(bytes([broker_id]) * 15 + b"d")],
    }
    return cls(**(values | fields))


@contextmanager
def running(root) -> Iterator[Cluster]:
    """The controller as a process of its own. It writes nothing unasked."""
    with Quorum(root, {1: "quorate"}, config=CONFIG) as quorum:
        quorum.format()
        quorum.start()
        quorum.leader()
        made = Cluster(quorum)
        for broker_id in (1, 2):
            answer = made.ask(registration(broker_id, cluster_id=quorum.cluster_id))
            assert answer.error_code == 0, answer
            made.epoch = made.epoch or answer.broker_epoch
        beat = m.BrokerHeartbeatRequest(
            broker_id=1, broker_epoch=made.epoch, current_metadata_offset=1 << 40
        )
        assert not made.ask(beat).is_fenced
        [orders] = made.ask(topics(topic("orders"))).topics
        assert orders.error_code == 0, orders
        made.topic_id = orders.topic_id
        yield made


def topic(name="t", count=1, factor=1, assignments=(), **configs):
    cls = m.CreateTopicsRequest.CreatableTopic
    return cls(
        name=name,
        num_partitions=count,
        replication_factor=factor,
        assignments=[
            cls.CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
            for index, replicas in assignments
        ],
        configs=[
            cls.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def topics(*wanted):
    return m.CreateTopicsRequest(topics=list(wanted))


def assigned(*assignments):
    return topics(topic(count=-1, factor=-1, assignments=assignments))


def deleted(**fields):
    return m.DeleteTopicsRequest(
        topics=[m.DeleteTopicsRequest.DeleteTopicState(**fields)], timeout_ms=60_000
    )


def partitions(name, count, *assignments):
    cls = m.CreatePartitionsRequest.CreatePartitionsTopic
    made = [cls.CreatePartitionsAssignment(broker_ids=list(ids)) for ids in assignments]
    return m.CreatePartitionsRequest(
        topics=[cls(name=name, count=count, assignments=made or None)], timeout_ms=60_000
    )


def reassigned(name, index, replicas):
    cls = m.AlterPartitionReassignmentsRequest.ReassignableTopic
    part = cls.ReassignablePartition(partition_index=index, replicas=replicas)
    return m.AlterPartitionReassignmentsRequest(topics=[cls(name=name, partitions=[part])])


def elected(name, index, kind=0):
    cls = m.ElectLeadersRequest.TopicPartitions
    return m.ElectLeadersRequest(
        election_type=kind, topic_partitions=[cls(topic=name, partitions=[index])]
    )


def configs(kind, name, key="retention.ms", value="1", operation=0):
    cls = m.IncrementalAlterConfigsRequest.AlterConfigsResource
    config = cls.AlterableConfig(name=key, config_operation=operation, value=value)
    return m.IncrementalAlterConfigsRequest(
        resources=[cls(resource_type=kind, resource_name=name, configs=[config])]
    )


def levels(feature, level, kind=1):
    cls = m.UpdateFeaturesRequest.FeatureUpdateKey
    update = cls(feature=feature, max_version_level=level, upgrade_type=kind)
    return m.UpdateFeaturesRequest(feature_updates=[update])


def acl(**fields):
    values: dict[str, Any] = {
        "resource_type": 2,
        "resource_name": "orders",
        "resource_pattern_type": 3,
        "principal": "User:alice",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    creation = m.CreateAclsRequest.AclCreation(**(values | fields))
    return m.CreateAclsRequest(creations=[creation])


def quota(kind, name, key="producer_byte_rate", value=1.0):
    cls = m.AlterClientQuotasRequest.EntryData
    entry = cls(
        entity=[cls.EntityData(entity_type=kind, entity_name=name)],
        ops=[cls.OpData(key=key, value=value)],
    )
    return m.AlterClientQuotasRequest(entries=[entry])


def password(name="alice", mechanism=1, iterations=4096):
    cls = m.AlterUserScramCredentialsRequest.ScramCredentialUpsertion
    upsertion = cls(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"s", salted_password=b"p"
    )
    return m.AlterUserScramCredentialsRequest(upsertions=[upsertion])


def no_password(name="alice", mechanism=1):
    cls = m.AlterUserScramCredentialsRequest.ScramCredentialDeletion
    deletion = cls(name=name, mechanism=mechanism)
    return m.AlterUserScramCredentialsRequest(deletions=[deletion])


def isr(c, *members, epoch=None, topic_id=None, index=0, leader_epoch=0, partition_epoch=0):
    cls = m.AlterPartitionRequest.TopicData
    part = cls.PartitionData(
        partition_index=index,
        leader_epoch=leader_epoch,
        new_isr_with_epochs=[
            cls.PartitionData.BrokerState(broker_id=each) for each in members or (1,)
        ],
        partition_epoch=partition_epoch,
    )
    return m.AlterPartitionRequest(
        broker_id=1,
        broker_epoch=c.epoch if epoch is None else epoch,
        topics=[cls(topic_id=c.topic_id if topic_id is None else topic_id, partitions=[part])],
    )


def placed(c, *, epoch=None, topic_id=None, index=0):
    cls = m.AssignReplicasToDirsRequest.DirectoryData
    part = cls.TopicData.PartitionData(partition_index=index)
    place = cls.TopicData(topic_id=topic_id or c.topic_id, partitions=[part])
    return m.AssignReplicasToDirsRequest(
        broker_id=1,
        broker_epoch=c.epoch if epoch is None else epoch,
        directories=[cls(id=STRAY, topics=[place])],
    )


def beat(broker_id, epoch):
    return m.BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=epoch)


def newcomer(c, **fields):
    return registration(9, **({"cluster_id": c.quorum.cluster_id} | fields))


def added(c, voter_id, cluster_id=None, directory=STRAY, listeners=True):
    cls = m.AddRaftVoterRequest
    return cls(
        cluster_id=cluster_id or c.quorum.cluster_id,
        timeout_ms=500,
        voter_id=voter_id,
        voter_directory_id=directory,
        listeners=[cls.Listener(name="CONTROLLER", host=HOST, port=1)] if listeners else [],
    )


def removed(c, voter_id, cluster_id=None, directory=STRAY):
    return m.RemoveRaftVoterRequest(
        cluster_id=cluster_id or c.quorum.cluster_id,
        voter_id=voter_id,
        voter_directory_id=directory,
    )


# -- responses ---------------------------------------------------------------------------------------
def said(item):
    """Every (code, message) of an error in a response."""
    code = getattr(item, "error_code", 0)
    if code:
        yield ErrorCode(code), getattr(item, "error_message", None) or ""
    for field in item.schema.fields:
        if field.type_name == "array" and field.holds_structs:
            for each in getattr(item, field.name) or ():
                yield from said(each)
