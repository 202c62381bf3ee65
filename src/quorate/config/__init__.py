"""The configuration of a node: Kafka's keys, their checks, listeners and config providers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.config.dynamic_voters import DynamicVoter, VoterError, parse_voter, parse_voters
    from quorate.config.host_port import parse_host_port
    from quorate.config.node_config import NodeConfig
    from quorate.config.node_file import config_of, load_config, unknown_keys
    from quorate.config.properties_file import read_settings
    from quorate.config.settings import ConfigError, Settings
    from quorate.config.unsupported import check_servable
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "dynamic_voters": "DynamicVoter VoterError parse_voter parse_voters",
            "host_port": "parse_host_port",
            "node_config": "NodeConfig",
            "node_file": "config_of load_config unknown_keys",
            "properties_file": "read_settings",
            "settings": "ConfigError Settings",
            "unsupported": "check_servable",
        },
    )

__all__ = [
    "ConfigError",
    "DynamicVoter",
    "NodeConfig",
    "Settings",
    "VoterError",
    "check_servable",
    "config_of",
    "load_config",
    "parse_host_port",
    "parse_voter",
    "parse_voters",
    "read_settings",
    "unknown_keys",
]
