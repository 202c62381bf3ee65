"""Kafka's formats on disk: batches, records, snapshots, and the small files of a log directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.formats.batch import (
        BatchView,
        batch_size,
        control_records,
        encode_batch,
        encode_control_batch,
        encode_keyed_batch,
        iter_batches,
        raw_records,
        read_batch,
        read_batches,
        to_raft_batch,
        whole_batches_size,
        with_base_offset_and_epoch,
    )
    from quorate.formats.control import (
        ControlType,
        KRaftVersionRecord,
        LeaderChangeMessage,
        SnapshotFooter,
        SnapshotFooterRecord,
        SnapshotHeader,
        SnapshotHeaderRecord,
        VotersRecord,
        control_type,
        decode_message,
        encode_message,
    )
    from quorate.formats.errors import (
        BatchError,
        FormatError,
        IncompleteBatchError,
        NewerRecordError,
        RecordError,
    )
    from quorate.formats.files import (
        QuorumState,
        decode_leader_epochs,
        decode_partition_metadata,
        decode_quorum_state,
        encode_leader_epochs,
        encode_partition_metadata,
        encode_quorum_state,
        parse_segment_name,
        parse_snapshot_name,
        segment_name,
        snapshot_name,
    )
    from quorate.formats.json_text import to_json
    from quorate.formats.meta_properties import (
        MetaProperties,
        decode_meta_properties,
        encode_meta_properties,
    )
    from quorate.formats.properties import PropertiesError, Property, load_properties
    from quorate.formats.records import (
        RECORD_TYPES,
        AbortTransactionRecord,
        AccessControlEntryRecord,
        BeginTransactionRecord,
        BrokerRegistrationChangeRecord,
        ClearElrRecord,
        ClientQuotaRecord,
        ConfigRecord,
        DelegationTokenRecord,
        EndTransactionRecord,
        FeatureLevelRecord,
        FenceBrokerRecord,
        NoOpRecord,
        PartitionChangeRecord,
        PartitionRecord,
        ProducerIdsRecord,
        RegisterBrokerRecord,
        RegisterControllerRecord,
        RemoveAccessControlEntryRecord,
        RemoveDelegationTokenRecord,
        RemoveTopicRecord,
        RemoveUserScramCredentialRecord,
        TopicRecord,
        UnfenceBrokerRecord,
        UnregisterBrokerRecord,
        UnregisterControllerRecord,
        UserScramCredentialRecord,
        ZkMigrationStateRecord,
        decode_record,
        encode_record,
    )
    from quorate.formats.snapshot import (
        BOOTSTRAP_SNAPSHOT_ID,
        Snapshot,
        SnapshotEncoder,
        SnapshotReader,
        encode_snapshot,
        read_snapshot,
    )
    from quorate.formats.versions import (
        Feature,
        FeatureError,
        MetadataVersion,
        metadata_version_of,
        parse_metadata_version,
        record_version,
        supported_features,
    )
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "batch": "BatchView batch_size control_records encode_batch encode_control_batch "
            "encode_keyed_batch iter_batches raw_records read_batch read_batches "
            "to_raft_batch whole_batches_size with_base_offset_and_epoch",
            "control": "ControlType KRaftVersionRecord LeaderChangeMessage SnapshotFooter "
            "SnapshotFooterRecord SnapshotHeader SnapshotHeaderRecord VotersRecord "
            "control_type decode_message encode_message",
            "errors": "BatchError FormatError IncompleteBatchError NewerRecordError RecordError",
            "files": "QuorumState decode_leader_epochs decode_partition_metadata "
            "decode_quorum_state encode_leader_epochs encode_partition_metadata "
            "encode_quorum_state parse_segment_name parse_snapshot_name segment_name "
            "snapshot_name",
            "json_text": "to_json",
            "meta_properties": "MetaProperties decode_meta_properties encode_meta_properties",
            "properties": "PropertiesError Property load_properties",
            "records": "AbortTransactionRecord AccessControlEntryRecord BeginTransactionRecord "
            "BrokerRegistrationChangeRecord ClearElrRecord ClientQuotaRecord "
            "ConfigRecord DelegationTokenRecord EndTransactionRecord FeatureLevelRecord "
            "FenceBrokerRecord NoOpRecord PartitionChangeRecord PartitionRecord "
            "ProducerIdsRecord RECORD_TYPES RegisterBrokerRecord "
            "RegisterControllerRecord RemoveAccessControlEntryRecord "
            "RemoveDelegationTokenRecord RemoveTopicRecord "
            "RemoveUserScramCredentialRecord TopicRecord UnfenceBrokerRecord "
            "UnregisterBrokerRecord UnregisterControllerRecord UserScramCredentialRecord "
            "ZkMigrationStateRecord "
            "decode_record encode_record",
            "snapshot": "BOOTSTRAP_SNAPSHOT_ID Snapshot SnapshotEncoder SnapshotReader "
            "encode_snapshot read_snapshot",
            "versions": "Feature FeatureError MetadataVersion metadata_version_of "
            "parse_metadata_version record_version supported_features",
        },
    )

__all__ = [
    "BOOTSTRAP_SNAPSHOT_ID",
    "RECORD_TYPES",
    "AbortTransactionRecord",
    "AccessControlEntryRecord",
    "BatchError",
    "BatchView",
    "BeginTransactionRecord",
    "BrokerRegistrationChangeRecord",
    "ClearElrRecord",
    "ClientQuotaRecord",
    "ConfigRecord",
    "ControlType",
    "DelegationTokenRecord",
    "EndTransactionRecord",
    "Feature",
    "FeatureError",
    "FeatureLevelRecord",
    "FenceBrokerRecord",
    "FormatError",
    "IncompleteBatchError",
    "KRaftVersionRecord",
    "LeaderChangeMessage",
    "MetaProperties",
    "MetadataVersion",
    "NewerRecordError",
    "NoOpRecord",
    "PartitionChangeRecord",
    "PartitionRecord",
    "ProducerIdsRecord",
    "PropertiesError",
    "Property",
    "QuorumState",
    "RecordError",
    "RegisterBrokerRecord",
    "RegisterControllerRecord",
    "RemoveAccessControlEntryRecord",
    "RemoveDelegationTokenRecord",
    "RemoveTopicRecord",
    "RemoveUserScramCredentialRecord",
    "Snapshot",
    "SnapshotEncoder",
    "SnapshotFooter",
    "SnapshotFooterRecord",
    "SnapshotHeader",
    "SnapshotHeaderRecord",
    "SnapshotReader",
    "TopicRecord",
    "UnfenceBrokerRecord",
    "UnregisterBrokerRecord",
    "UnregisterControllerRecord",
    "UserScramCredentialRecord",
    "VotersRecord",
    "ZkMigrationStateRecord",
    "batch_size",
    "control_records",
    "control_type",
    "decode_leader_epochs",
    "decode_message",
    "decode_meta_properties",
    "decode_partition_metadata",
    "decode_quorum_state",
    "decode_record",
    "encode_batch",
    "encode_control_batch",
    "encode_keyed_batch",
    "encode_leader_epochs",
    "encode_message",
    "encode_meta_properties",
    "encode_partition_metadata",
    "encode_quorum_state",
    "encode_record",
    "encode_snapshot",
    "iter_batches",
    "load_properties",
    "metadata_version_of",
    "parse_metadata_version",
    "parse_segment_name",
    "parse_snapshot_name",
    "raw_records",
    "read_batch",
    "read_batches",
    "read_snapshot",
    "record_version",
    "segment_name",
    "snapshot_name",
    "supported_features",
    "to_json",
    "to_raft_batch",
    "whole_batches_size",
    "with_base_offset_and_epoch",
]
