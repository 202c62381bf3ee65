"""The tree of an image: names and texts of Kafka's nodes (`org.apache.kafka.image.node`).

Kafka's root has `image` and `local`. Ours adds `control`: what the control records of the log say
(KIP-853 leaves their display to a later KIP). Kafka names the default entity of client quotas with an
empty string that no path reaches; ours is `user(<default>)`, `clientId(<default>)` or `ip(<default>)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from quorate import __version__
from quorate.base.errors import QuorateError
from quorate.base.ids import Uuid, uuid_from_text, uuid_to_text
from quorate.metadata.image import (
    ConfigResource,
    Features,
    Image,
    QuotaEntity,
    ScramKey,
    Topic,
    Topics,
)
from quorate.metadata.loader import Published
from quorate.metadata.resource_types import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from quorate.raft.values import ControlState, LeaderChange, Voter
from quorate.shell import java_text
from quorate.shell.nodes import REDACTED, Directory, Leaf, Node, Redaction, directory, leaf

_CONFIG_TYPES: Final = {
    TOPIC_RESOURCE: "TOPIC",
    BROKER_RESOURCE: "BROKER",
    BROKER_LOGGER_RESOURCE: "BROKER_LOGGER",
    CLIENT_METRICS_RESOURCE: "CLIENT_METRICS",
    GROUP_RESOURCE: "GROUP",
}
_QUOTA_TYPES: Final = {"client-id": "clientId", "ip": "ip", "user": "user"}
_DEFAULT_ENTITY: Final = "<default>"
_SCRAM_MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_FINALIZED: Final = "finalized_"


@dataclass(frozen=True, slots=True)
class ControlView:
    """What the control records up to an offset say."""

    state: ControlState
    """kraft.version and voters."""
    leader: LeaderChange | None = None
    """The last LeaderChange; None where no record that was read has it."""
    leader_epoch: int = -1
    """The epoch of that record."""


@dataclass(frozen=True, slots=True)
class MetadataView:
    """What the shell shows: an image with its provenance, and the control records."""

    published: Published
    control: ControlView


def root(view: MetadataView) -> Directory:
    """The tree of a view."""
    return directory(
        {
            "control": _control(view.control),
            "image": _image(view.published),
            "local": directory({"commitId": leaf("unknown"), "version": leaf(__version__)}),
        }
    )


def _control(view: ControlView) -> Directory:
    children: dict[str, Node] = {"kraftVersion": leaf(view.state.kraft_version)}
    if view.leader is not None:
        children["leader"] = directory(
            {
                "epoch": leaf(view.leader_epoch),
                "id": leaf(view.leader.leader_id),
                "voters": leaf(list(view.leader.voters)),
                "grantingVoters": leaf(list(view.leader.granting_voters)),
            }
        )
    voters = view.state.voters or ()
    children["voters"] = directory({str(one.key.id): _voter(one) for one in voters})
    return directory(children)


def _voter(voter: Voter) -> Directory:
    listeners = [f"{one.name}://{one.host}:{one.port}" for one in voter.listeners]
    return directory(
        {
            "directoryId": leaf(uuid_to_text(voter.key.directory_id)),
            "endpoints": leaf(", ".join(listeners)),
            "kraftVersions": leaf(f"{voter.min_kraft_version}-{voter.max_kraft_version}"),
        }
    )


def _image(published: Published) -> Directory:
    image = published.image
    return directory(
        {
            "acls": directory(
                {"byId": _by_uuid(image.acls, lambda i: java_text.acl(image.acls[i]))}
            ),
            "clientQuotas": _client_quotas(image),
            "cluster": _cluster(image),
            "configs": _configs(image),
            "delegationToken": _delegation_tokens(image),
            "features": _features(image.features),
            "producerIds": directory({"nextProducerId": leaf(image.next_producer_id)}),
            "provenance": leaf(java_text.provenance(published.provenance)),
            "scram": directory(
                {name: _scram(image, number) for number, name in _SCRAM_MECHANISMS.items()}
            ),
            "topics": directory(
                {"byId": _topics_by_id(image.topics), "byName": _topics_by_name(image.topics)}
            ),
        }
    )


def _by_uuid(ids: Iterable[Uuid], text: Callable[[Uuid], str]) -> Directory:
    """A directory of files that uuids name."""
    known = frozenset(ids)

    def child(name: str) -> Node | None:
        found = _uuid(name)
        return leaf(text(found)) if found in known and found is not None else None

    return Directory(lambda: map(uuid_to_text, known), child)


def _uuid(name: str) -> Uuid | None:
    try:
        return uuid_from_text(name)
    except QuorateError:
        return None


def _integer(name: str) -> int | None:
    return int(name) if name.isascii() and name.removeprefix("-").isdigit() else None


def _features(features: Features) -> Directory:
    version = features.metadata_version
    children: dict[str, Node] = {
        "metadataVersion": leaf("Optional.empty" if version is None else f"Optional[{version}]")
    }
    for name, level in features.levels.items():
        children[_FINALIZED + name] = leaf(level)
    return directory(children)


def _cluster(image: Image) -> Directory:
    cluster = image.cluster
    brokers: dict[str, Node] = {
        str(one.id): leaf(java_text.broker(one)) for one in cluster.brokers.values()
    }
    controllers: dict[str, Node] = {
        str(one.id): leaf(java_text.controller(one)) for one in cluster.controllers.values()
    }
    return directory({"brokers": directory(brokers), "controllers": directory(controllers)})


def _topics_by_name(topics: Topics) -> Directory:
    def child(name: str) -> Node | None:
        topic = topics.named(name)
        return None if topic is None else _topic(topic)

    return Directory(lambda: topics.ids, child)


def _topics_by_id(topics: Topics) -> Directory:
    def child(name: str) -> Node | None:
        topic_id = _uuid(name)
        topic = None if topic_id is None else topics.by_id.get(topic_id)
        return None if topic is None else _topic(topic)

    return Directory(lambda: map(uuid_to_text, topics.by_id), child)


def _topic(topic: Topic) -> Directory:
    fixed: dict[str, Node] = {"id": leaf(uuid_to_text(topic.id)), "name": leaf(topic.name)}

    def child(name: str) -> Node | None:
        if name in fixed:
            return fixed[name]
        index = _integer(name)
        found = None if index is None else topic.partitions.get(index)
        return None if found is None else leaf(java_text.partition(found))

    return Directory(lambda: [*fixed, *map(str, topic.partitions)], child)


def _configs(image: Image) -> Directory:
    resources = {_resource_name(one): one for one in image.configs}

    def child(name: str) -> Node | None:
        resource = resources.get(name)
        return None if resource is None else _config(image, resource)

    return Directory(lambda: resources, child)


def _resource_name(resource: ConfigResource) -> str:
    kind = _CONFIG_TYPES.get(resource.type, f"UNKNOWN({resource.type})")
    return f"{kind}:{resource.name}" if resource.name else kind


def _config(image: Image, resource: ConfigResource) -> Directory:
    values = image.configs[resource]

    def child(key: str) -> Node | None:
        value = values.get(key)
        if value is None:
            return None
        return Leaf(lambda redaction: REDACTED if redaction.hides_config(resource, key) else value)

    return Directory(lambda: values, child)


def _client_quotas(image: Image) -> Directory:
    entities = {_entity_name(one): one for one in image.client_quotas}

    def child(name: str) -> Node | None:
        entity = entities.get(name)
        if entity is None:
            return None
        return directory(
            {
                key: leaf(java_text.quota(value))
                for key, value in image.client_quotas[entity].items()
            }
        )

    return Directory(lambda: entities, child)


def _entity_name(entity: QuotaEntity) -> str:
    values = dict(entity)
    return "_".join(
        f"{name}({_entity_value(values[kind])})"
        for kind, name in _QUOTA_TYPES.items()
        if kind in values
    )


def _entity_value(value: str | None) -> str:
    """Kafka's escapes; a name that reads like the default entity gets one more."""
    if value is None:
        return _DEFAULT_ENTITY
    escaped = value.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return f"\\{escaped}" if escaped == _DEFAULT_ENTITY else escaped


def _scram(image: Image, mechanism: int) -> Directory:
    def child(user: str) -> Node | None:
        found = image.scram.get(ScramKey(mechanism, user))
        if found is None:
            return None
        return Leaf(lambda redaction: java_text.scram_credential(found, redaction))

    return Directory(lambda: [one.user for one in image.scram if one.mechanism == mechanism], child)


def _delegation_tokens(image: Image) -> Directory:
    def child(token_id: str) -> Node | None:
        found = image.delegation_tokens.get(token_id)
        if found is None:
            return None

        def text(redaction: Redaction) -> str:
            return java_text.delegation_token(token_id, found, redaction)

        return Leaf(text)

    return Directory(lambda: image.delegation_tokens, child)
