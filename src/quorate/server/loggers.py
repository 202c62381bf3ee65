"""The loggers of this process, for clients that change their levels."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from quorate.node.loggers import ROOT_LOGGER
from quorate.server.logs import LOGGERS

_TO_PYTHON: Final = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": logging.DEBUG // 2,
}
"""Kafka's levels, the gravest first."""


class PythonLoggers:
    """Python's loggers that `logs.configure` sets up, and the root logger."""

    def levels(self) -> Mapping[str, str]:
        found = {logger.name: logger for logger in (*LOGGERS, logging.getLogger())}
        return {name: _kafka_level(one.getEffectiveLevel()) for name, one in found.items()}

    def set_level(self, name: str, level: str) -> None:
        _logger(name).setLevel(_TO_PYTHON[level])

    def unset_level(self, name: str) -> None:
        _logger(name).setLevel(logging.NOTSET)


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT_LOGGER else name)


def _kafka_level(level: int) -> str:
    """The gravest of Kafka's levels at which such a logger still logs nothing graver."""
    return next((name for name, number in _TO_PYTHON.items() if level >= number), "TRACE")
