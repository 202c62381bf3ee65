"""Controllers with many partitions, beside Kafka's: creation, fencing, failover, restart, memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.fleet import Fleet
from bench.limits import (
    BROKERS_WITH_PARTITIONS,
    PARTITIONS_PER_TOPIC,
    TOPICS_PER_REQUEST,
    Active,
    create_topics,
    restart_all,
    unfenced_fleet,
)
from bench.load import VALUE, Client, RefusedError
from bench.quorum import kill, run, started, take_over_ms
from bench.report import Goal, Report
from bench.systems import HOST, AbsentError, Controllers, Kafka, KRaft, memory_mb

from quorate.base.ids import Address
from quorate.client.leader import Controllers as Addressed
from quorate.client.log_fetcher import LogFetcher
from quorate.formats.batch import iter_batches
from quorate.formats.batch_records import values
from quorate.formats.records import BrokerRegistrationChangeRecord, decode_record

OUTSTANDING = 4
FENCED = 10
CHANGE_KEY = 17
"""The api key of BrokerRegistrationChangeRecord, in the second byte of a record."""
HEAP = ("-Xmx4g", "-XX:+UseG1GC")
POLL_S = 0.1
FENCING_LIMIT_S = 300


def _kafka(root: Path) -> Kafka:
    """A million partitions take 2.5 to 3 GB of Kafka's controller: more than its scripts allow."""
    system = Kafka(root)
    for node in system.quorum.java_nodes:
        node.jvm = HEAP
    return system


def controllers(quick: bool) -> Report:
    """A million partitions (quick: 50,000) of 10 to a topic, 3 replicas each on 30 brokers."""
    report = Report()
    count = 50_000 if quick else 1_000_000
    for make in (Controllers, _kafka):
        try:
            with started(make) as system:
                assert isinstance(system, KRaft)
                run(_measure(system, count, report))
        except AbsentError as error:
            report.absent.append(str(error))
    about = f"{count:,} partitions"
    ours, kafka = Controllers.name, Kafka.name
    goals: tuple[tuple[str, str, float, bool], ...] = (
        ("creation at twice Kafka's rate", _created(about), 2, False),
        ("a quarter of Kafka's memory", _memory(about), 0.25, True),
        ("a third of Kafka's restart", _restarted(about), 1 / 3, True),
        ("fenced no later than by Kafka", _fenced(about), 1, True),
    )
    for text, measure, limit, at_most in goals:
        report.hold_ratio(text, measure, kafka, limit, at_most, ours=ours)
    worst = report.value(_worst_write(about), ours)
    if worst is not None:
        report.goals.append(Goal("worst write while brokers are fenced, ms", worst, 100))
    return report


def _created(about: str) -> str:
    return f"{about}: created"


def _memory(about: str) -> str:
    return f"{about}: memory of the active controller"


def _restarted(about: str) -> str:
    return f"{about}: restart of all three to caught up"


def _worst_write(about: str) -> str:
    return f"{about}: worst write while {FENCED} brokers are fenced"


def _fenced(about: str) -> str:
    return f"{about}: last heartbeat to {FENCED} brokers fenced"


async def _measure(system: KRaft, count: int, report: Report) -> None:
    about, name = f"{count:,} partitions", system.name
    async with unfenced_fleet(system, BROKERS_WITH_PARTITIONS) as fleet:
        start = time.perf_counter()
        requests = iter(range(0, count // PARTITIONS_PER_TOPIC, TOPICS_PER_REQUEST))
        await asyncio.gather(*(_create(system, requests, count) for _ in range(OUTSTANDING)))
        report.add(_created(about), name, count / (time.perf_counter() - start), "1/s")
        report.add(_memory(about), name, memory_mb(system.leader()), "MB")
        await _fence(system, fleet, about, report)
        killed = await asyncio.to_thread(take_over_ms, system, kill)
        report.add(f"{about}: kill -9 to the next write", name, killed, "ms")
    restart = await asyncio.to_thread(restart_all, system)
    report.add(_restarted(about), name, restart, "s")


async def _create(system: KRaft, requests: Iterator[int], count: int) -> None:
    active = Active(system)
    topics = count // PARTITIONS_PER_TOPIC
    for first in requests:
        await create_topics(active, range(first, min(first + TOPICS_PER_REQUEST, topics)))
    active.close()


async def _fence(system: KRaft, fleet: Fleet, about: str, report: Report) -> None:
    """Ten brokers stop at the same moment; writes go on, one after the other."""
    done = asyncio.Event()
    writes = asyncio.ensure_future(_worst_of_writes(system, done))
    watched = await asyncio.to_thread(FencingRecords, [node.port for node in system.nodes.values()])
    silent = fleet.stop(FENCED)
    start = time.perf_counter()
    try:
        await asyncio.to_thread(watched.wait_for, silent)
        took = time.perf_counter() - start
    finally:
        done.set()
        worst_s = await writes
        watched.close()
    report.add(_fenced(about), system.name, took, "s")
    report.add(_worst_write(about), system.name, worst_s * 1000, "ms")


class FencingRecords:
    """Reads the metadata log from now on, for the records that fence brokers."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._fetcher = LogFetcher(Addressed(tuple(Address(HOST, port) for port in ports)))
        self._next = self._fetcher.fetch(0, 0, max_bytes=1).high_watermark

    def close(self) -> None:
        self._fetcher.close()

    def wait_for(self, brokers: set[int]) -> None:
        """Until each of the brokers is fenced and that is committed. Raises TimeoutError."""
        missing, end = set(brokers), time.monotonic() + FENCING_LIMIT_S
        while missing:
            if time.monotonic() > end:
                raise TimeoutError(f"brokers {sorted(missing)} are not fenced")
            got = self._fetcher.read(self._next)
            before = self._next
            for view in iter_batches(got.records):
                if view.end_offset <= self._next or view.end_offset > got.high_watermark:
                    continue
                self._next = view.end_offset
                if not view.is_control:
                    missing -= {found for value in values(view) if (found := _fenced_by(value))}
            if self._next == before:
                time.sleep(POLL_S)


def _fenced_by(value: bytes) -> int | None:
    """The broker that the record fences."""
    if value[1] != CHANGE_KEY:  # decoding a million partition changes would take minutes
        return None
    record, _ = decode_record(value)
    assert isinstance(record, BrokerRegistrationChangeRecord)
    return record.broker_id if record.fenced == 1 else None


async def _worst_of_writes(system: KRaft, done: asyncio.Event) -> float:
    """The longest time in s of a write until it is accepted, changes of the leader included."""
    client, worst_s = await _connected_to_leader(system), 0.0
    while not done.is_set():
        start = time.perf_counter()
        while not await _is_written(client):
            client.close()
            client = await _connected_to_leader(system)
        worst_s = max(worst_s, time.perf_counter() - start)
    client.close()
    return worst_s


async def _connected_to_leader(system: KRaft) -> Client:
    leader = await asyncio.to_thread(system.leader)
    return await system.client(leader.port)


async def _is_written(client: Client) -> bool:
    try:
        await client.put(b"key", VALUE)
    except (RefusedError, OSError):
        return False
    return True
