"""What a topic may be called (`org.apache.kafka.common.internals.Topic`)."""

from __future__ import annotations

from typing import Final

from quorate.base.errors import ErrorCode
from quorate.controller.result import ApiError

_MAX_NAME: Final = 249
_LEGAL: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def name_problem(name: str) -> str | None:
    """Why the name is no legal topic name; None: it is one (`Topic.validate`)."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > _MAX_NAME:
        return f"the length of '{name}' is longer than the max allowed length {_MAX_NAME}"
    if not _LEGAL.issuperset(name):
        return (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' "
            "and '-'"
        )
    return None


def check_topic_name(name: str) -> None:
    """Check the name of a topic. Raises ApiError where it is not valid."""
    problem = name_problem(name)
    if problem is not None:
        text = f"Topic name is invalid: {problem}"
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, text)
