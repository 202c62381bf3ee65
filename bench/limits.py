"""How far our controllers are tested: brokers, partitions, ACLs, connections (docs/limits.md)."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from bench.clients import HOST
from bench.fleet import Fleet, M, Wire
from bench.load import put_for
from bench.quorum import kill, run, started, take_over_ms
from bench.report import Goal, Report
from bench.systems import Controllers, KRaft, System, cpu_seconds, memory_mb, wait_for

from interop.process import Node
from quorate.base.errors import ErrorCode
from quorate.metadata.image import Image
from quorate.security.acl import AclOperation, AclResource
from quorate.security.authorizer import AuthorizerConfig, Requester, decide
from quorate.shell.loading import load_directory
from quorate.wire.messages.acls import CreateAclsRequest, CreateAclsResponse
from quorate.wire.messages.cluster import ApiVersionsRequest, ApiVersionsResponse
from quorate.wire.messages.topics import CreateTopicsRequest, CreateTopicsResponse
from quorate.wire.schema import Message

NAME = Controllers.name
AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
PARTITIONS_PER_TOPIC, TOPICS_PER_REQUEST = 10, 500
BROKERS_WITH_PARTITIONS = 30
ACLS_PER_REQUEST = 1_000
DECISIONS = 20_000
SECONDS = 3.0
REQUEST = ApiVersionsRequest(client_software_name="bench", client_software_version="1")


def brokers(quick: bool) -> Report:
    """Brokers that register at the same moment and heartbeat every 2 s; then they also fetch."""
    report = Report()
    count, seconds = (100, 5.0) if quick else (1_000, 20.0)
    about = f"{count:,} brokers"

    async def share_of_a_core(active: Node) -> float:
        before, start = cpu_seconds(active), time.perf_counter()
        await asyncio.sleep(seconds)
        return (cpu_seconds(active) - before) / (time.perf_counter() - start) * 100

    async def live(system: Controllers) -> None:
        active = system.leader()
        start = time.perf_counter()
        async with unfenced_fleet(system, count) as fleet:
            took = time.perf_counter() - start
            report.add(f"{about}: all registered and unfenced", NAME, took, "s")
            fleet.heartbeats.clear()
            share = await share_of_a_core(active)
            report.add(f"{about}: share of a core of the active controller", NAME, share, "%")
            report.goals.append(Goal("share of a core for heartbeats, %", share, 10))
            report.add(f"{about}: a heartbeat, p99", NAME, _p99_ms(fleet.heartbeats), "ms")
            report.add(f"{about}: memory of the active controller", NAME, memory_mb(active), "MB")
            fleet.follow()
            await asyncio.sleep(seconds)  # they read what the log has
            fleet.heartbeats.clear()
            fleet.fetches.clear()
            share = await share_of_a_core(active)
            fleet.check()
            fetching = f"{about} that fetch"
            report.add(f"{fetching}: share of a core of the active controller", NAME, share, "%")
            report.add(f"{fetching}: fetches", NAME, len(fleet.fetches) / seconds, "1/s")
            report.add(f"{fetching}: a heartbeat, p99", NAME, _p99_ms(fleet.heartbeats), "ms")
            fenced = sum(broker.is_fenced for broker in fleet.brokers)
            report.add(f"{fetching}: fenced at the end", NAME, fenced, "brokers")

    with started(Controllers) as system:
        assert isinstance(system, Controllers)
        run(live(system))
    return report


def _p99_ms(spans: Sequence[float]) -> float:
    return sorted(spans)[int(len(spans) * 0.99)] * 1000


def _memory(system: System) -> float:
    return memory_mb(system.leader())


@asynccontextmanager
async def unfenced_fleet(system: KRaft, count: int) -> AsyncIterator[Fleet]:
    """Brokers in service."""
    ports = [node.port for node in system.nodes.values()]
    async with Fleet(count, system.quorum.cluster_id, ports) as fleet:
        await fleet.unfenced(120)
        yield fleet


def partitions(quick: bool) -> Report:
    """Topics of 10 partitions, replicated 3 times on 30 brokers; then kill -9 and restarts."""
    report = Report()
    count = 20_000 if quick else 200_000
    about = f"{count:,} partitions"

    async def live(system: Controllers) -> None:
        async with unfenced_fleet(system, BROKERS_WITH_PARTITIONS):
            active = Active(system)
            worst, start = 0.0, time.perf_counter()
            topics = count // PARTITIONS_PER_TOPIC
            for first in range(0, topics, TOPICS_PER_REQUEST):
                sent = time.perf_counter()
                await create_topics(active, range(first, min(first + TOPICS_PER_REQUEST, topics)))
                worst = max(worst, time.perf_counter() - sent)
            rate = count / (time.perf_counter() - start)
            active.close()
            report.add(f"{about}: created", NAME, rate, "1/s")
            report.add(f"{about}: slowest CreateTopics of 500 topics", NAME, worst, "s")
            changes = active.searches - 1
            report.add(f"{about}: changes of the active controller", NAME, changes, "changes")
            report.add(f"{about}: memory of the active controller", NAME, _memory(system), "MB")
            killed = await asyncio.to_thread(take_over_ms, system, kill)
            report.add(f"{about}: kill -9 to the next write", NAME, killed, "ms")
            restart = await asyncio.to_thread(restart_all, system)
            report.add(f"{about}: restart of all three to caught up", NAME, restart, "s")

    with started(Controllers) as system:
        assert isinstance(system, Controllers)
        run(live(system))
    return report


class Active:
    """Asks the active controller, and looks for it again when it changes."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._wire: Wire | None = None
        self.searches = 0

    async def ask(self, request: Message, response: type[M], codes: Callable[[M], set[int]]) -> M:
        """The response of an active controller. `codes`: the error codes in a response."""
        while True:
            if self._wire is None:
                self.searches += 1
                leader = await asyncio.to_thread(self._system.leader)
                self._wire = await Wire.connect(leader.port)
            try:
                found = await self._wire.ask(request, response)
            except OSError:
                found = None
            if found is not None and ErrorCode.NOT_CONTROLLER not in codes(found):
                return found
            self.close()

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._wire is not None:
            self._wire.close()
        self._wire = None


async def create_topics(active: Active, numbers: range) -> None:
    def codes(found: CreateTopicsResponse) -> set[int]:
        return {each.error_code for each in found.topics}

    topics = [
        CreateTopicsRequest.CreatableTopic(
            name=f"topic-{number:06}", num_partitions=PARTITIONS_PER_TOPIC, replication_factor=3
        )
        for number in numbers
    ]
    found = await active.ask(CreateTopicsRequest(topics=topics), CreateTopicsResponse, codes)
    # What a controller commits that ends before it answers is there when the request comes again.
    assert codes(found) <= {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}, codes(found)


def restart_all(system: KRaft) -> float:
    """Seconds from the start of three stopped controllers until each has what is committed."""
    for node in system.nodes.values():
        node.kill(15, 120)
    start = time.perf_counter()
    for node in system.nodes.values():
        node.start()
    system.quorum.wait_for_commit_by_all(180)
    return time.perf_counter() - start


def acls(quick: bool) -> Report:
    """Entries, each for a topic and a user of its own; decisions with all and with 100 of them."""
    report = Report()
    count = 2_000 if quick else 100_000

    def codes(found: CreateAclsResponse) -> set[int]:
        return {each.error_code for each in found.results}

    async def create(begin: int, end: int) -> None:
        active = Active(system)
        for first in range(begin, end, ACLS_PER_REQUEST):
            numbers = range(first, min(first + ACLS_PER_REQUEST, end))
            request = CreateAclsRequest(creations=[_entry(number) for number in numbers])
            found = await active.ask(request, CreateAclsResponse, codes)
            assert codes(found) == {ErrorCode.NONE}, found.results[0]
        active.close()

    def image_of(node: Node, entries: int) -> Image:
        def loaded() -> Image | None:
            image = load_directory(str(node.partition)).published.image
            return image if len(image.acls) == entries else None

        return wait_for(loaded, f"{entries} entries in the log", 60, 0.5)

    with started(lambda root: Controllers(root, AUTHORIZED)) as system:
        for begin, end in ((0, 100), (100, count)):
            start = time.perf_counter()
            run(create(begin, end))
            rate = (end - begin) / (time.perf_counter() - start)
            p99 = _decision_p99_us(image_of(system.leader(), end), end)
            report.add(f"{end:,} ACLs: a decision, p99", NAME, p99, "us")
        report.add(f"{count:,} ACLs: created", NAME, rate, "1/s")
        report.add(f"{count:,} ACLs: memory of the active controller", NAME, _memory(system), "MB")
    return report


def _entry(number: int) -> CreateAclsRequest.AclCreation:
    return CreateAclsRequest.AclCreation(
        resource_type=AclResource.TOPIC,
        resource_name=f"topic-{number:06}",
        principal=f"User:user-{number:06}",
        host="*",
        operation=AclOperation.WRITE,
        permission_type=3,
    )


def _decision_p99_us(image: Image, entries: int) -> float:
    rng, config, spans = random.Random(1), AuthorizerConfig(), []
    for _ in range(DECISIONS):
        number = rng.randrange(entries)
        who = Requester(f"User:user-{number:06}", HOST)
        start = time.perf_counter()
        decision = decide(
            image, config, who, AclOperation.WRITE, AclResource.TOPIC, f"topic-{number:06}"
        )
        spans.append(time.perf_counter() - start)
        assert decision.is_allowed
    return sorted(spans)[int(DECISIONS * 0.99)] * 1e6


def connections(quick: bool) -> Report:
    """Idle connections to the active controller, until it takes no more or `most` are open."""
    report = Report()
    most = 1_000 if quick else 20_000

    async def live(system: Controllers) -> None:
        active = system.leader()
        clients = await system.connect(1)
        before = await put_for(clients, 1, SECONDS)
        report.add("no idle connections: a lone write, p50", NAME, before.percentile_ms(0.5), "ms")
        held: list[Wire] = []
        while len(held) < most and (wire := await _served(active.port)):
            held.append(wire)
        about = f"{len(held):,} idle connections"
        during = await put_for(clients, 1, SECONDS)
        report.add(f"{about}: a lone write, p50", NAME, during.percentile_ms(0.5), "ms")
        memory = memory_mb(active)
        report.add(f"{about}: memory of the active controller", NAME, memory, "MB")
        for wire in held:
            wire.close()
        for client in clients:
            client.close()

    with started(Controllers) as system:
        assert isinstance(system, Controllers)
        run(live(system))
    return report


async def _served(port: int) -> Wire | None:
    """A connection that answers; None when it is refused."""
    wire = None
    try:
        wire = await Wire.connect(port)
        await wire.ask(REQUEST, ApiVersionsResponse)
    except OSError:
        if wire is not None:
            wire.close()
        return None
    return wire
