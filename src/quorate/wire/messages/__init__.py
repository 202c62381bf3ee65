"""Kafka's messages as classes, one module per family; any of them can be imported from here.

A family is only loaded when one of its messages is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from quorate.wire.registry import family_of

if TYPE_CHECKING:
    from quorate.wire.messages.acls import (
        CreateAclsRequest as CreateAclsRequest,
    )
    from quorate.wire.messages.acls import (
        CreateAclsResponse as CreateAclsResponse,
    )
    from quorate.wire.messages.acls import (
        DeleteAclsRequest as DeleteAclsRequest,
    )
    from quorate.wire.messages.acls import (
        DeleteAclsResponse as DeleteAclsResponse,
    )
    from quorate.wire.messages.acls import (
        DescribeAclsRequest as DescribeAclsRequest,
    )
    from quorate.wire.messages.acls import (
        DescribeAclsResponse as DescribeAclsResponse,
    )
    from quorate.wire.messages.cluster import (
        ApiVersionsRequest as ApiVersionsRequest,
    )
    from quorate.wire.messages.cluster import (
        ApiVersionsResponse as ApiVersionsResponse,
    )
    from quorate.wire.messages.cluster import (
        DescribeClusterRequest as DescribeClusterRequest,
    )
    from quorate.wire.messages.cluster import (
        DescribeClusterResponse as DescribeClusterResponse,
    )
    from quorate.wire.messages.cluster import (
        MetadataRequest as MetadataRequest,
    )
    from quorate.wire.messages.cluster import (
        MetadataResponse as MetadataResponse,
    )
    from quorate.wire.messages.configs import (
        AlterConfigsRequest as AlterConfigsRequest,
    )
    from quorate.wire.messages.configs import (
        AlterConfigsResponse as AlterConfigsResponse,
    )
    from quorate.wire.messages.configs import (
        DescribeConfigsRequest as DescribeConfigsRequest,
    )
    from quorate.wire.messages.configs import (
        DescribeConfigsResponse as DescribeConfigsResponse,
    )
    from quorate.wire.messages.configs import (
        IncrementalAlterConfigsRequest as IncrementalAlterConfigsRequest,
    )
    from quorate.wire.messages.configs import (
        IncrementalAlterConfigsResponse as IncrementalAlterConfigsResponse,
    )
    from quorate.wire.messages.election import (
        BeginQuorumEpochRequest as BeginQuorumEpochRequest,
    )
    from quorate.wire.messages.election import (
        BeginQuorumEpochResponse as BeginQuorumEpochResponse,
    )
    from quorate.wire.messages.election import (
        EndQuorumEpochRequest as EndQuorumEpochRequest,
    )
    from quorate.wire.messages.election import (
        EndQuorumEpochResponse as EndQuorumEpochResponse,
    )
    from quorate.wire.messages.election import (
        VoteRequest as VoteRequest,
    )
    from quorate.wire.messages.election import (
        VoteResponse as VoteResponse,
    )
    from quorate.wire.messages.envelope import (
        DefaultPrincipalData as DefaultPrincipalData,
    )
    from quorate.wire.messages.envelope import (
        EnvelopeRequest as EnvelopeRequest,
    )
    from quorate.wire.messages.envelope import (
        EnvelopeResponse as EnvelopeResponse,
    )
    from quorate.wire.messages.fetch import (
        FetchRequest as FetchRequest,
    )
    from quorate.wire.messages.fetch import (
        FetchResponse as FetchResponse,
    )
    from quorate.wire.messages.fetch import (
        FetchSnapshotRequest as FetchSnapshotRequest,
    )
    from quorate.wire.messages.fetch import (
        FetchSnapshotResponse as FetchSnapshotResponse,
    )
    from quorate.wire.messages.headers import (
        RequestHeader as RequestHeader,
    )
    from quorate.wire.messages.headers import (
        ResponseHeader as ResponseHeader,
    )
    from quorate.wire.messages.nodes import (
        BrokerHeartbeatRequest as BrokerHeartbeatRequest,
    )
    from quorate.wire.messages.nodes import (
        BrokerHeartbeatResponse as BrokerHeartbeatResponse,
    )
    from quorate.wire.messages.nodes import (
        BrokerRegistrationRequest as BrokerRegistrationRequest,
    )
    from quorate.wire.messages.nodes import (
        BrokerRegistrationResponse as BrokerRegistrationResponse,
    )
    from quorate.wire.messages.nodes import (
        ControllerRegistrationRequest as ControllerRegistrationRequest,
    )
    from quorate.wire.messages.nodes import (
        ControllerRegistrationResponse as ControllerRegistrationResponse,
    )
    from quorate.wire.messages.nodes import (
        UnregisterBrokerRequest as UnregisterBrokerRequest,
    )
    from quorate.wire.messages.nodes import (
        UnregisterBrokerResponse as UnregisterBrokerResponse,
    )
    from quorate.wire.messages.partitions import (
        AllocateProducerIdsRequest as AllocateProducerIdsRequest,
    )
    from quorate.wire.messages.partitions import (
        AllocateProducerIdsResponse as AllocateProducerIdsResponse,
    )
    from quorate.wire.messages.partitions import (
        AlterPartitionReassignmentsRequest as AlterPartitionReassignmentsRequest,
    )
    from quorate.wire.messages.partitions import (
        AlterPartitionReassignmentsResponse as AlterPartitionReassignmentsResponse,
    )
    from quorate.wire.messages.partitions import (
        AlterPartitionRequest as AlterPartitionRequest,
    )
    from quorate.wire.messages.partitions import (
        AlterPartitionResponse as AlterPartitionResponse,
    )
    from quorate.wire.messages.partitions import (
        AssignReplicasToDirsRequest as AssignReplicasToDirsRequest,
    )
    from quorate.wire.messages.partitions import (
        AssignReplicasToDirsResponse as AssignReplicasToDirsResponse,
    )
    from quorate.wire.messages.partitions import (
        ElectLeadersRequest as ElectLeadersRequest,
    )
    from quorate.wire.messages.partitions import (
        ElectLeadersResponse as ElectLeadersResponse,
    )
    from quorate.wire.messages.partitions import (
        ListPartitionReassignmentsRequest as ListPartitionReassignmentsRequest,
    )
    from quorate.wire.messages.partitions import (
        ListPartitionReassignmentsResponse as ListPartitionReassignmentsResponse,
    )
    from quorate.wire.messages.quorum import (
        AddRaftVoterRequest as AddRaftVoterRequest,
    )
    from quorate.wire.messages.quorum import (
        AddRaftVoterResponse as AddRaftVoterResponse,
    )
    from quorate.wire.messages.quorum import (
        DescribeQuorumRequest as DescribeQuorumRequest,
    )
    from quorate.wire.messages.quorum import (
        DescribeQuorumResponse as DescribeQuorumResponse,
    )
    from quorate.wire.messages.quorum import (
        RemoveRaftVoterRequest as RemoveRaftVoterRequest,
    )
    from quorate.wire.messages.quorum import (
        RemoveRaftVoterResponse as RemoveRaftVoterResponse,
    )
    from quorate.wire.messages.quorum import (
        UpdateRaftVoterRequest as UpdateRaftVoterRequest,
    )
    from quorate.wire.messages.quorum import (
        UpdateRaftVoterResponse as UpdateRaftVoterResponse,
    )
    from quorate.wire.messages.quotas import (
        AlterClientQuotasRequest as AlterClientQuotasRequest,
    )
    from quorate.wire.messages.quotas import (
        AlterClientQuotasResponse as AlterClientQuotasResponse,
    )
    from quorate.wire.messages.quotas import (
        DescribeClientQuotasRequest as DescribeClientQuotasRequest,
    )
    from quorate.wire.messages.quotas import (
        DescribeClientQuotasResponse as DescribeClientQuotasResponse,
    )
    from quorate.wire.messages.quotas import (
        UpdateFeaturesRequest as UpdateFeaturesRequest,
    )
    from quorate.wire.messages.quotas import (
        UpdateFeaturesResponse as UpdateFeaturesResponse,
    )
    from quorate.wire.messages.security import (
        AlterUserScramCredentialsRequest as AlterUserScramCredentialsRequest,
    )
    from quorate.wire.messages.security import (
        AlterUserScramCredentialsResponse as AlterUserScramCredentialsResponse,
    )
    from quorate.wire.messages.security import (
        CreateDelegationTokenRequest as CreateDelegationTokenRequest,
    )
    from quorate.wire.messages.security import (
        CreateDelegationTokenResponse as CreateDelegationTokenResponse,
    )
    from quorate.wire.messages.security import (
        DescribeDelegationTokenRequest as DescribeDelegationTokenRequest,
    )
    from quorate.wire.messages.security import (
        DescribeDelegationTokenResponse as DescribeDelegationTokenResponse,
    )
    from quorate.wire.messages.security import (
        DescribeUserScramCredentialsRequest as DescribeUserScramCredentialsRequest,
    )
    from quorate.wire.messages.security import (
        DescribeUserScramCredentialsResponse as DescribeUserScramCredentialsResponse,
    )
    from quorate.wire.messages.security import (
        ExpireDelegationTokenRequest as ExpireDelegationTokenRequest,
    )
    from quorate.wire.messages.security import (
        ExpireDelegationTokenResponse as ExpireDelegationTokenResponse,
    )
    from quorate.wire.messages.security import (
        RenewDelegationTokenRequest as RenewDelegationTokenRequest,
    )
    from quorate.wire.messages.security import (
        RenewDelegationTokenResponse as RenewDelegationTokenResponse,
    )
    from quorate.wire.messages.security import (
        SaslAuthenticateRequest as SaslAuthenticateRequest,
    )
    from quorate.wire.messages.security import (
        SaslAuthenticateResponse as SaslAuthenticateResponse,
    )
    from quorate.wire.messages.security import (
        SaslHandshakeRequest as SaslHandshakeRequest,
    )
    from quorate.wire.messages.security import (
        SaslHandshakeResponse as SaslHandshakeResponse,
    )
    from quorate.wire.messages.topics import (
        CreatePartitionsRequest as CreatePartitionsRequest,
    )
    from quorate.wire.messages.topics import (
        CreatePartitionsResponse as CreatePartitionsResponse,
    )
    from quorate.wire.messages.topics import (
        CreateTopicsRequest as CreateTopicsRequest,
    )
    from quorate.wire.messages.topics import (
        CreateTopicsResponse as CreateTopicsResponse,
    )
    from quorate.wire.messages.topics import (
        DeleteTopicsRequest as DeleteTopicsRequest,
    )
    from quorate.wire.messages.topics import (
        DeleteTopicsResponse as DeleteTopicsResponse,
    )


def __getattr__(name: str) -> Any:
    family = family_of(name)
    if family is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message = getattr(import_module(f"{__name__}.{family}"), name)
    globals()[name] = message
    return message
