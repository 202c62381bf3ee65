"""Requests about configs, quotas and features."""

from __future__ import annotations

from differential.draw import BROKERS, GROUPS, SUBSCRIPTIONS, USERS, Draft, Draw
from quorate.config_definitions.definition import (
    ConfigType,
    Definition,
    Definitions,
    broker_configs,
    client_metrics_configs,
    group_configs,
)
from quorate.config_definitions.definition import topic_configs as topic_definitions
from quorate.formats.versions import KRAFT_VERSION
from quorate.metadata.resource_types import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from quorate.wire.messages import (
    AlterClientQuotasRequest,
    AlterConfigsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    UpdateFeaturesRequest,
)

FAVOURITES = ("min.insync.replicas", "unclean.leader.election.enable", "cleanup.policy")
"""Configs that other decisions depend on."""
_BROKER_PREFIXES = (
    *("compression.", "cordoned.", "log.", "message.", "min.insync", "producer."),
    *("remote.", "transaction.", "unclean."),
)
"""The brokers' configs that change nothing in the process of a controller."""
_BROKER_NUMBERS = ("1000", "60000", "1048576")
"""Valid for each of them. The dynamic values of a node count together or not at all with Kafka, and each
for itself with Quorate (decision 7), so a wrong one that is stored would be seen."""
_NUMBERS = ("0", "1", "2", "3", "10", "1000", "60000", "1048576", "2147483647", "-1", "-2")
_ODD = (
    "",
    " ",
    "x",
    "1.5",
    "true",
    "99999999999999999999",
    " 7 ",
    "null",
    "0x10",
    "1,2",
    "+5",
    "1_0",
)
_LISTS = (
    "delete",
    "compact",
    "compact,delete",
    "delete,delete",
    "",
    "none",
    "*",
    "0:1,1:2",
    "a, b",
)
_CLIENT_LISTS = (
    *("client_id=a", "client_software_name=x.*,client_id=b", "client_id=[", "what=1", "*", ""),
    *("org.apache.kafka.producer.,org.apache.kafka.consumer.", "client_instance_id"),
)
_QUOTA_KEYS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
SET, DELETE, APPEND, SUBTRACT = range(4)
UPGRADE = 1
_NODES = ("1", "1", "1", "2", "99", "", "x")
"""Names of nodes; the controller is number 1."""
_OWN = (
    *("node.id", "log.dirs", "log.dir", "process.roles", "controller.quorum.voters"),
    *("leader.replication.throttled.rate", "follower.replication.throttled.rate"),
    *("replica.alter.log.dirs.io.max.bytes.per.second", "broker.session.timeout.ms"),
)
"""Configs of a node that its file sets, or that only a broker follows."""
_TYPES = (TOPIC_RESOURCE, BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE)
_ONLY_4_4 = {"group.assignor.offload", "cordoned"}


def definitions(resource_type: int) -> Definitions:
    """What the generator sets on resources of a type."""
    if resource_type == TOPIC_RESOURCE:
        return topic_definitions()
    if resource_type == GROUP_RESOURCE:
        return group_configs()
    if resource_type == CLIENT_METRICS_RESOURCE:
        return client_metrics_configs()
    found = broker_configs()
    return {name: found[name] for name in found if name.startswith(_BROKER_PREFIXES)}


def value_of(draw: Draw, definition: Definition) -> str:
    """Mostly one of the right type."""
    if definition.name == "min.insync.replicas" and draw.chance(0.8):
        return draw.one(("1", "2", "3", "4"))
    if draw.chance(0.08):
        return draw.one(_ODD)
    if draw.chance(0.25) and definition.default:
        return definition.default
    match definition.type:
        case ConfigType.BOOLEAN:
            return draw.usually(0.95, draw.one(("true", "false")), ("TRUE", " False ", "yes"))
        case ConfigType.LIST:
            if definition.name in ("metrics", "match"):
                return draw.one(_CLIENT_LISTS)
            return draw.one(_LISTS)
        case ConfigType.DOUBLE:
            return draw.one(("0", "0.5", "1", "1.0", "1e-3", "2", "-0.1", "NaN"))
        case ConfigType.STRING | ConfigType.CLASS:
            return draw.one(_words(definition))
    return draw.one(_NUMBERS)


def _words(definition: Definition) -> tuple[str, ...]:
    listed = definition.allowed.strip("[]").split(", ")
    return (*listed, "by_duration:PT1H", "by_duration:x", "LATEST")


def topic_configs(draw: Draw, most: int) -> list[tuple[str, str | None]]:
    """For a new topic: mostly none."""
    found: list[tuple[str, str | None]] = []
    if draw.chance(0.4):
        for name in draw.some(list(FAVOURITES), most):
            found.append((name, value_of(draw, topic_definitions()[name])))
    if draw.chance(0.15):
        name = draw.one(sorted(topic_definitions()))
        if name not in dict(found):
            found.append((name, value_of(draw, topic_definitions()[name])))
    if draw.chance(0.02):
        found.append(draw.one((("no.such.config", "1"), ("retention.ms", None))))
    return found


def _resource(draw: Draw) -> tuple[int, str]:
    kind = draw.usually(0.96, draw.one(_TYPES), (0, 1, 3, BROKER_LOGGER_RESOURCE, 64, 99))
    if kind == TOPIC_RESOURCE:
        return kind, draw.topic()
    if kind == BROKER_RESOURCE:
        known = str(draw.broker())
        return kind, draw.usually(0.5, known, ("", "", str(draw.one(BROKERS)), "x", "-1", "1000"))
    if kind == CLIENT_METRICS_RESOURCE:
        return kind, draw.one(SUBSCRIPTIONS)
    if kind == GROUP_RESOURCE:
        return kind, draw.one(GROUPS)
    return kind, draw.one(("", "x", "1"))


def _name(draw: Draw, resource_type: int) -> str:
    known = definitions(resource_type)
    if draw.chance(0.03):
        return draw.one(("no.such.config", "", "num.partitions"))
    if draw.chance(0.03):
        return draw.one(_OWN)
    favourites = [name for name in FAVOURITES if name in known]
    if favourites and draw.chance(0.4):
        return draw.one(favourites)
    return draw.one(sorted(known))


def _value(draw: Draw, resource_type: int, name: str) -> str | None:
    if draw.chance(0.015):
        return None
    definition = definitions(resource_type).get(name)
    if definition is not None and resource_type == BROKER_RESOURCE:
        return _broker_value(draw, definition)
    return draw.one(_ODD) if definition is None else value_of(draw, definition)


def _broker_value(draw: Draw, definition: Definition) -> str:
    if definition.name == "min.insync.replicas":  # another value is an exception of Kafka's
        return draw.one(("1", "2", "3", "4"))
    if definition.name in FAVOURITES or definition.type not in (
        *(ConfigType.INT, ConfigType.SHORT, ConfigType.LONG, ConfigType.BOOLEAN),
    ):
        return value_of(draw, definition)
    if draw.chance(0.05):
        return draw.one(("x", "1.5", ""))
    if definition.type is ConfigType.BOOLEAN:
        return draw.one(("true", "false"))
    return definition.default or draw.one(_BROKER_NUMBERS)


def incremental(draw: Draw) -> Draft:
    cls = IncrementalAlterConfigsRequest
    resources = []
    for _ in range(draw.rng.randint(0 if draw.chance(0.05) else 1, 2)):
        kind, resource = _resource(draw)
        rows = []
        for _ in range(draw.rng.randint(0 if draw.chance(0.1) else 1, 3)):
            name = _name(draw, kind)
            operation = draw.one((SET, SET, SET, DELETE, APPEND, SUBTRACT))
            value = _value(draw, kind, name)
            if value is None and operation in (APPEND, SUBTRACT):
                value = ""
            if operation == DELETE:
                value = draw.one((None, None, "x"))
            rows.append((name, operation, value))
        rows = draw.often_twice(rows)
        resource_class = cls.AlterConfigsResource
        resources.append(
            resource_class(
                resource_type=kind,
                resource_name=resource,
                configs=[
                    resource_class.AlterableConfig(name=n, config_operation=o, value=v)
                    for n, o, v in rows
                ],
            )
        )
    message = cls(resources=draw.often_twice(resources), validate_only=draw.chance(0.1))
    return Draft(lambda side: message)


def replace(draw: Draw) -> Draft:
    """AlterConfigs: all configs of resources."""
    cls = AlterConfigsRequest
    resources: list[AlterConfigsRequest.AlterConfigsResource] = []
    for _ in range(draw.rng.randint(0 if draw.chance(0.05) else 1, 2)):
        kind, resource = _resource(draw)
        names = [_name(draw, kind) for _ in range(draw.rng.randint(0, 3))]
        if any(kind == one.resource_type and resource == one.resource_name for one in resources):
            continue
        resource_class = cls.AlterConfigsResource
        resources.append(
            resource_class(
                resource_type=kind,
                resource_name=resource,
                configs=[
                    resource_class.AlterableConfig(name=name, value=_value(draw, kind, name))
                    for name in draw.often_twice(list(dict.fromkeys(names)))
                ],
            )
        )
    if all(one.resource_type in _TYPES for one in resources):  # else Kafka never answers
        resources = draw.often_twice(resources)
    message = cls(resources=resources, validate_only=draw.chance(0.1))
    return Draft(lambda side: message)


def describe(draw: Draw) -> Draft:
    """Named configs of a resource, or all of a topic, a group or a subscription."""
    cls = DescribeConfigsRequest
    kind, resource = _resource(draw)
    if kind == BROKER_LOGGER_RESOURCE:
        resource = "x"  # the controller's own loggers are of other names
    names: list[str] | None = sorted(
        {_name(draw, kind) if kind in _TYPES else "x" for _ in range(draw.rng.randint(1, 4))}
    )
    if draw.chance(0.1):
        kind, resource, names = BROKER_RESOURCE, draw.one(_NODES), draw.some(_OWN, 3)
    if kind != BROKER_RESOURCE and draw.chance(0.3):
        names = None
    message = cls(
        resources=[
            cls.DescribeConfigsResource(
                resource_type=kind, resource_name=resource, configuration_keys=names
            )
        ],
        include_synonyms=draw.chance(0.6),
    )
    return Draft(lambda side: message, is_read=True)


def quotas(draw: Draw) -> Draft:
    """Rates are high, and of users that ask for nothing: nobody is throttled."""
    cls = AlterClientQuotasRequest
    entries = []
    for _ in range(draw.rng.randint(0 if draw.chance(0.05) else 1, 3)):
        entity = draw.one(
            (
                [("user", draw.one((*USERS, None)))],
                [("client-id", draw.one(("c1", "c2", None)))],
                [("user", draw.one(USERS)), ("client-id", draw.one(("c1", None)))],
                [("ip", draw.one(("10.0.0.1", "10.0.0.2", None)))],
            )
        )
        if draw.chance(0.06):
            entity = draw.one(
                (
                    [],
                    [("what", "x")],
                    [("user", "")],
                    [("user", "a"), ("user", "b")],
                    [("ip", "10.0.0.1"), ("user", "alice")],
                    [("ip", "not an address")],
                )
            )
        ops = []
        for _ in range(draw.rng.randint(0 if draw.chance(0.05) else 1, 2)):
            key = draw.one(_QUOTA_KEYS)
            if entity and entity[0][0] == "ip" and draw.chance(0.9):
                key = "connection_creation_rate"
            if draw.chance(0.04):
                key = draw.one(("", "what", "connection_creation_rate", "producer_byte_rate"))
            value = draw.one((1e6, 2e6, 12345678.0, 1e9))
            if draw.chance(0.05):
                value = draw.one((0.0, -1.0, 1e6 + 0.5, 1e30))
            ops.append(cls.EntryData.OpData(key=key, value=value, remove=draw.chance(0.3)))
        entries.append(
            cls.EntryData(
                entity=[
                    cls.EntryData.EntityData(entity_type=kind, entity_name=name)
                    for kind, name in entity
                ],
                ops=ops,
            )
        )
    message = cls(entries=draw.often_twice(entries), validate_only=draw.chance(0.1))
    return Draft(lambda side: message)


def update_features(draw: Draw) -> Draft:
    """Levels go up and down; metadata.version mostly stays high."""
    cls = UpdateFeaturesRequest
    rows = []
    for _ in range(draw.rng.randint(0 if draw.chance(0.1) else 1, 2)):
        name = draw.one(sorted(draw.features))
        low, high = draw.features[name]
        level = draw.rng.randint(low, high)
        if name == "metadata.version":
            current = draw.image.features.metadata_version or high
            level = draw.usually(0.7, min(high, current + draw.rng.randint(0, 2)), (level, current))
        if draw.chance(0.05):
            level = draw.one((-1, 0))
        if draw.chance(0.03):
            name = draw.one(("no.such.feature", ""))
        rows.append(
            cls.FeatureUpdateKey(
                feature=name,
                max_version_level=level,
                upgrade_type=draw.usually(0.97, draw.one((1, 1, 2, 3)), (0, 4)),
            )
        )
    raised = [row for row in rows if row.feature == KRAFT_VERSION and row.upgrade_type == UPGRADE]
    if raised:  # alone: Kafka raises it also where it refuses another feature (decision 7)
        rows = raised[:1]
    message = cls(feature_updates=draw.often_twice(rows), validate_only=draw.chance(0.3))
    return Draft(lambda side: message, version=draw.one((1, 2)))
