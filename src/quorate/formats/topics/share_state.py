"""The records of `__share_group_state`.

Declared as Kafka 4.4.0's `share-coordinator/src/main/resources/common/message` says.
"""

from __future__ import annotations

from quorate.base.ids import Uuid
from quorate.wire.schema import Message, Struct, array, int8, int16, int32, int64, string, uuid


class StateBatch(Struct):
    first_offset: int = int64()
    last_offset: int = int64()
    delivery_state: int = int8()
    delivery_count: int = int16()


class ShareSnapshotKey(Message, kind="coordinator-key", key=0, versions=(0, 0), flexible=None):
    group_id: str = string()
    topic_id: Uuid = uuid()
    partition: int = int32()


class ShareSnapshotValue(Message, kind="coordinator-value", key=0, versions=(0, 0), flexible=0):
    snapshot_epoch: int = int32()
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(tag=0, default=-1)
    create_timestamp: int = int64()
    write_timestamp: int = int64()
    state_batches: list[StateBatch] = array(StateBatch)


class ShareUpdateKey(Message, kind="coordinator-key", key=1, versions=(0, 0), flexible=None):
    group_id: str = string()
    topic_id: Uuid = uuid()
    partition: int = int32()


class ShareUpdateValue(Message, kind="coordinator-value", key=1, versions=(0, 0), flexible=0):
    snapshot_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(tag=0, default=-1)
    state_batches: list[StateBatch] = array(StateBatch)
