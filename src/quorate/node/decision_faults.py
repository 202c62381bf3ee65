"""What follows from an unexpected exception of a decision.

Source: `EventHandlerExceptionInfo.fromInternal`.
"""

from __future__ import annotations

from quorate.controller.result import OnException
from quorate.node.queued_write import QueuedWrite
from quorate.node.record_writer import UnwritableRecordError
from quorate.wire.errors import EncodeError


def after_fault(write: QueuedWrite, error: Exception) -> tuple[bool, str]:
    """Whether the controller resigns, and the words for the log. Raises the error where it ends the node.

    A record that no node can apply ends the node, as Kafka's fatal fault does. But a client must not
    end a node or a leadership: while the head is unchanged, its request is refused.
    """
    on_exception = write.operation.on_exception
    is_of_client = write.call is not None
    may_refuse = is_of_client and isinstance(error, EncodeError)
    if isinstance(error, UnwritableRecordError):
        may_refuse = is_of_client and error.is_head_unchanged
        if not may_refuse:
            raise error
    if on_exception is OnException.END_NODE:
        raise error
    if may_refuse and not write.token:
        return False, "the request is refused"
    is_to_resign = on_exception is OnException.RESIGN
    return is_to_resign, "resigning" if is_to_resign else "it is tried again later"
