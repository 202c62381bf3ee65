"""Load an operator's policies: Python functions that the properties file names."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from quorate.config.node_config import (
    ALTER_CONFIG_POLICY,
    CREATE_TOPIC_POLICY,
    NodeConfig,
)
from quorate.config.settings import ConfigError
from quorate.controller.policies import (
    AlterConfigPolicy,
    ConfigChange,
    CreateTopicPolicy,
    NewTopic,
    PolicyViolationError,
)
from quorate.server.logs import LOG


def create_topic_policy(config: NodeConfig) -> CreateTopicPolicy | None:
    """The policy of `quorate.create.topic.policy`, if there is one. Raises ConfigError."""
    policy = load_function(config, CREATE_TOPIC_POLICY, config.create_topic_policy)
    if policy is None:
        return None

    def check(topic: NewTopic) -> None:
        _ask(policy, topic, f"{CREATE_TOPIC_POLICY} failed for topic {topic.name}")

    return check


def alter_config_policy(config: NodeConfig) -> AlterConfigPolicy | None:
    """The policy of `quorate.alter.config.policy`, if there is one. Raises ConfigError."""
    policy = load_function(config, ALTER_CONFIG_POLICY, config.alter_config_policy)
    if policy is None:
        return None

    def check(change: ConfigChange) -> None:
        what = f"resource {change.resource_name!r} of type {change.resource_type}"
        _ask(policy, change, f"{ALTER_CONFIG_POLICY} failed for {what}")

    return check


def load_function(config: NodeConfig, key: str, text: str) -> Callable[[Any], Any] | None:
    """The function `module:attribute` that a key names; None for an empty text. Raises ConfigError."""
    if not text:
        return None
    module, _, attribute = text.partition(":")
    try:
        found: Any = import_module(module)
        for name in attribute.split("."):
            found = getattr(found, name)
    except Exception as error:  # the module is the operator's, so anything may come
        why = f"{key}={text} cannot be loaded: {type(error).__name__}: {error}"
        raise ConfigError(why, key=key, where=config.source or None) from error
    if not callable(found):
        why = f"{key}={text} is no function, but of type {type(found).__name__}"
        raise ConfigError(why, key=key, where=config.source or None)
    function: Callable[[Any], Any] = found
    return function


def _ask(policy: Callable[[Any], Any], subject: NewTopic | ConfigChange, failure: str) -> None:
    """The client does not read why a policy failed; the log of the node has it."""
    try:
        policy(subject)
    except PolicyViolationError:
        raise
    except Exception:
        LOG.exception("%s", failure)
        raise
