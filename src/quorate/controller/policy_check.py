"""Ask an operator's policy (`ReplicationControlManager.maybeCheckCreateTopicPolicy`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from quorate.base.errors import ErrorCode
from quorate.controller.policies import PolicyViolationError
from quorate.controller.result import ApiError

S = TypeVar("S")


def ask(policy: Callable[[S], Any] | None, subject: S) -> None:
    """Ask the policy, if there is one. Raises ApiError where it refuses or fails."""
    if policy is None:
        return
    try:
        policy(subject)
    except PolicyViolationError as refusal:
        raise ApiError(ErrorCode.POLICY_VIOLATION, str(refusal)) from None
    except Exception as error:
        # Nothing is written, so the controller's state is right. The client does not read the reason.
        raise ApiError.of(ErrorCode.UNKNOWN_SERVER_ERROR) from error
