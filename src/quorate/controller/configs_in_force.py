"""Which value of a config is in force, and where it comes from.

A topic's config is searched in this order: the topic; the dynamic configs of the active controller's
node id; the dynamic defaults of all brokers; the controller's properties file; the default.

Source: `KafkaConfigSchema.resolveEffectiveTopicConfig`,
`ConfigurationControlManager.uncleanLeaderElectionEnabledForTopic`,
`ReplicationControlManager.getTopicEffectiveMinIsr`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from immutables import Map

from quorate.config_definitions.definition import (
    Definition,
    broker_configs,
    is_supported,
    topic_configs,
)
from quorate.config_definitions.values import ConfigValueError, Value, parse
from quorate.controller.node_configs import (
    ConfigSource,
    Effective,
    Texts,
    below_topic,
    group_defaults,
    merged,
    topic_defaults,
)
from quorate.metadata.image import ConfigResource, Image, Topic
from quorate.metadata.resource_types import BROKER_RESOURCE, TOPIC_RESOURCE

MIN_ISR: Final = "min.insync.replicas"
UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"
NO_CONFIGS: Final[Map[str, str]] = Map()


@dataclass(frozen=True, slots=True)
class ConfigsInForce:
    """The values in force on one node: `file` is what its properties file sets."""

    node_id: int
    file: Map[str, str] = NO_CONFIGS

    # -- what the controller itself follows ---------------------------------------------------
    def effective_min_isr(self, image: Image, topic: Topic) -> int:
        """min.insync.replicas of the topic, at most the replication factor of partition 0."""
        min_isr = self._own(image, topic.name, topic_configs()[MIN_ISR])
        assert isinstance(min_isr, int)
        first = topic.partitions.get(0)
        return min_isr if first is None else min(min_isr, len(first.replicas))

    def unclean_leader_election(self, image: Image, topic: str) -> bool:
        """Whether a replica outside the ISR may lead the topic's partitions.

        A dynamic value that is no boolean says no (`Boolean.parseBoolean`): the controllers do not check
        the values of brokers.
        """
        for layer in self._dynamic(image, topic):
            text = layer.get(UNCLEAN_ELECTION)
            if text is not None:
                return text.lower() == "true"
        return self._own(image, topic, topic_configs()[UNCLEAN_ELECTION]) is True

    @property
    def min_insync_replicas(self) -> int:
        """min.insync.replicas of the properties file."""
        definition = broker_configs()[MIN_ISR]
        value = parse(definition, self.file.get(MIN_ISR, definition.default))
        assert isinstance(value, int)
        return value

    def _own(self, image: Image, topic: str, definition: Definition) -> Value | None:
        """The value of a config that has the same name at each level. A value that is not allowed
        counts as absent: Kafka's controller does not check the values of brokers."""
        name = definition.name
        for layer in (*self._dynamic(image, topic), self.file):
            if name in layer:
                try:
                    return parse(definition, layer[name])
                except ConfigValueError:
                    continue
        return parse(definition, definition.default)

    def _dynamic(self, image: Image, topic: str) -> tuple[Texts, ...]:
        """The configs of the topic, of this node, and of all brokers."""
        if not image.configs:
            return ()
        return (
            image.configs.get(ConfigResource(TOPIC_RESOURCE, topic), NO_CONFIGS),
            *self.dynamic(image),
        )

    # -- what clients read --------------------------------------------------------------------
    def dynamic(self, image: Image) -> tuple[Map[str, str], Map[str, str]]:
        """The dynamic configs of this node, and those of all brokers."""
        configs = image.configs
        return (
            configs.get(ConfigResource(BROKER_RESOURCE, str(self.node_id)), NO_CONFIGS),
            configs.get(ConfigResource(BROKER_RESOURCE, ""), NO_CONFIGS),
        )

    def effective_topic_configs(self, image: Image, own: Texts) -> dict[str, Effective]:
        """Every config of a topic that sets `own`, by name, sorted. An internal one is left out unless
        it is among them."""
        found = {
            **below_topic(self.file, *self.dynamic(image)),
            **{name: Effective(value, ConfigSource.TOPIC) for name, value in own.items()},
        }
        return {name: found[name] for name in sorted(found)}

    def node_configs(self, image: Image) -> Texts:
        """What this node's file and the dynamic configs set; the more special one counts."""
        return merged(self.file, *self.dynamic(image))

    def topic_defaults(self, image: Image) -> Texts:
        """The values of a topic's configs that a broker's configs stand in for."""
        return topic_defaults(self.file, *self.dynamic(image))

    def group_defaults(self, image: Image) -> Texts:
        """The values of a group's configs that a broker's configs stand in for."""
        return group_defaults(self.file, *self.dynamic(image))


def known_configs(image: Image, resource: ConfigResource) -> dict[str, str]:
    """The resource's configs that Kafka knows. Kafka forgets the others when it replays them; the
    image keeps them, but no decision depends on them (`SupportedConfigChecker`)."""
    found = image.configs.get(resource, NO_CONFIGS)
    return {name: value for name, value in found.items() if is_supported(resource.type, name)}
