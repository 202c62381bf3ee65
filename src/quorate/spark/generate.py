"""Generates metadata logs of any size, as a quorum writes them: `python -m quorate.spark.generate`.

Each cluster has topics, configs and quotas in the proportions of a busy cluster. Its brokers crash
and return, and the leaders and in-sync replicas of its partitions change. A seed determines everything:
the same arguments give the same bytes, and every log can be replayed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import BinaryIO, Final

import click

from quorate.base.ids import Uuid, uuid_to_text
from quorate.base.plural import pluralize
from quorate.formats.batch import encode_batch, encode_keyed_batch
from quorate.formats.control import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    VotersRecord,
    encode_message,
)
from quorate.formats.files import (
    META_PROPERTIES,
    PARTITION_DIRECTORY,
    PARTITION_METADATA,
    encode_partition_metadata,
    segment_name,
)
from quorate.formats.meta_properties import MetaProperties, encode_meta_properties
from quorate.formats.records import (
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    encode_record,
)
from quorate.wire.schema import Message

START_MS: Final = 1_767_225_600_000
"""2026-01-01, UTC: the time of the first record of each cluster."""
METADATA_VERSION: Final = 30
"""4.3-IV0."""
_CONTROLLERS: Final = (1, 2, 3)
_FIRST_BROKER: Final = 101
_REPLICAS: Final = 3
_NO_OP: Final = encode_record(NoOpRecord(), 0)
_CONFIGS: Final = ("retention.ms", "segment.bytes", "min.insync.replicas", "cleanup.policy")
_ACTIVITIES: Final = {"flap": 58, "quiet": 20, "crash": 5, "config": 6, "quota": 3, "ids": 4} | {
    "topic": 3,
    "elect": 1,
}
"""The weight of each activity."""


@dataclass(slots=True)
class GeneratedPartition:
    """A partition, and the encoded records that change it, cached."""

    topic_id: Uuid
    number: int
    replicas: tuple[int, ...]
    missing: int | None = None
    """The broker that is not in the in-sync replicas."""
    values: dict[int | None, bytes] = field(default_factory=dict)

    def change(self, missing: int | None) -> bytes:
        """The record that removes this broker from the in-sync replicas; None: all are in sync."""
        self.missing = missing
        value = self.values.get(missing)
        if value is None:
            isr = [broker for broker in self.replicas if broker != missing]
            record = PartitionChangeRecord(
                partition_id=self.number, topic_id=self.topic_id, isr=isr, leader=isr[0]
            )
            self.values[missing] = value = encode_record(record, 2)
        return value


class GeneratedCluster:
    """Draws the activities of a cluster; `batches` gives the bytes of its log."""

    def __init__(self, seed: int, number: int, brokers: int, topics: int) -> None:
        self._rng = Random(f"{seed}/{number}")
        self._brokers = [_FIRST_BROKER + index for index in range(brokers)]
        self._topics = topics
        self._partitions: list[GeneratedPartition] = []
        self._topics_created = 0
        self._offset = 0
        self._now_ms = START_MS
        self._epoch = 1
        self._broker_epochs: dict[int, int] = {}
        self._fenced: set[int] = set()
        self.cluster_id = uuid_to_text(self._uuid())

    def batches(self, records: int) -> Iterator[tuple[bytes, int]]:
        """The batches of a log with this many records (at least 3), with their base offsets."""
        yield self._election()
        for values in self._events():
            left = records - self._offset
            if left <= 0:
                return
            yield self._batch(values[:left]) if values else self._election()

    def _events(self) -> Iterator[list[bytes]]:
        """The records of each activity, without end; an empty list stands for an election."""
        yield from self._bootstrap()
        names, weights = list(_ACTIVITIES), list(_ACTIVITIES.values())
        while True:
            for activity in self._rng.choices(names, weights, k=64):
                self._now_ms += self._rng.randrange(1, 1000)
                yield [] if activity == "elect" else self._values(activity)

    def _batch(self, values: Sequence[bytes]) -> tuple[bytes, int]:
        base = self._offset
        data = encode_batch(base, self._epoch, self._now_ms, values)
        self._offset += len(values)
        return data, base

    def _election(self) -> tuple[bytes, int]:
        if self._offset:
            self._epoch += self._rng.randrange(1, 3)
        leader = self._rng.choice(_CONTROLLERS)
        voter = LeaderChangeMessage.Voter
        change = LeaderChangeMessage(
            leader_id=leader,
            voters=[voter(voter_id=id) for id in _CONTROLLERS],
            granting_voters=[voter(voter_id=id) for id in sorted({leader, 1, 2})],
        )
        records = [encode_message(change)]
        if not self._offset:
            records.append(encode_message(KRaftVersionRecord(kraft_version=1)))
            voters = VotersRecord(voters=[self._voter(id) for id in _CONTROLLERS])
            records.append(encode_message(voters))
        base = self._offset
        data = encode_keyed_batch(base, self._epoch, self._now_ms, records)
        self._offset += len(records)
        return data, base

    def _voter(self, id: int) -> VotersRecord.Voter:
        voter = VotersRecord.Voter
        return voter(
            voter_id=id,
            voter_directory_id=self._uuid(),
            endpoints=[voter.Endpoint(name="CONTROLLER", host=f"controller-{id}", port=9093)],
            kraft_version_feature=voter.KRaftVersionFeature(max_supported_version=1),
        )

    def _bootstrap(self) -> Iterator[list[bytes]]:
        yield [
            _value(FeatureLevelRecord(name="metadata.version", feature_level=METADATA_VERSION)),
            _value(FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)),
        ]
        for broker in self._brokers:
            yield [self._registration(broker)]
            yield [self._fencing(broker, fenced=False)]
        for _ in range(self._topics):
            yield self._topic()

    def _registration(self, broker: int) -> bytes:
        self._broker_epochs[broker] = self._offset
        endpoint = RegisterBrokerRecord.BrokerEndpoint
        feature = RegisterBrokerRecord.BrokerFeature
        record = RegisterBrokerRecord(
            broker_id=broker,
            incarnation_id=self._uuid(),
            broker_epoch=self._offset,
            end_points=[endpoint(name="PLAINTEXT", host=f"broker-{broker}", port=9092)],
            features=[feature(name="metadata.version", max_supported_version=METADATA_VERSION)],
            rack=f"rack-{broker % 3}",
            log_dirs=[self._uuid()],
        )
        return encode_record(record, 3)

    def _values(self, activity: str) -> list[bytes]:
        """The records of one activity."""
        rng = self._rng
        match activity:
            case "flap":
                count = min(1 + int(rng.expovariate(0.25)), len(self._partitions))
                return [self._flap(rng.choice(self._partitions)) for _ in range(count)]
            case "crash":
                return self._crash(rng.choice(self._brokers))
            case "config":
                return [self._config()]
            case "quota":
                return [self._quota()]
            case "ids":
                broker = rng.choice(self._brokers)
                return [
                    _value(
                        ProducerIdsRecord(broker_id=broker, next_producer_id=self._offset * 1000)
                    )
                ]
            case "topic":
                return (
                    self._topic()
                    if len(self._partitions) < 20 * self._topics
                    else self._delete_topic()
                )
        return [_NO_OP]

    def _flap(self, partition: GeneratedPartition) -> bytes:
        out = self._rng.choice(partition.replicas) if partition.missing is None else None
        return partition.change(out)

    def _crash(self, broker: int) -> list[bytes]:
        """Fence a broker and remove it from all in-sync replicas; or bring a fenced one back."""
        back = broker in self._fenced
        self._fenced ^= {broker}
        changes = [
            partition.change(None if back else broker)
            for partition in self._partitions[:2000]
            if broker in partition.replicas and partition.missing == (broker if back else None)
        ]
        return [self._fencing(broker, fenced=not back), *changes]

    def _fencing(self, broker: int, *, fenced: bool) -> bytes:
        change = BrokerRegistrationChangeRecord(
            broker_id=broker,
            broker_epoch=self._broker_epochs[broker],
            fenced=1 if fenced else -1,
        )
        return _value(change)

    def _topic(self) -> list[bytes]:
        topic_id = self._uuid()
        self._topics_created += 1
        count = self._rng.choice((1, 3, 6, 12))
        values = [_value(TopicRecord(name=f"topic-{self._topics_created}", topic_id=topic_id))]
        for number in range(count):
            replicas = tuple(self._rng.sample(self._brokers, min(_REPLICAS, len(self._brokers))))
            self._partitions.append(GeneratedPartition(topic_id, number, replicas))
            record = PartitionRecord(
                partition_id=number,
                topic_id=topic_id,
                replicas=list(replicas),
                isr=list(replicas),
                leader=replicas[0],
                leader_epoch=0,
                partition_epoch=0,
                directories=[self._uuid() for _ in replicas],
            )
            values.append(encode_record(record, 2))
        return values

    def _delete_topic(self) -> list[bytes]:
        """Delete a topic."""
        topic_id = self._rng.choice(self._partitions).topic_id
        self._partitions = [one for one in self._partitions if one.topic_id != topic_id]
        return [_value(RemoveTopicRecord(topic_id=topic_id))]

    def _config(self) -> bytes:
        name = self._rng.choice(_CONFIGS)
        value = None if self._rng.random() < 0.2 else str(self._rng.randrange(1, 10**7))
        resource = f"topic-{self._rng.randrange(1, self._topics_created + 1)}"
        record = ConfigRecord(resource_type=2, resource_name=resource, name=name, value=value)
        return _value(record)

    def _quota(self) -> bytes:
        entity = ClientQuotaRecord.EntityData(
            entity_type="user", entity_name=f"user-{self._rng.randrange(200)}"
        )
        rate = float(self._rng.randrange(1, 1000) * 1024)
        return _value(ClientQuotaRecord(entity=[entity], key="producer_byte_rate", value=rate))

    def _uuid(self) -> Uuid:
        return Uuid(self._rng.randbytes(16))


def _value(record: Message) -> bytes:
    return encode_record(record, 0)


@dataclass(frozen=True, slots=True)
class GeneratedFiles:
    """The size of what was generated; `records` and `size` (bytes) count each replica."""

    files: int
    records: int
    size: int


@dataclass(frozen=True, slots=True)
class FleetSpec:
    """The clusters to generate."""

    clusters: int = 1
    records: int = 100_000
    """The records of each cluster."""
    seed: int = 0
    replicas: int = 1
    """The controllers of each cluster whose directories are written, with the same bytes."""
    brokers: int = 12
    topics: int = 200
    """The topics that each cluster begins with."""
    segment_bytes: int = 256 * 1024 * 1024


def generate(home: Path, fleet: FleetSpec, jobs: int = 1) -> GeneratedFiles:
    """Write `home/cluster-<n>/node-<id>` for each cluster and replica, with `jobs` processes."""
    with ProcessPoolExecutor(jobs) as pool:
        run = pool.map if jobs > 1 else map
        every = list(
            run(
                write_cluster,
                [home] * fleet.clusters,
                [fleet] * fleet.clusters,
                range(fleet.clusters),
            )
        )
    return GeneratedFiles(
        sum(one.files for one in every),
        sum(one.records for one in every),
        sum(one.size for one in every),
    )


def write_cluster(home: Path, fleet: FleetSpec, number: int) -> GeneratedFiles:
    """Write the directories of one cluster; `number` counts from 0."""
    cluster = GeneratedCluster(fleet.seed, number, fleet.brokers, fleet.topics)
    replicas = []
    for node in range(1, fleet.replicas + 1):
        directory = home / f"cluster-{number}" / f"node-{node}"
        partition = directory / PARTITION_DIRECTORY
        partition.mkdir(parents=True, exist_ok=True)
        meta = MetaProperties(1, cluster.cluster_id, node)
        (directory / META_PROPERTIES).write_bytes(encode_meta_properties(meta, START_MS))
        (partition / PARTITION_METADATA).write_bytes(encode_partition_metadata())
        replicas.append(partition)
    files = size = written = 0
    with ExitStack() as stack:
        outs: list[BinaryIO] = []
        for data, base in cluster.batches(fleet.records):
            if not outs or written + len(data) > fleet.segment_bytes:
                stack.close()
                name = segment_name(base)
                outs = [stack.enter_context((one / name).open("wb")) for one in replicas]
                files, written = files + len(outs), 0
            for out in outs:
                out.write(data)
            written += len(data)
            size += len(data) * len(outs)
    return GeneratedFiles(files, fleet.records * fleet.replicas, size)


@click.command()
@click.argument("home", type=click.Path(file_okay=False, path_type=Path))
@click.option("--clusters", default=1, show_default=True, type=click.IntRange(1))
@click.option(
    "--records",
    default=100_000,
    show_default=True,
    type=click.IntRange(3),
    help="Records of each cluster.",
)
@click.option("--seed", default=0, show_default=True)
@click.option(
    "--replicas",
    default=1,
    show_default=True,
    type=click.IntRange(1, 3),
    help="Controllers whose directories are written.",
)
@click.option("--brokers", default=12, show_default=True, type=click.IntRange(1))
@click.option(
    "--topics",
    default=200,
    show_default=True,
    type=click.IntRange(1),
    help="Topics that a cluster begins with.",
)
@click.option(
    "--segment-bytes", default=256 * 1024 * 1024, show_default=True, type=click.IntRange(1)
)
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1), help="Processes.")
def main(home: Path, jobs: int, **words: int) -> None:
    """Write metadata logs below HOME; the same arguments give the same bytes."""
    written = generate(home, FleetSpec(**words), jobs)
    click.echo(
        f"{pluralize(written.files, 'file')}, {pluralize(written.records, 'record')}, {written.size} bytes"
    )


if __name__ == "__main__":
    main()
