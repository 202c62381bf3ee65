"""The configs that Kafka 4.3.1 defines: names, types, defaults, allowed values, synonyms.

`table` is made from Kafka's jars, `definition` reads it, `values` reads values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.config_definitions.definition import (
        ConfigType,
        Definition,
        Definitions,
        broker_configs,
        client_metrics_configs,
        group_configs,
        topic_configs,
    )
    from quorate.config_definitions.values import ConfigValueError, Value, parse, parse_all, text_of
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "definition": "ConfigType Definition Definitions broker_configs client_metrics_configs "
            "group_configs topic_configs",
            "values": "ConfigValueError Value parse parse_all text_of",
        },
    )

__all__ = [
    "ConfigType",
    "ConfigValueError",
    "Definition",
    "Definitions",
    "Value",
    "broker_configs",
    "client_metrics_configs",
    "group_configs",
    "parse",
    "parse_all",
    "text_of",
    "topic_configs",
]
