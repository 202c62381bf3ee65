"""What every layer uses: ids, errors, checks, notes.

`check` and `frozen` are also names of modules: import them from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.base.atomic_write import write_atomically
    from quorate.base.errors import ErrorCode, InvariantError, QuorateError
    from quorate.base.ids import (
        METADATA_TOPIC,
        METADATA_TOPIC_ID,
        ZERO_UUID,
        Address,
        LeaderAndEpoch,
        Listener,
        Listeners,
        OffsetAndEpoch,
        ReplicaKey,
        Uuid,
        uuid_from_text,
        uuid_to_text,
    )
    from quorate.base.notes import Fault, Warn
    from quorate.base.plural import pluralize
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "atomic_write": "write_atomically",
            "errors": "ErrorCode InvariantError QuorateError",
            "ids": "Address LeaderAndEpoch Listener Listeners METADATA_TOPIC METADATA_TOPIC_ID "
            "OffsetAndEpoch ReplicaKey Uuid ZERO_UUID uuid_from_text uuid_to_text",
            "notes": "Fault Warn",
            "plural": "pluralize",
        },
    )

__all__ = [
    "METADATA_TOPIC",
    "METADATA_TOPIC_ID",
    "ZERO_UUID",
    "Address",
    "ErrorCode",
    "Fault",
    "InvariantError",
    "LeaderAndEpoch",
    "Listener",
    "Listeners",
    "OffsetAndEpoch",
    "QuorateError",
    "ReplicaKey",
    "Uuid",
    "Warn",
    "pluralize",
    "uuid_from_text",
    "uuid_to_text",
    "write_atomically",
]
