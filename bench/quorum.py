"""The measures of a quorum of three processes: commits, failover, steadiness, idle cost."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import uvloop
from bench.clients import QuotaClient
from bench.load import VALUE, Client, RefusedError, measure, put_for
from bench.progress import show
from bench.report import Goal, Report
from bench.slow_sync import slowed
from bench.systems import (
    HOST,
    SYSTEMS,
    AbsentError,
    Controllers,
    Etcd,
    Hops,
    Node,
    Quorate,
    System,
    cpu_seconds,
    describe_quorum,
    memory_mb,
    wait_for,
)

T = TypeVar("T")
OUTSTANDING = (1, 16, 128)


def run(main: Coroutine[Any, Any, T]) -> T:
    return uvloop.run(main)


@contextmanager
def started(make: Callable[[Path], System]) -> Iterator[System]:
    with tempfile.TemporaryDirectory(prefix="quorate-bench-") as folder, make(Path(folder)) as up:
        yield up


def each_system(report: Report) -> Iterator[System]:
    """Every system on this machine, started, one after the other."""
    for make in SYSTEMS.values():
        try:
            with started(make) as system:
                yield system
        except AbsentError as error:
            report.absent.append(str(error))


def commits(quick: bool) -> Report:
    """Latency and rate of durable puts of 200 B, with 1, 16 and 128 outstanding."""
    report = Report()
    seconds = 2.0 if quick else 10.0
    for system in each_system(report):
        for outstanding in OUTSTANDING:
            sample = run(measure(system.connect, outstanding, seconds))
            about = f"{outstanding} outstanding"
            report.add(f"commits, {about}", system.name, sample.rate, "1/s")
            report.add(f"commit p50, {about}", system.name, sample.percentile_ms(0.5), "ms")
            report.add(f"commit p99, {about}", system.name, sample.percentile_ms(0.99), "ms")
        memory = max(memory_mb(node) for node in system.nodes.values())
        report.add("memory of a node after the load", system.name, memory, "MB")
    lone, storm = "commit p50, 1 outstanding", "commits, 128 outstanding"
    report.hold_ratio("lone commit p50 over etcd's", lone, "etcd", 0.6)
    report.hold_ratio("lone commit p50 over Kafka's", lone, "kafka", 1 / 50)
    report.hold_ratio("commits/s, 128 outstanding, over etcd's", storm, "etcd", 3.0, at_most=False)
    if (loaded := report.value("memory of a node after the load", "quorate")) is not None:
        report.goals.append(Goal("memory of a loaded node, MB", loaded, 150))
    return report


def hops(quick: bool) -> Report:
    """A lone put of Quorate, of etcd and of its bare hops, by turns: the median of the turns."""
    report = Report()
    by_turns(report, "lone put p50, by turns", (Hops, Quorate, Etcd), quick)
    return report


def by_turns(
    report: Report, text: str, makes: Sequence[Callable[[Path], System]], quick: bool
) -> None:
    """Add the p50 of a lone put of each system. All run, and are measured one after the other, again
    and again: the value is the median of a system's turns."""
    turns: dict[str, list[float]] = {}
    with ExitStack() as stack:
        systems: list[System] = []
        for make in makes:
            try:
                systems.append(stack.enter_context(started(make)))
            except AbsentError as error:
                report.absent.append(str(error))
        for _ in range(3 if quick else 9):
            for system in systems:
                sample = run(measure(system.connect, 1, 1.0 if quick else 3.0))
                turns.setdefault(system.name, []).append(sample.percentile_ms(0.5))
    for name, found in turns.items():
        report.add(text, name, statistics.median(found), "ms")


def sync_ms(folder: Path, added_ms: float) -> float:
    """The median time of one sync of 200 B within a file, on a disk made slower by `added_ms`."""
    times = []
    sync = slowed(getattr(os, "fdatasync", os.fsync), added_ms / 1000)
    descriptor = os.open(folder / "probe", os.O_CREAT | os.O_RDWR)
    os.write(descriptor, bytes(1 << 20))
    os.fsync(descriptor)
    for number in range(100):
        os.pwrite(descriptor, VALUE, number * len(VALUE))
        start = time.perf_counter()
        sync(descriptor)
        times.append(time.perf_counter() - start)
    os.close(descriptor)
    return statistics.median(times) * 1000


def slow_disk(quick: bool) -> Report:
    """The same with 5 ms added to each sync: how many syncs does a commit cost?

    And how many the bare hops of a lone one.
    """
    report = Report()
    added, seconds = 5.0, 2.0 if quick else 10.0
    with started(lambda root: Quorate(root, sync_ms=added)) as system:
        one = sync_ms(system.nodes[1].directory, added)
        report.add("one sync, 5 ms added", "quorate", one, "ms")
        for outstanding, name, limit in ((1, "lone", 1.15), (128, "grouped", 2.3)):
            sample = run(measure(system.connect, outstanding, seconds))
            p50 = sample.percentile_ms(0.5)
            report.add(f"commit p50, 5 ms added, {outstanding} outstanding", "quorate", p50, "ms")
            report.goals.append(Goal(f"a {name} commit, in syncs", p50 / one, limit))
    with started(lambda root: Hops(root, sync_ms=added)) as bare:
        p50 = run(measure(bare.connect, 1, seconds)).percentile_ms(0.5)
        report.add("commit p50, 5 ms added, 1 outstanding", "hops", p50, "ms")
    return report


async def first_put(system: System, ports: list[int]) -> None:
    """Put until one is confirmed, asking every port in turn without a pause."""
    clients: dict[int, Client] = {}
    while True:
        for port in ports:
            try:
                if port not in clients:
                    clients[port] = await asyncio.wait_for(system.client(port), 0.2)
                await asyncio.wait_for(clients[port].put(b"key-0-0", VALUE), 1.0)
            except RefusedError:
                continue
            except (OSError, TimeoutError):
                if port in clients:
                    clients.pop(port).close()
                continue
            for client in clients.values():
                client.close()
            return
        await asyncio.sleep(0.001)


def take_over_ms(system: System, end_leader: Callable[[Node], None]) -> float:
    """From the end of the leader to the next confirmed put, in ms."""
    leader = system.leader()
    others = [system.port_of(node) for node in system.nodes.values() if node is not leader]
    run(first_put(system, [system.port_of(leader)]))
    start = time.perf_counter()
    end_leader(leader)
    run(first_put(system, others))
    took = (time.perf_counter() - start) * 1000
    if leader.frozen:
        leader.thaw()
    else:
        leader.start()
    settle(system)
    return took


def settle(system: System) -> None:
    """Wait until all nodes take part: some puts that each of them has, some time."""
    wait_for(system.is_whole, "all nodes to be back")
    for _ in range(5):
        run(first_put(system, [system.port_of(n) for n in system.nodes.values()]))
        time.sleep(0.2)
    wait_for(system.is_caught_up, "all nodes to have caught up")


def failover(quick: bool) -> Report:
    """kill -9 of the leader, and a freeze, to the next confirmed put; default timers."""
    report = Report()
    trials = 3 if quick else 20
    faults: dict[str, Callable[[Node], None]] = {"killed": kill, "frozen": lambda n: n.freeze()}
    for system in each_system(report):
        settle(system)
        for fault, end_leader in faults.items():
            times: list[float] = []
            for trial in range(trials):
                so_far = f", last {times[-1]:.0f} ms" if times else ""
                show(f"leader {fault}, {system.name}: {trial} of {trials}{so_far}")
                times.append(take_over_ms(system, end_leader))
            times.sort()
            report.add(f"leader {fault}, p50", system.name, statistics.median(times), "ms")
            report.add(f"leader {fault}, worst", system.name, times[-1], "ms")
    if (p50 := report.value("leader killed, p50", "quorate")) is not None:
        worst = report.value("leader killed, worst", "quorate") or 0.0
        report.goals.append(Goal("leader killed to the next commit, p50, ms", p50, 100))
        report.goals.append(Goal("leader killed to the next commit, worst, ms", worst, 400))
    report.hold_ratio("leader frozen, p50 over Kafka's", "leader frozen, p50", "kafka", 1.0)
    return report


def kill(node: Node) -> None:
    node.kill(signal.SIGKILL)


def steady(quick: bool) -> Report:
    """Full load while a random follower pauses for a second now and then: the leader stays."""
    report = Report()
    seconds = 20.0 if quick else 600.0
    with started(Quorate) as system:
        leader = system.leader()
        epoch = _epoch(system)
        followers = [node for node in system.nodes.values() if node is not leader]

        async def loaded() -> float:
            clients = await system.connect(128)
            load = asyncio.ensure_future(put_for(clients, 128, seconds))
            while not load.done():
                node = random.choice(followers)
                node.freeze()
                await asyncio.wait([load], timeout=1.0)
                node.thaw()
                await asyncio.wait([load], timeout=random.uniform(0.5, 3.0))
            return (await load).rate

        report.add("commits with pausing followers", "quorate", run(loaded()), "1/s")
        changes = _epoch(system) - epoch
        report.add(f"elections in {seconds:.0f} s of load", "quorate", changes, "elections")
        report.goals.append(Goal("needless elections under load", changes, 0))
    return report


def _epoch(system: System) -> int:
    view = describe_quorum(HOST, system.leader().port)
    assert view is not None, "no leader"
    return view.epoch


def idle(quick: bool) -> Report:
    """Three controllers with nothing to do: processor time and memory of each."""
    report = Report()
    seconds = 5.0 if quick else 30.0
    makers: dict[str, Callable[[Path], System]] = {
        "quorate": Controllers,
        "kafka": SYSTEMS["kafka"],
    }
    for name, make in makers.items():
        with started(make) as system:
            time.sleep(3.0)  # let them finish what starting brings
            before = {node: cpu_seconds(node) for node in system.nodes.values()}
            time.sleep(seconds)
            used = [(cpu_seconds(node) - before[node]) / seconds * 100 for node in before]
            report.add("idle, worst node's share of a core", name, max(used), "%")
            memory = max(memory_mb(node) for node in system.nodes.values())
            report.add("memory of an idle node", name, memory, "MB")
    cpu = report.value("idle, worst node's share of a core", "quorate") or 0.0
    memory = report.value("memory of an idle node", "quorate") or 0.0
    report.goals.append(Goal("idle, share of a core, %", cpu, 1.0))
    report.goals.append(Goal("memory of an idle node, MB", memory, 60))
    return report


def entities(quick: bool) -> Report:
    """The same commits with 0, 30 k and 1 M client quotas in the image of our controllers."""
    return _flat(quick, Controllers, _fill_quotas, "entities in the image")


def keys(quick: bool) -> Report:
    """The same commits with 0, 30 k and 1 M keys in the key-value example."""
    return _flat(quick, Quorate, _fill, "keys")


def _flat(
    quick: bool,
    make: Callable[[Path], System],
    fill: Callable[[System, int, int], Coroutine[Any, Any, None]],
    what: str,
) -> Report:
    """A quorum of each size, all up at once and measured by turns: a busy minute hits all alike.

    Filling makes every node write a snapshot: commits beside that are a measure of their own.
    """
    report = Report()
    sizes = (0, 30_000) if quick else (0, 30_000, 1_000_000)
    turn, turns = (1.0, 3) if quick else (3.0, 9)
    with ExitStack() as stack:
        quorums = {size: stack.enter_context(started(make)) for size in sizes}
        for size, system in quorums.items():
            run(fill(system, 0, size))
        largest = quorums[sizes[-1]]
        beside = run(measure(largest.connect, 16, turn)).rate
        for system in quorums.values():
            wait_for(partial(_is_idle, system), "the snapshots to be written", 300)
        found = {size: [0.0] * turns for size in sizes}
        for number in range(turns):
            for size, system in quorums.items():
                found[size][number] = run(measure(system.connect, 16, turn)).rate
        rates = {size: statistics.median(each) for size, each in found.items()}
        for size, system in quorums.items():
            about = f"{size:,} {what}"
            name = f"commits, 16 outstanding, {about}, by turns"
            report.add(name, system.name, rates[size], "1/s")
            memory = max(memory_mb(node) for node in system.nodes.values())
            report.add(f"memory of a node, {about}", system.name, memory, "MB")
        name = f"commits, 16 outstanding, {sizes[-1]:,} {what}, right after they came"
        report.add(name, largest.name, beside, "1/s")
    spread = max(rates.values()) / min(rates.values()) - 1
    report.goals.append(Goal(f"spread of commits/s over the number of {what}", spread, 0.2))
    return report


def _is_idle(system: System) -> bool:
    """Whether no node of it has more to do, over half a second, than stay in touch."""
    before = sum(map(cpu_seconds, system.nodes.values()))
    time.sleep(0.5)
    return sum(map(cpu_seconds, system.nodes.values())) - before < 0.1


async def _fill_quotas(system: System, start: int, end: int) -> None:
    client = await QuotaClient.connect(system.leader().port)
    for first in range(start, end, QuotaClient.MOST):
        users = range(first, min(first + QuotaClient.MOST, end))
        await client.put_many([b"entity-%d" % user for user in users])
    client.close()


async def _fill(system: System, start: int, end: int) -> None:
    (client, *rest) = await system.connect(1)
    for first in range(start, end, 2000):
        keys = range(first, min(first + 2000, end))
        await asyncio.gather(*(client.put(b"entity-%d" % key, VALUE) for key in keys))
    for one in (client, *rest):
        one.close()
