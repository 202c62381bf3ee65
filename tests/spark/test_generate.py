"""Generated logs can be replayed, and depend on the arguments only."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from quorate.formats.batch import iter_batches
from quorate.metadata.loader import Loader, log_batch
from quorate.spark.generate import FleetSpec, GeneratedCluster, generate, main
from spark.logs import rows_of


def test_a_generated_log_can_be_replayed_to_its_end():
    data = b"".join(data for data, _ in GeneratedCluster(7, 0, 6, 20).batches(20_000))
    loader = Loader()
    for view in iter_batches(data):
        loader.feed(log_batch(view))
    assert loader.next_offset == 20_000
    image = loader.published.image
    assert len(image.cluster.brokers) == 6 and len(image.topics.by_id) > 20
    rows = rows_of(data, ["offset", "type", "problem"])
    assert [row["offset"] for row in rows] == list(range(20_000))
    assert {row["problem"] for row in rows} == {None}
    kinds = Counter(row["type"] for row in rows)
    assert kinds["PartitionChangeRecord"] > 10_000
    assert {"LeaderChange", "NoOpRecord", "ConfigRecord", "ClientQuotaRecord"} <= kinds.keys()
    assert {"BrokerRegistrationChangeRecord", "ProducerIdsRecord", "TopicRecord"} <= kinds.keys()


@pytest.mark.parametrize("records", [3, 4, 5, 30, 1000])
def test_the_number_of_records_is_exact(records: int):
    batches = [data for data, _ in GeneratedCluster(1, 0, 4, 5).batches(records)]
    assert sum(view.count for view in iter_batches(b"".join(batches))) == records


def test_the_arguments_determine_the_bytes(tmp_path: Path):
    fleet = FleetSpec(clusters=3, records=2000, seed=5, replicas=2, segment_bytes=20_000)
    one = generate(tmp_path / "one", fleet)
    assert generate(tmp_path / "two", fleet, jobs=2) == one
    files = sorted(path for path in (tmp_path / "one").rglob("*") if path.is_file())
    for path in files:
        assert (
            path.read_bytes()
            == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()
        )
    logs = [path for path in files if path.suffix == ".log"]
    assert (one.files, one.records) == (len(logs), 12_000)
    assert one.size == sum(path.stat().st_size for path in logs)
    assert len(logs) > 6


def test_another_seed_gives_another_cluster():
    first, second = (
        b"".join(data for data, _ in GeneratedCluster(seed, 0, 4, 5).batches(500))
        for seed in (1, 2)
    )
    assert first != second


def test_the_command_prints_what_it_wrote(tmp_path: Path):
    found = CliRunner().invoke(main, [str(tmp_path / "fleet"), "--records", "500"])
    assert found.exit_code == 0
    assert found.output.startswith("1 file, 500 records, ")
    bad = CliRunner().invoke(main, [str(tmp_path / "fleet"), "--records", "0"])
    assert bad.exit_code == 2 and "--records" in bad.output
