"""Requests of any API, drawn from its declaration and from what a cluster has.

1. Each field gets a value that the cluster knows, or one at the edge of its type.
2. `fit_<api>` brings together what must agree for the request to do anything. An API without one is
   drawn all the same.
3. Some requests are disturbed: an entry is named twice, or a field gets a value of its type's edge.
"""

import copy
import hmac
import re

from controller.cluster import directory, incarnation
from quorate.base.ids import ZERO_UUID, Uuid
from quorate.config_definitions.definition import (
    broker_configs,
    client_metrics_configs,
    group_configs,
    topic_configs,
)
from quorate.controller.reassignments import is_reassigned
from quorate.formats.versions import supported_features
from quorate.metadata.image import NO_LEADER
from quorate.wire.errors import EncodeError
from quorate.wire.header import decode_request, encode_request
from quorate.wire.registry import APIS

BROKERS = range(1, 6)
CONTROLLERS = (3000, 3001, 3002)
TOPICS = ("t0", "t1", "t2", "t3", "t.x", "t_x", "__consumer_offsets")
USERS = ("alice", "bob", "carol")
SECRET = "secret"
LONGEST = 32_767
"""Bytes of a string, at most."""
EDGES = {
    "string": (
        *("", " ", "x", "0", "-1", "*", ",", "a=b", "User:alice", "kafka-cluster", "1e999"),
        *("\x00", "é", "\ud7ff\ue000", "\U0001f600", "\u0663", "n" * 249, "n" * 250, "9" * 5_000),
        *("x" * LONGEST, "€" * (LONGEST // 3), "\U0001f600" * (LONGEST // 4)),
        *("::ffff:1.2.3.4", "fe80::1%eth0", "10.0.0.0/33", "10.0.0.0/" + "9" * 5_000),
        *("client_id=a{99999999999}", "client_id=" + "(" * 3_000 + ")" * 3_000),
    ),
    "bytes": (b"", b"\x00", b"x" * 40_000),
    "bool": (True, False),
    "float64": (0.0, -0.0, 1.0, 0.5, -1.0, 5e-324, 1e300, 2.0**63, float("inf"), float("nan")),
    "uuid": (
        *(ZERO_UUID, Uuid(bytes(15) + b"\x01"), Uuid(bytes(15) + b"\x02"), Uuid(b"\xff" * 16)),
        *(Uuid(bytes(15) + b"\x63"), Uuid(b"\x07" * 16)),
    ),
    "uint16": (0, 1, 9092, 2**16 - 1),
    **{
        f"int{bits}": (0, 1, -1, 2, -2, 3, 5, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)))
        for bits in (8, 16, 32, 64)
    },
}
"""By type of a field: the values that decisions are likely to forget."""
_DEFINED = {2: topic_configs, 4: broker_configs, 16: client_metrics_configs, 32: group_configs}
"""By resource type."""
_VALUES = ("true", "false", "0", "1", "2", "3", "-1", "1000", "60000", "compact", "delete", "x", "")


class Draw:
    """Draws requests to one cluster."""

    def __init__(self, rng, cluster):
        self.rng = rng
        self.cluster = cluster

    def request(self, row):
        """A request of the API as it is decoded, and its version."""
        api = APIS[row.key]
        while True:
            version = self.rng.randint(api.min_version, api.max_version)
            message = self.struct(api.request, version)
            fit = getattr(self, f"fit_{snake_case(row.name)}", None)
            if fit is not None and self.chance(0.85):
                fit(message)
            if self.chance(0.4):
                self.disturb(message, version)
            try:
                frame = encode_request(message, version, 1, "client")
            except EncodeError:
                continue  # its parts do not fit together
            if len(frame) <= row.max_bytes:
                return decode_request(frame[4:]).message, version

    # -- 1. fields ------------------------------------------------------------------------------
    def chance(self, probability):
        return self.rng.random() < probability

    def one(self, values):
        return self.rng.choice(values)

    def some(self, values, most=3):
        """At least one of them, each once."""
        return self.rng.sample(list(values), self.rng.randint(1, min(most, len(values))))

    def struct(self, cls, version):
        fields = (field for field in cls.schema.fields if field.in_version(version))
        return cls(**{field.name: self.value(cls, field, version) for field in fields})

    def value(self, cls, field, version):
        if field.nullable_in(version) and self.chance(0.1):
            return None
        if field.type_name == "struct":
            return self.struct(field.struct, version)
        if field.type_name != "array":
            return self.scalar(field.name, field.type_name)
        count = self.one((0, 1, 1, 1, 1, 2, 2, 3))
        if field.holds_structs:
            return [self.struct(field.struct, version) for _ in range(count)]
        return [self.scalar(field.name, field.element) for _ in range(count)]

    def scalar(self, name, type_name):
        known = self.known(name, type_name)
        if known and self.chance(0.8):
            return self.one(known)
        return self.one(EDGES[type_name])

    def known(self, name, type_name):
        """What the cluster has that a field of this name may mean."""
        image = self.cluster.image
        brokers = image.cluster.brokers
        if type_name == "uuid":
            ids = sorted(image.topics.by_id) if name == "topic_id" else self.directories
            return ids
        if type_name == "string":
            if name == "cluster_id":
                return ("cluster",)
            return (*TOPICS, *sorted(image.topics.ids), *USERS, *map(str, BROKERS))
        if name in ("broker_id", "broker_ids", "replicas", "new_isr"):
            return sorted(brokers) or BROKERS
        if name == "controller_id":
            return CONTROLLERS
        if "broker_epoch" in name:
            return sorted(broker.epoch for broker in brokers.values())
        if "partition" in name or name == "leader_epoch":
            return (0, 0, 1, 2, 3)
        return ("timeout_ms" in name and (1_000,)) or ()

    @property
    def directories(self):
        return [directory(broker, number) for broker in BROKERS for number in range(3)]

    # -- what there is --------------------------------------------------------------------------
    @property
    def topics(self):
        return sorted(self.cluster.image.topics, key=lambda topic: topic.name)

    @property
    def brokers(self):
        return sorted(self.cluster.image.cluster.brokers)

    def topic(self):
        """The name of a topic, mostly of one that there is."""
        names = sorted(self.cluster.image.topics.ids)
        return self.one(names) if names and self.chance(0.9) else self.one(TOPICS)

    def replicas(self):
        return self.some(self.brokers or BROKERS)

    def partitions(self, name):
        """Indexes of the topic's partitions."""
        topic = self.cluster.image.topics.named(name)
        return sorted(topic.partitions) if topic else [0]

    def epoch(self, broker_id):
        broker = self.cluster.image.cluster.brokers.get(broker_id)
        return -1 if broker is None else broker.epoch

    def as_broker(self, message):
        """The request comes from a broker that is registered."""
        message.broker_id = self.one(self.brokers or BROKERS)
        message.broker_epoch = self.epoch(message.broker_id)

    # -- 2. fit ---------------------------------------------------------------------------------
    def fit_create_topics(self, message):
        cls = type(message).CreatableTopic
        names = self.some(TOPICS)
        message.topics = [self.new_topic(cls, name) for name in names]

    def new_topic(self, cls, name):
        configs = [
            cls.CreatableTopicConfig(name=config, value=value)
            for config, value in self.configs(2, 1) * self.chance(0.3)
        ]
        if self.chance(0.5):
            factor = self.one((-1, 1, 2, 3))
            count = self.one((-1, 1, 2, 3))
            return cls(name=name, num_partitions=count, replication_factor=factor, configs=configs)
        count = len(self.replicas())
        assignments = [
            cls.CreatableReplicaAssignment(
                partition_index=index, broker_ids=self.some(self.brokers or BROKERS, count)
            )
            for index in range(self.rng.randint(1, 3))
        ]
        return cls(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=assignments,
            configs=configs,
        )

    def fit_delete_topics(self, message):
        if self.chance(0.7):
            message.topics, message.topic_names = message.topics[:1], message.topic_names[:1]
        for topic in message.topics:
            if topic.name is None or self.chance(0.5):
                topic.name = None
            else:
                topic.topic_id = ZERO_UUID

    def fit_create_partitions(self, message):
        for topic in message.topics:
            topic.name = self.topic()
            present = len(self.partitions(topic.name))
            more = self.rng.randint(1, 3)
            topic.count, topic.assignments = present + more, None

    def fit_alter_partition_reassignments(self, message):
        for topic in message.topics:
            topic.name = self.topic()
            for partition in topic.partitions:
                partition.partition_index = self.one(self.partitions(topic.name))
                partition.replicas = None if self.chance(0.2) else self.replicas()

    def fit_elect_leaders(self, message):
        message.election_type = self.one((0, 1))
        for topic in message.topic_partitions or ():
            topic.topic = self.topic()
            topic.partitions = self.some(self.partitions(topic.topic))

    def fit_alter_partition(self, message):
        self.as_broker(message)
        led = [
            (topic.id, index, partition)
            for topic in self.topics
            for index, partition in sorted(topic.partitions.items())
            if partition.leader != NO_LEADER
        ]
        changing = [place for place in led if is_reassigned(place[2])]
        if not led:
            return
        message.broker_id = self.one(changing or led)[2].leader
        message.broker_epoch = self.epoch(message.broker_id)
        led = [place for place in changing or led if place[2].leader == message.broker_id]
        for topic in message.topics:
            topic.topic_id = self.one(led)[0]
            mine = [place for place in led if place[0] == topic.topic_id]
            for data in topic.partitions:
                _, data.partition_index, partition = self.one(mine)
                data.leader_epoch = partition.leader_epoch
                data.partition_epoch = partition.partition_epoch
                data.leader_recovery_state = self.one((0, partition.leader_recovery_state))
                others = self.one((partition.replicas, self.some(partition.replicas)))
                isr = [b for b in partition.replicas if b in (partition.leader, *others)]
                if data.new_isr_with_epochs:
                    state = type(data).BrokerState
                    states = [state(broker_id=b, broker_epoch=self.epoch(b)) for b in isr]
                    data.new_isr_with_epochs = states
                else:
                    data.new_isr = isr

    def fit_assign_replicas_to_dirs(self, message):
        self.as_broker(message)
        for given in message.directories:
            given.id = directory(message.broker_id, self.one((0, 1, 1, 2)))
            for topic in given.topics:
                name = self.topic()
                topic.topic_id = self.cluster.image.topics.ids.get(name, ZERO_UUID)
                for partition in topic.partitions:
                    partition.partition_index = self.one(self.partitions(name))

    def fit_broker_registration(self, message):
        cls = type(message)
        message.cluster_id = "cluster"
        message.broker_id = self.one(BROKERS)
        message.incarnation_id = incarnation(self.rng.getrandbits(2))
        message.is_migrating_zk_broker = False
        message.previous_broker_epoch = self.epoch(message.broker_id)
        message.listeners = self.listeners(cls.Listener)
        message.features = self.features(cls.Feature)
        message.log_dirs = [directory(message.broker_id, n) for n in self.some(range(3))]

    def listeners(self, cls):
        names = self.some(("PLAINTEXT", "SSL", "CONTROLLER"))
        return [
            cls(name=name, host="host", port=9092, security_protocol=self.one((0, 1, 2, 3)))
            for name in names
        ]

    def features(self, cls):
        return [
            cls(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in supported_features().items()
        ]

    def fit_broker_heartbeat(self, message):
        self.as_broker(message)
        message.current_metadata_offset = 1 << 40
        message.want_fence = self.chance(0.1)
        message.want_shut_down = self.chance(0.1)
        own = [directory(message.broker_id, number) for number in range(3)]
        message.offline_log_dirs = self.some(own) if self.chance(0.1) else []

    def fit_allocate_producer_ids(self, message):
        self.as_broker(message)

    def fit_unregister_broker(self, message):
        if self.chance(0.5):
            message.broker_id = 99

    def fit_controller_registration(self, message):
        message.listeners = self.listeners(type(message).Listener)
        message.features = self.features(type(message).Feature)

    def fit_update_features(self, message):
        for update in message.feature_updates:
            update.feature = self.one(sorted(supported_features()))
            low, high = supported_features()[update.feature]
            update.max_version_level = self.rng.randint(max(low, high - 3), high)
            update.upgrade_type = self.one((1, 1, 2, 3))

    def fit_alter_configs(self, message):
        for resource in message.resources:
            resource.resource_type = self.one((2, 2, 4, 16, 32))
            resource.resource_name = self.resource_name(resource.resource_type)
            cls = type(resource).AlterableConfig
            pairs = self.configs(resource.resource_type, 2)
            resource.configs = [cls(name=name, value=value) for name, value in pairs]

    def fit_incremental_alter_configs(self, message):
        self.fit_alter_configs(message)
        for resource in message.resources:
            for config in resource.configs:
                config.config_operation = self.one((0, 0, 0, 1, 2, 3))

    def resource_name(self, kind):
        if kind == 2:
            return self.topic()
        return self.one(("", *map(str, self.brokers))) if kind == 4 else self.one(USERS)

    def configs(self, kind, most):
        """Names and values of configs of a resource of this type."""
        favourites = {2: ("min.insync.replicas", "unclean.leader.election.enable"), 4: ()}
        definitions = _DEFINED[kind]()
        names = [*favourites.get(kind, ()), *self.some(sorted(definitions), 2)]
        if kind == 4:
            names += ("min.insync.replicas", "cordoned.log.dirs", "metric.reporters")
        return [
            (name, self.one((default, default, *_VALUES) if self.chance(0.8) else EDGES["string"]))
            for name in self.some(names, most)
            for default in [definitions[name].default]
        ]

    def fit_alter_client_quotas(self, message):
        for entry in message.entries:
            kinds = ["ip"] if self.chance(0.3) else self.some(("user", "client-id"), 2)
            names = ("127.0.0.1", "::1", None) if kinds == ["ip"] else (*USERS, None)
            data = type(entry).EntityData
            entry.entity = [data(entity_type=k, entity_name=self.one(names)) for k in kinds]
            rate = "connection_creation_rate"
            keys = (rate,) if kinds == ["ip"] else ("producer_byte_rate", "request_percentage")
            for op in entry.ops:
                op.key, op.value = self.one(keys), self.one((1.0, 2.0, 100.0))

    def fit_create_acls(self, message):
        for acl in message.creations:
            acl.resource_type = self.one((2, 2, 3, 5))
            acl.resource_name = self.topic()
            acl.resource_pattern_type = self.one((3, 4))
            acl.principal = f"User:{self.one(USERS)}"
            acl.host = self.one(("*", "127.0.0.1", "10.0.0.0/8"))
            acl.operation = self.one((2, 3, 4, 8, 10))
            acl.permission_type = self.one((2, 3, 3))

    def fit_delete_acls(self, message):
        for wanted in message.filters:
            wanted.resource_type_filter = self.one((1, 2, 3))
            wanted.resource_name_filter = self.one((None, self.topic()))
            wanted.pattern_type_filter = self.one((1, 2, 3, 4))
            wanted.principal_filter = self.one((None, "User:alice"))
            wanted.host_filter = None
            wanted.operation = wanted.permission_type = 1

    def fit_alter_user_scram_credentials(self, message):
        for item in (*message.deletions, *message.upsertions):
            item.name, item.mechanism = self.one(USERS), self.one((1, 2))
        for item in message.upsertions:
            item.iterations, item.salted_password = self.one((4096, 16384)), b"password"

    def fit_create_delegation_token(self, message):
        owner = self.one(("", self.one(USERS)))
        if message.owner_principal_type is not None:
            message.owner_principal_type, message.owner_principal_name = "User", owner
        for renewer in message.renewers:
            renewer.principal_type, renewer.principal_name = "User", self.one(USERS)
        message.max_lifetime_ms = self.one((-1, 0, 1_000, 1 << 40))

    def fit_renew_delegation_token(self, message):
        known = sorted(self.cluster.image.delegation_tokens)
        if known:
            message.hmac = hmac.digest(SECRET.encode(), self.one(known).encode(), "sha512")

    def fit_expire_delegation_token(self, message):
        self.fit_renew_delegation_token(message)

    # -- 3. disturb -----------------------------------------------------------------------------
    def disturb(self, message, version):
        """Name something twice, or give a field another value of its type."""
        for _ in range(self.one((1, 1, 2, 3))):
            owner, field = self.one(list(slots(message, version)))
            value = getattr(owner, field.name)
            if field.type_name == "array" and value:
                again = copy.deepcopy(self.one(value))
                if field.holds_structs and self.chance(0.4):
                    inner = self.one(list(slots(again, version)) or [(owner, field)])
                    setattr(inner[0], inner[1].name, self.value(type(again), inner[1], version))
                value.insert(self.rng.randint(0, len(value)), again)
            elif field.type_name in EDGES and self.chance(0.5):
                setattr(owner, field.name, self.one(EDGES[field.type_name]))
            else:
                setattr(owner, field.name, self.value(type(owner), field, version))


def snake_case(name):
    """`CreateTopics` as `create_topics`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def slots(struct, version):
    """Each field of the struct and of the structs in it, with the struct that has it."""
    for field in type(struct).schema.fields:
        if field.in_version(version):
            yield struct, field
            if field.holds_structs:
                value = getattr(struct, field.name)
                for item in [value] if field.type_name == "struct" else value or ():
                    yield from slots(item, version)
