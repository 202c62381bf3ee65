"""The cost of a change follows its size: slices that it does not touch keep their files."""

from __future__ import annotations

import json
from pathlib import Path

from quorate.base.ids import Uuid
from quorate.formats.batch import encode_batch
from quorate.formats.files import segment_name
from quorate.formats.records import (
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
    encode_record,
)
from quorate.spark.tables import state
from quorate.spark.tables.ingest import ingest
from quorate.spark.tables.warehouse import open_store
from spark.logs import START_MS, log_directory

TOPICS, PARTITIONS = 40, 5
CHANGED = 3
SLICE_ROWS = 16


def topic_id(number: int) -> Uuid:
    return Uuid((number + 1).to_bytes(16, "big"))


def births() -> list[bytes]:
    found = []
    for number in range(TOPICS):
        found.append(
            encode_record(TopicRecord(name=f"topic-{number}", topic_id=topic_id(number)), 0)
        )
        for partition in range(PARTITIONS):
            record = PartitionRecord(
                partition_id=partition, topic_id=topic_id(number), replicas=[1, 2], isr=[1, 2]
            )
            found.append(encode_record(record, 0))
    return found


def shrink(number: int) -> bytes:
    record = PartitionChangeRecord(partition_id=0, topic_id=topic_id(number), isr=[1])
    return encode_record(record, 0)


def test_only_the_slices_of_changed_topics_are_rewritten(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(state, "SLICE_ROWS", SLICE_ROWS)
    home = str(tmp_path / "tables")
    values = births()
    log = log_directory(tmp_path / "log", {0: encode_batch(0, 1, START_MS, values)})
    ingest(spark, [str(log)], home)
    before = {file.path for file in open_store(home).files("partitions")}
    assert len(before) > 2 * CHANGED
    with (log / "__cluster_metadata-0" / segment_name(0)).open("ab") as out:
        batch = [shrink(number) for number in range(CHANGED)]
        out.write(encode_batch(len(values), 1, START_MS + 1, batch))
    ingest(spark, [str(log)], home)
    plan = json.loads(max((Path(home) / "control/_plans").iterdir()).read_text())
    assert set(plan["removes"]) == {"partitions", "clusters", "epochs"}
    assert 1 <= len(plan["removes"]["partitions"]) <= CHANGED
    assert set(plan["removes"]["partitions"]) <= before
    written = plan["adds"]["partitions"]
    assert len(written) <= 2 * CHANGED
    assert sum(file["rows"] for file in written) <= CHANGED * 4 * SLICE_ROWS
