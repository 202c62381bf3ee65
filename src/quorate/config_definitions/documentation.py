"""What each config is for, in a sentence or two: the documentation that DescribeConfigs reports."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Final

from quorate.metadata.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)

_MODULES: Final[Mapping[int, tuple[str, ...]]] = {
    TOPIC_RESOURCE: ("topics",),
    GROUP_RESOURCE: ("groups",),
    CLIENT_METRICS_RESOURCE: ("client_metrics",),
    BROKER_RESOURCE: ("broker_logs", "broker_coordinators", "broker_security", "broker_nodes"),
}
"""The modules of `sentences`, by type of resource."""


@cache
def documentation(resource_type: int) -> Mapping[str, str]:
    """The sentences by the name of the config; empty for a type without configs of its own."""
    found = {}
    for module in _MODULES.get(resource_type, ()):
        text: str = import_module(f"quorate.config_definitions.sentences.{module}").SENTENCES
        for line in text.splitlines():
            name, _, sentence = line.partition(": ")
            found[name] = sentence
    return MappingProxyType(found)
