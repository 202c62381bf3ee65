"""Dynamic configs of brokers, read from the metadata log: controllers report only their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.cli.flat_options import FlatToolError
from quorate.cli.tools.cluster_image import ImageUnreadableError, read_image
from quorate.client.admin.configs import ConfigEntry, ConfigEntrySource, ConfigSynonym
from quorate.config_definitions.definition import broker_configs, broker_quotas
from quorate.metadata.image import ConfigResource, Image
from quorate.metadata.resource_types import BROKER_RESOURCE

if TYPE_CHECKING:
    from quorate.client import Admin


def image_for_broker(admin: Admin) -> Image:
    """What controllers know of brokers. Raises FlatToolError where the user may not read it."""
    try:
        return read_image(admin)
    except ImageUnreadableError as error:
        raise FlatToolError(f"The configs of brokers cannot be read: {error}") from None


def is_known(image: Image, broker: int) -> bool:
    """Whether the broker is registered or has configs."""
    resource = ConfigResource(BROKER_RESOURCE, str(broker))
    return broker in image.cluster.brokers or resource in image.configs


def dynamic_configs(image: Image, broker: int) -> list[ConfigEntry]:
    """The configs that are set for one broker, in order of their names.

    The values of sensitive ones are hidden, and of those that Kafka does not know (`ConfigHelper`).
    """
    resource = ConfigResource(BROKER_RESOURCE, str(broker))
    source = ConfigEntrySource.DYNAMIC_BROKER_CONFIG
    known = {**broker_configs(), **broker_quotas()}
    found = []
    for name, value in sorted(image.configs.get(resource, {}).items()):
        definition = known.get(name)
        hidden = definition is None or definition.is_sensitive
        shown = None if hidden else value
        synonyms = (ConfigSynonym(name, shown, source),)
        found.append(ConfigEntry(name, shown, source, hidden, False, synonyms))
    return found
