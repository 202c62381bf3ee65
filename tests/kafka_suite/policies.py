"""What the policies of Kafka's tests do, for our controllers (`quorate.create.topic.policy`)."""

from quorate.controller.policies import NewTopic, PolicyViolationError


def five_partitions_or_two_replicas(topic: NewTopic) -> None:
    """`CreateTopicsRequestWithPolicyTest.Policy`."""
    if topic.name.startswith("__"):
        return
    if topic.assignments is not None:
        assert topic.partitions is None and topic.replication_factor is None
        for partition, replicas in topic.assignments.items():
            if len(replicas) < 2:
                raise PolicyViolationError(
                    "Topic partitions should have at least 2 replicas, received "
                    f"{len(replicas)} for partition {partition}"
                )
        return
    assert topic.partitions is not None and topic.replication_factor is not None
    if topic.partitions < 5:
        raise PolicyViolationError(
            f"Topics should have at least 5 partitions, received {topic.partitions}"
        )
    if topic.partitions <= 10:
        assert not topic.configs
    elif int(topic.configs.get("retention.ms", 5001)) > 5000:
        raise PolicyViolationError("RetentionMs should be less than 5000ms if partitions > 10")
