"""Log lines on stderr: for people by default, one JSON object a line on request."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Final, Literal

LOG: Final = logging.getLogger("quorate")

Format = Literal["human", "json"]


class _Human(logging.Formatter):
    """`2026-11-21 07:48:10,123 INFO node 1: what happened`."""

    def __init__(self, node_id: int) -> None:
        super().__init__(f"%(asctime)s %(levelname)s node {node_id}: %(message)s")


class _Json(logging.Formatter):
    def __init__(self, node_id: int) -> None:
        super().__init__()
        self._node_id = node_id

    def format(self, record: logging.LogRecord) -> str:
        facts: dict[str, object] = {
            "time": self._time(record),
            "level": record.levelname,
            "node": self._node_id,
            "message": record.getMessage(),
        }
        if record.exc_info:
            facts["exception"] = self.formatException(record.exc_info)
        return json.dumps(facts, ensure_ascii=False)

    @staticmethod
    def _time(record: logging.LogRecord) -> str:
        whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        return f"{whole}.{int(record.msecs):03d}Z"


def configure(node_id: int, style: Format = "human", level: str = "INFO") -> None:
    """Send everything at `level` and above to stderr, in `style`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json(node_id) if style == "json" else _Human(node_id))
    for logger in (LOG, logging.getLogger("asyncio")):
        logger.handlers[:] = [handler]
        logger.propagate = False
    LOG.setLevel(level)
