"""Requests in one line: what a test says of them, and defaults that make the rest valid."""

from typing import Any

from controller.cluster import directory, incarnation
from quorate.formats.versions import supported_features
from quorate.wire import messages as m


def create_topics(names=("b",), configs=(), assignments=()):
    cls = m.CreateTopicsRequest.CreatableTopic
    topic: dict[str, Any] = {
        "num_partitions": -1,
        "replication_factor": -1,
        "configs": [cls.CreatableTopicConfig(name=n, value=v) for n, v in configs],
        "assignments": [
            cls.CreatableReplicaAssignment(partition_index=i, broker_ids=list(ids))
            for i, ids in assignments
        ],
    }
    return m.CreateTopicsRequest(topics=[cls(name=name, **topic) for name in names])


def delete_topics(*topics):
    state = m.DeleteTopicsRequest.DeleteTopicState
    return m.DeleteTopicsRequest(topics=[state(name=n, topic_id=i) for n, i in topics])


def create_partitions(count, *names, assignments=None):
    cls = m.CreatePartitionsRequest.CreatePartitionsTopic
    given = assignments and [
        cls.CreatePartitionsAssignment(broker_ids=list(ids)) for ids in assignments
    ]
    topics = [cls(name=name, count=count, assignments=given) for name in names]
    return m.CreatePartitionsRequest(topics=topics)


def reassign(*wanted):
    cls = m.AlterPartitionReassignmentsRequest.ReassignableTopic
    partitions = [
        cls.ReassignablePartition(partition_index=i, replicas=ids and list(ids))
        for i, ids in wanted
    ]
    return m.AlterPartitionReassignmentsRequest(topics=[cls(name="a", partitions=partitions)])


def features(cls, *more):
    ranges = [(name, *levels) for name, levels in supported_features().items()]
    return [
        cls(name=name, min_supported_version=low, max_supported_version=high)
        for name, low, high in (*ranges, *more)
    ]


def register(*more, listeners=("A",), numbers=(0,)):
    cls = m.BrokerRegistrationRequest
    return cls(
        broker_id=4,
        cluster_id="cluster",
        incarnation_id=incarnation(4),
        listeners=[cls.Listener(name=n, host=f"h{i}", port=9) for i, n in enumerate(listeners)],
        features=features(cls.Feature, *more),
        log_dirs=[directory(4, number) for number in numbers],
    )


def register_controller(*more, listeners=("A",)):
    cls = m.ControllerRegistrationRequest
    return cls(
        controller_id=3001,
        listeners=[cls.Listener(name=n, host=f"h{i}", port=9) for i, n in enumerate(listeners)],
        features=features(cls.Feature, *more),
    )


def incremental(*resources):
    cls = m.IncrementalAlterConfigsRequest.AlterConfigsResource
    return m.IncrementalAlterConfigsRequest(
        resources=[
            cls(
                resource_type=kind,
                resource_name=name,
                configs=[
                    cls.AlterableConfig(name=n, config_operation=o, value=v) for n, o, v in changes
                ],
            )
            for kind, name, changes in resources
        ]
    )


def replace(*resources):
    cls = m.AlterConfigsRequest.AlterConfigsResource
    return m.AlterConfigsRequest(
        resources=[
            cls(
                resource_type=kind,
                resource_name=name,
                configs=[cls.AlterableConfig(name=n, value=v) for n, v in configs],
            )
            for kind, name, configs in resources
        ]
    )


def quotas(*entries):
    cls = m.AlterClientQuotasRequest.EntryData
    return m.AlterClientQuotasRequest(
        entries=[
            cls(
                entity=[cls.EntityData(entity_type=k, entity_name=n) for k, n in entity],
                ops=[cls.OpData(key=k, value=v) for k, v in ops],
            )
            for entity, ops in entries
        ]
    )


def create_acls(count):
    cls = m.CreateAclsRequest.AclCreation
    fields: dict[str, Any] = {
        "resource_type": 2,
        "resource_name": "a",
        "operation": 3,
        "permission_type": 3,
    }
    return m.CreateAclsRequest(creations=[cls(principal="User:x", host="*", **fields)] * count)


def scram(upsertions=(), deletions=()):
    cls = m.AlterUserScramCredentialsRequest
    credential: dict[str, Any] = {
        "iterations": 4096,
        "salt": b"salt",
        "salted_password": b"password",
    }
    return cls(
        upsertions=[
            cls.ScramCredentialUpsertion(name=n, mechanism=k, **credential) for n, k in upsertions
        ],
        deletions=[cls.ScramCredentialDeletion(name=n, mechanism=k) for n, k in deletions],
    )


def create_token():
    cls = m.CreateDelegationTokenRequest
    renewer = cls.CreatableRenewers(principal_type="User", principal_name="r")
    return cls(renewers=[renewer, renewer], max_lifetime_ms=-1)


def update_features(*levels):
    cls = m.UpdateFeaturesRequest.FeatureUpdateKey
    updates = [cls(feature=name, max_version_level=level) for name, level in levels]
    return m.UpdateFeaturesRequest(feature_updates=updates)
