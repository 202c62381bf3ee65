"""A small synchronous client for the tests, built on `kio`: a codec that is not ours."""

from __future__ import annotations

import io
import socket
import struct
import uuid
from dataclasses import dataclass
from typing import Any

from kio.index import load_response_schema
from kio.schema.alter_client_quotas.v1 import request as quotas
from kio.schema.controller_registration.v0 import request as registration
from kio.schema.describe_quorum.v2 import request as describe
from kio.schema.end_quorum_epoch.v1 import request as end_epoch
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId, TopicName
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import f64, i16, i32, u16

from quorate.base.ids import Uuid

METADATA_TOPIC = "__cluster_metadata"


class Connection:
    """One TCP connection, one request at a time. OSError when the peer is gone or silent."""

    def __init__(self, host: str, port: int, timeout: float = 2.0) -> None:
        self._socket = socket.create_connection((host, port), timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation = 0
        self._asked: Any = None

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, request: Any) -> Any:
        """Send a kio request of any flexible version and return kio's response."""
        self.send(request)
        return self.receive()

    def send(self, request: Any) -> None:
        self._correlation += 1
        self._asked = kind = type(request)
        header_class = kind.__header_schema__
        body = io.BytesIO()
        header = header_class(
            request_api_key=kind.__api_key__,
            request_api_version=kind.__version__,
            correlation_id=self._correlation,
            client_id="probe",
        )
        entity_writer(header_class)(body, header)
        entity_writer(kind)(body, request)
        self._socket.sendall(struct.pack(">i", body.tell()) + body.getvalue())

    def receive(self) -> Any:
        """The response to the last request."""
        kind = self._asked
        answer = self._read(struct.unpack(">i", self._read(4))[0])
        response_class = load_response_schema(kind.__api_key__, kind.__version__)
        _, position = entity_reader(response_class.__header_schema__)(answer, 0)
        return entity_reader(response_class)(answer, position)[0]

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                raise ConnectionError("the peer closed the connection")
            data += piece
        return data


@dataclass(frozen=True)
class Replica:
    """A row of DescribeQuorum: directory id and log end offset as the leader knows them."""

    directory_id: Uuid
    end_offset: int


@dataclass(frozen=True)
class View:
    """The quorum as its leader sees it."""

    leader: int
    epoch: int
    high_watermark: int
    voters: dict[int, Replica]
    observers: dict[int, Replica]

    @property
    def lag(self) -> int:
        """How far the slowest voter is behind the high watermark."""
        return max(self.high_watermark - v.end_offset for v in self.voters.values())


def describe_quorum(host: str, port: int, timeout: float = 2.0) -> View | None:
    """The view of the node at `port`, or None when it does not lead or does not answer."""
    partition = describe.PartitionData(partition_index=i32(0))
    topic = describe.TopicData(topic_name=TopicName(METADATA_TOPIC), partitions=(partition,))
    try:
        with Connection(host, port, timeout) as connection:
            answer = connection.ask(describe.DescribeQuorumRequest(topics=(topic,)))
    except OSError:
        return None
    if answer.error_code != ErrorCode.none:
        return None
    partition = answer.topics[0].partitions[0]
    if partition.error_code != ErrorCode.none:
        return None
    return View(
        partition.leader_id,
        partition.leader_epoch,
        partition.high_watermark,
        _replicas(partition.current_voters),
        _replicas(partition.observers),
    )


def _replicas(rows: Any) -> dict[int, Replica]:
    """By node id; of a node that was there under two directory ids, the one heard last."""
    return {
        row.replica_id: Replica(
            Uuid(row.replica_directory_id.bytes if row.replica_directory_id else bytes(16)),
            row.log_end_offset,
        )
        for row in sorted(rows, key=lambda row: row.last_fetch_timestamp)
    }


def put_quota(connection: Connection, user: str, value: float) -> ErrorCode:
    """One durable write through an active Kafka controller: a client quota of `user`."""
    entry = quotas.EntryData(
        entity=(quotas.EntityData(entity_type="user", entity_name=user),),
        ops=(quotas.OpData(key="producer_byte_rate", value=f64(float(value)), remove=False),),
    )
    request = quotas.AlterClientQuotasRequest(entries=(entry,), validate_only=False)
    return connection.ask(request).entries[0].error_code


def register_controller(connection: Connection, node_id: int, incarnation: uuid.UUID) -> ErrorCode:
    """One durable write through any active controller: a registration of a made-up node."""
    levels = {"kraft.version": (0, 1), "metadata.version": (7, 30)}
    request = registration.ControllerRegistrationRequest(
        controller_id=i32(node_id),
        incarnation_id=incarnation,
        zk_migration_ready=False,
        listeners=(
            registration.Listener(
                name="CONTROLLER", host="127.0.0.1", port=u16(9), security_protocol=i16(0)
            ),
        ),
        features=tuple(
            registration.Feature(
                name=n, min_supported_version=i16(low), max_supported_version=i16(high)
            )
            for n, (low, high) in levels.items()
        ),
    )
    return connection.ask(request).error_code


def end_epoch_for(
    connection: Connection, cluster_id: str, view: View, preferred: list[int]
) -> ErrorCode:
    """Notify a follower that the leader of `view` steps down in favour of `preferred`, in order."""
    candidates = tuple(
        end_epoch.ReplicaInfo(
            candidate_id=BrokerId(node),
            candidate_directory_id=uuid.UUID(bytes=bytes(view.voters[node].directory_id)),
        )
        for node in preferred
    )
    partition = end_epoch.PartitionData(
        partition_index=i32(0),
        leader_id=BrokerId(view.leader),
        leader_epoch=i32(view.epoch),
        preferred_candidates=candidates,
    )
    topic = end_epoch.TopicData(topic_name=TopicName(METADATA_TOPIC), partitions=(partition,))
    request = end_epoch.EndQuorumEpochRequest(
        cluster_id=cluster_id, topics=(topic,), leader_endpoints=()
    )
    return connection.ask(request).error_code
