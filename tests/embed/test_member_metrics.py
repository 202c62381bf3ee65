"""The metrics and health pages of a member."""

import asyncio

import pytest
from prometheus_client.parser import text_string_to_metric_families

from embed.test_guarantees import Journal, free_address, run, until
from quorate.base.errors import QuorateError
from quorate.embed import Member, create


async def ask(address, path):
    """Status line and text of a page."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    head, _, text = answer.partition("\r\n\r\n")
    return head.partition("\r\n")[0], text


def samples(text):
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_member_serves_metrics_and_health(tmp_path):
    async def scenario():
        listen, pages = free_address(), free_address()
        create(tmp_path / "1", 1, "metrics", {1: listen})
        settings = {"metadata.log.max.record.bytes.between.snapshots": "200"}
        async with await Member.start(
            tmp_path / "1", Journal(), listen, metrics=pages, settings=settings
        ) as member:
            await until(lambda: member.leads)
            for _ in range(10):
                await member.propose(b"x" * 50)
            assert (await ask(pages, "/healthz"))[0].endswith("200 OK")
            assert (await ask(pages, "/readyz"))[0].endswith("200 OK")
            status, text = await ask(pages, "/metrics")
            assert status.endswith("200 OK")
            metrics = samples(text)
            assert metrics["kafka_server_raft_metrics_current_state", "leader"] == 1
            assert metrics["kafka_server_raft_metrics_append_records_total",] >= 10
            assert metrics["quorate_commit_seconds_count",] >= 10
            assert metrics["quorate_disk_sync_seconds_count",] > 0
            partition = tmp_path / "1" / "__cluster_metadata-0"
            await until(lambda: len(list(partition.glob("*.checkpoint"))) > 1)
        with pytest.raises(OSError):
            await ask(pages, "/metrics")
        async with await Member.start(tmp_path / "1", Journal(), listen, metrics=pages) as member:
            await until(lambda: member.leads)
            metrics = samples((await ask(pages, "/metrics"))[1])
            assert metrics["kafka_server_metadata_loader_handle_load_snapshot_total",] == 1

    run(scenario)


def test_an_unavailable_metrics_address_is_refused(tmp_path):
    async def scenario():
        listen, pages = free_address(), free_address()
        create(tmp_path / "1", 1, "refused", {1: listen})
        for metrics, why in ((listen, "the port is in use"), ("nonsense", "nonsense")):
            with pytest.raises(QuorateError, match=why):
                await Member.start(tmp_path / "1", Journal(), listen, metrics=metrics)
        async with await Member.start(tmp_path / "1", Journal(), listen, metrics=pages) as member:
            await until(lambda: member.leads)

    run(scenario)
