"""Configs that a snapshot has of topics that it has not: left out of gold, told in silver.

Kafka 4.3.1 leaves them in the snapshots of some nodes and not of others (docs/known-bugs.md); the
log has removed them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.metadata.image import TOPIC_RESOURCE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ORPHANED: Final = "!orphaned-config"
"""The type of a step with such a ConfigRecord."""
LEFT_OUT: Final = "config left out"
WHY: Final = "the snapshot has no topic of this name"


def marked(steps: DataFrame) -> DataFrame:
    """The steps of snapshots, one of a cluster at an effective offset, with such configs marked.

    They are told as of the snapshot's last offset: as in all of it, theirs is none of the log.
    """
    from pyspark.sql import functions as F

    snapshot = ["cluster_id", "effective_offset", "of_topic"]
    resource = F.get_json_object("record", "$.resourceType").cast("int")
    of_topic = F.when(
        (F.col("type") == "ConfigRecord") & (resource == TOPIC_RESOURCE),
        F.get_json_object("record", "$.resourceName"),
    )
    known = steps.where("type = 'TopicRecord'").withColumn("of_topic", F.col("topic_name"))
    steps = steps.withColumn("of_topic", of_topic)
    configs = steps.where("of_topic IS NOT NULL")
    orphaned = (
        configs.join(known.select(snapshot), snapshot, "left_anti")
        .withColumn("type", F.lit(ORPHANED))
        .withColumn("offset", F.col("effective_offset"))
    )
    kept = configs.join(known.select(snapshot), snapshot, "left_semi")
    others = steps.where("of_topic IS NULL")
    return others.unionByName(kept).unionByName(orphaned).drop("of_topic")
