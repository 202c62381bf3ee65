"""Types of config resources (`ConfigResource.Type`)."""

from __future__ import annotations

from typing import Final

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
BROKER_LOGGER_RESOURCE: Final = 8
"""No record has this type."""
CLIENT_METRICS_RESOURCE: Final = 16
GROUP_RESOURCE: Final = 32
