"""Requests about brokers: registration, heartbeats, directories, producer ids, controllers."""

from __future__ import annotations

from differential.canonical import made_up
from differential.draw import BROKERS, RACKS, Draft, Draw
from differential.side import Side
from quorate.base.ids import Uuid
from quorate.wire.messages import (
    AllocateProducerIdsRequest,
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
    DescribeClusterRequest,
    UnregisterBrokerRequest,
)
from quorate.wire.schema import Message

FAR_OFFSET = 1 << 40


def register(draw: Draw, broker: int | None = None) -> Draft:
    """A registration, mostly valid; a given broker registers without a mistake."""
    valid = broker is not None
    broker = draw.one(BROKERS) if broker is None else broker
    known = draw.registration(broker)
    if broker in draw.side.eligible_of_removed:
        return heartbeat(draw)
    cls = BrokerRegistrationRequest
    incarnation = known.incarnation_id if known and draw.chance(0.4) else _new_incarnation(draw)
    listeners = [cls.Listener(name="PLAINTEXT", host=f"host{broker}", port=9092)]
    if draw.chance(0.2):
        other = cls.Listener(name="SSL", host=f"host{broker}", port=9093, security_protocol=1)
        listeners.append(other)
    features = dict(draw.features)
    directories = draw.directories(broker)[: draw.one((1, 1, 2, 3))]
    migrating, cluster_wrong = False, False
    if not valid:
        if draw.chance(0.04):
            listeners = draw.often_twice(listeners) if draw.chance(0.5) else []
        _change_features(draw, features)
        if draw.chance(0.06):
            directories = draw.one(
                (
                    [],
                    [*directories, directories[0]],
                    [Uuid(bytes(16))],
                    [Uuid(bytes(15) + b"\1")],
                    draw.directories(broker + 1),
                )
            )
        cluster_wrong, migrating = draw.chance(0.03), draw.chance(0.02)
    rack = RACKS[broker % 3] if draw.chance(0.8) else draw.one(RACKS)
    names = draw.rng.sample(sorted(features), len(features))
    previous = draw.one((-1, 0)) if draw.chance(0.5) else None
    rows = [
        cls.Feature(
            name=n, min_supported_version=features[n][0], max_supported_version=features[n][1]
        )
        for n in names
    ]

    def build(side: Side) -> Message:
        before = side.epoch_of(broker) if previous is None else previous
        return cls(
            broker_id=broker,
            cluster_id="another" if cluster_wrong else side.cluster_id,
            incarnation_id=incarnation,
            listeners=listeners,
            features=rows,
            rack=rack,
            is_migrating_zk_broker=migrating,
            log_dirs=directories,
            previous_broker_epoch=before,
        )

    return Draft(build)


def _new_incarnation(draw: Draw) -> Uuid:
    draw.incarnations += 1
    return made_up(100_000 + draw.incarnations)


def _change_features(draw: Draw, features: dict[str, tuple[int, int]]) -> None:
    if draw.chance(0.12):
        name = draw.one(sorted(features))
        low, high = features[name]
        kind = draw.rng.randrange(4)
        if kind == 0:
            del features[name]
        elif kind == 1:
            features[name] = (low, max(low, high - draw.rng.randint(1, 3)))
        elif kind == 2:
            features[name] = (min(high, low + draw.rng.randint(1, 20)), high)
        else:
            features["unknown.feature"] = (0, 5)


def heartbeat(draw: Draw) -> Draft:
    """Mostly one that keeps or brings the broker into service."""
    broker = draw.broker()
    offset = draw.one((-1, 0, None, FAR_OFFSET, FAR_OFFSET, FAR_OFFSET, FAR_OFFSET))
    fence, shut_down = draw.chance(0.12), draw.chance(0.06)
    known = draw.registration(broker)
    directories = list(known.directories) if known else draw.directories(broker)
    known_well = [one for one in directories if one not in draw.side.directories_of_removed]
    offline = draw.some(known_well, 1) if draw.chance(0.08) else []
    if draw.chance(0.01):
        offline.append(made_up(2))
    cordoned: list[Uuid] | None = None
    if draw.chance(0.15):
        cordoned = draw.some(directories, 2)
        if draw.chance(0.05):
            cordoned = draw.one(([made_up(3)], cordoned * 2))
    epoch = draw.epoch(broker)

    def build(side: Side) -> Message:
        return BrokerHeartbeatRequest(
            broker_id=broker,
            broker_epoch=epoch(side),
            current_metadata_offset=side.epoch_of(broker) if offset is None else offset,
            want_fence=fence,
            want_shut_down=shut_down,
            offline_log_dirs=offline,
            cordoned_log_dirs=cordoned,
        )

    return Draft(build)


def unfence(draw: Draw) -> Draft:
    """A broker comes into service: a fenced one if there is one."""
    fenced = [i for i in draw.registered if i not in draw.active]
    missing = [i for i in BROKERS if i not in draw.registered]
    if missing and (not fenced or draw.chance(0.5)):
        return register(draw, draw.one(missing))
    broker = draw.one(fenced or draw.registered)

    def build(side: Side) -> Message:
        return BrokerHeartbeatRequest(
            broker_id=broker,
            broker_epoch=side.epoch_of(broker),
            current_metadata_offset=FAR_OFFSET,
        )

    return Draft(build)


def unregister(draw: Draw) -> Draft:
    broker = draw.broker()
    if broker in draw.side.eligible_of_removed:
        return heartbeat(draw)
    return Draft(lambda side: UnregisterBrokerRequest(broker_id=broker))


def producer_ids(draw: Draw) -> Draft:
    broker = draw.broker()
    epoch = draw.epoch(broker)
    return Draft(
        lambda side: AllocateProducerIdsRequest(broker_id=broker, broker_epoch=epoch(side))
    )


def assign_directories(draw: Draw) -> Draft:
    """Mostly replicas of the broker into its directories."""
    broker = draw.broker()
    epoch = draw.epoch(broker)
    known = draw.registration(broker)
    directories = list(known.directories) if known else []
    special = [made_up(4), Uuid(bytes(16)), Uuid(bytes(15) + b"\1"), Uuid(bytes(15) + b"\2")]
    chosen = draw.rng.sample(directories, min(len(directories), draw.rng.randint(1, 2)))
    if not chosen or draw.chance(0.05):
        chosen.append(draw.one(special))
    rows = []
    for directory in chosen:
        topics = []
        for name, partitions in draw.partitions(3).items():
            wrong = draw.chance(0.03)
            topics.append((name, wrong, [index for index, _ in partitions]))
        rows.append((directory, topics))

    def build(side: Side) -> Message:
        cls = AssignReplicasToDirsRequest
        return cls(
            broker_id=broker,
            broker_epoch=epoch(side),
            directories=[
                cls.DirectoryData(
                    id=directory,
                    topics=[
                        cls.DirectoryData.TopicData(
                            topic_id=made_up(5) if wrong else side.topic_id(name),
                            partitions=[
                                cls.DirectoryData.TopicData.PartitionData(partition_index=i)
                                for i in indexes
                            ],
                        )
                        for name, wrong, indexes in topics
                    ],
                )
                for directory, topics in rows
            ],
        )

    return Draft(build)


def register_controller(draw: Draw) -> Draft:
    """A made-up controller of 4.3, whose supported levels sometimes end early."""
    cls = ControllerRegistrationRequest
    number = draw.one((2, 3))
    features = dict(draw.features)
    _change_features(draw, features)
    message = cls(
        controller_id=number,
        incarnation_id=_new_incarnation(draw),
        zk_migration_ready=draw.chance(0.02),
        listeners=[cls.Listener(name="CONTROLLER", host=f"controller{number}", port=9)],
        features=[
            cls.Feature(name=n, min_supported_version=low, max_supported_version=high)
            for n, (low, high) in features.items()
        ],
    )
    return Draft(lambda side: message)


def describe_cluster(draw: Draw) -> Draft:
    message = DescribeClusterRequest(
        endpoint_type=draw.usually(0.5, 1, (2, 3)), include_fenced_brokers=draw.chance(0.3)
    )
    return Draft(lambda side: message, is_read=True)
