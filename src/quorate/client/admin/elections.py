"""Elections of partition leaders (KIP-183, KIP-460)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum

from quorate.client.admin.parts import in_parts, merged, parts_of, text_bytes
from quorate.client.admin.reassignments import PartitionName, by_topic
from quorate.client.admin.routing import Calls, item_failure
from quorate.client.results import RequestFailedError, check


class ElectionType(IntEnum):
    """`ElectionType`."""

    PREFERRED = 0
    UNCLEAN = 1


class ElectionCalls(Calls):
    """electLeaders."""

    async def elect_leaders(
        self, kind: ElectionType, partitions: Iterable[PartitionName] | None = None
    ) -> Mapping[PartitionName, RequestFailedError | None]:
        """Elect leaders of these partitions (None: of all); returns when the change is committed.

        The result has the error of each partition. For all partitions it leaves out those that need
        no election.
        """
        from quorate.wire.messages.partitions import ElectLeadersRequest, ElectLeadersResponse

        lowest = 0 if kind is ElectionType.PREFERRED else 1

        async def send(
            part: Sequence[PartitionName] | None,
        ) -> dict[PartitionName, RequestFailedError | None]:
            topics = None
            if part is not None:
                topics = [
                    ElectLeadersRequest.TopicPartitions(topic=topic, partitions=indexes)
                    for topic, indexes in by_topic(part).items()
                ]
            request = ElectLeadersRequest(
                election_type=kind,
                topic_partitions=topics,
                timeout_ms=self.router.config.request_timeout_ms,
            )
            answer = await self.router.ask_active(request, ElectLeadersResponse, lowest)
            check(answer.error_code, None)
            return {
                PartitionName(topic.topic, each.partition_id): item_failure(
                    each.error_code, each.error_message
                )
                for topic in answer.replica_election_results
                for each in topic.partition_result
            }

        if partitions is None:
            return await self.router.retry(lambda: send(None))
        parts = parts_of(partitions, lambda each: text_bytes(each.topic))
        return merged(await in_parts(self.router, parts, send))
