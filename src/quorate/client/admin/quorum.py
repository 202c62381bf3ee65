"""Calls about the quorum, its voters and the feature levels of the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import METADATA_TOPIC, Listener, ReplicaKey
from quorate.client.admin.routing import Calls
from quorate.client.results import (
    FeatureMetadata,
    QuorumInfo,
    RequestFailedError,
    check,
    failure_of,
    quorum_of,
)
from quorate.wire.messages.quorum import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)

UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3


class QuorumCalls(Calls):
    """describeMetadataQuorum, describeFeatures, addRaftVoter, removeRaftVoter, updateFeatures."""

    async def describe_quorum(self) -> QuorumInfo:
        """Describe the quorum as its leader sees it."""
        request = DescribeQuorumRequest(
            topics=[
                DescribeQuorumRequest.TopicData(
                    topic_name=METADATA_TOPIC,
                    partitions=[DescribeQuorumRequest.TopicData.PartitionData(partition_index=0)],
                )
            ]
        )

        async def ask() -> QuorumInfo:
            return quorum_of(await self.router.ask_active(request, DescribeQuorumResponse))

        return await self.router.retry(ask)

    async def describe_features(self, node_id: int | None = None) -> FeatureMetadata:
        """Supported levels of a node (default: any), and the finalized levels.

        Raises ClientError when the cluster has no node of that id.
        """

        async def ask() -> FeatureMetadata:
            router = self.router
            node = await (router.active() if node_id is None else router.node(node_id))
            versions = node.features
            return FeatureMetadata(
                {f.name: (f.min_version, f.max_version) for f in versions.supported_features},
                {f.name: f.max_version_level for f in versions.finalized_features},
                versions.finalized_features_epoch,
            )

        return await self.router.retry(ask)

    async def add_voter(
        self, voter: ReplicaKey, listeners: Sequence[Listener], cluster_id: str | None = None
    ) -> None:
        """Make an observer a voter; returns when the change is committed.

        Raises RequestFailedError with the leader's reason.
        """
        request = AddRaftVoterRequest(
            cluster_id=cluster_id,
            timeout_ms=self.router.config.request_timeout_ms,
            voter_id=voter.id,
            voter_directory_id=voter.directory_id,
            listeners=[
                AddRaftVoterRequest.Listener(name=name, host=host, port=port)
                for name, host, port in listeners
            ],
        )

        async def send() -> None:
            answer = await self.router.ask_active(request, AddRaftVoterResponse)
            check(answer.error_code, answer.error_message)

        async def is_done(refusal: ErrorCode) -> bool:
            if refusal != ErrorCode.DUPLICATE_VOTER:
                return False
            quorum = await self.describe_quorum()
            return any(each.key == voter for each in quorum.voters)

        await self.router.change(send, is_done)

    async def remove_voter(self, voter: ReplicaKey, cluster_id: str | None = None) -> None:
        """Make a voter an observer; returns when the change is committed.

        Raises RequestFailedError with the leader's reason.
        """
        request = RemoveRaftVoterRequest(
            cluster_id=cluster_id, voter_id=voter.id, voter_directory_id=voter.directory_id
        )

        async def send() -> None:
            answer = await self.router.ask_active(request, RemoveRaftVoterResponse)
            check(answer.error_code, answer.error_message)

        async def is_done(refusal: ErrorCode) -> bool:
            return refusal == ErrorCode.VOTER_NOT_FOUND

        await self.router.change(send, is_done)

    async def update_features(
        self,
        levels: Mapping[str, int],
        upgrade_type: int = UPGRADE,
        validate_only: bool = False,
    ) -> Mapping[str, RequestFailedError | None]:
        """Set feature levels; returns the error of each feature, None where it succeeded.

        `upgrade_type` is UPGRADE, SAFE_DOWNGRADE or UNSAFE_DOWNGRADE. Raises RequestFailedError when
        the controller refuses the whole request.
        """
        from quorate.wire.messages.quotas import UpdateFeaturesRequest, UpdateFeaturesResponse

        request = UpdateFeaturesRequest(
            timeout_ms=self.router.config.request_timeout_ms,
            feature_updates=[
                UpdateFeaturesRequest.FeatureUpdateKey(
                    feature=name, max_version_level=level, upgrade_type=upgrade_type
                )
                for name, level in levels.items()
            ],
            validate_only=validate_only,
        )

        async def send() -> Mapping[str, RequestFailedError | None]:
            lowest = 1 if validate_only else 0
            answer = await self.router.ask_active(request, UpdateFeaturesResponse, lowest)
            check(answer.error_code, answer.error_message)
            outcome: dict[str, RequestFailedError | None] = dict.fromkeys(levels)
            for result in answer.results:
                outcome[result.feature] = failure_of(result.error_code, result.error_message)
            return outcome

        return await self.router.retry(send)
