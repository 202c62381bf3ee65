"""What TLS and SASL cost: commits, handshakes, a flood of failing logins, brokers that come back at once."""

from __future__ import annotations

import asyncio
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from bench.clients import HOST
from bench.fleet import Fleet
from bench.load import Sample, measure, put_for
from bench.quorum import run
from bench.report import Goal, Report
from bench.secure_systems import SecureControllers
from bench.systems import ROOT, cpu_seconds

from quorate.wire.header import encode_request
from quorate.wire.messages.cluster import ApiVersionsRequest

OURS = "quorate"
_QUESTION = encode_request(
    ApiVersionsRequest(client_software_name="bench", client_software_version="1"), 3, 1, "bench"
)


def secure_commits(quick: bool) -> Report:
    """Puts over SASL_SSL (TLS 1.3, client certificates) and over PLAINTEXT, by turns: the ratios."""
    report = Report()
    turns, seconds = (2, 1.5) if quick else (7, 4.0)
    found: dict[tuple[str, int], list[float]] = {}
    cpu: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="quorate-bench-") as folder, ExitStack() as stack:
        systems = [
            stack.enter_context(SecureControllers(Path(folder, protocol), protocol=protocol))
            for protocol in ("PLAINTEXT", "SASL_SSL")
        ]
        for _ in range(turns):
            for outstanding in (1, 128):
                for system in systems:
                    sample, used = run(_loaded(system, outstanding, seconds))
                    value = sample.percentile_ms(0.5) if outstanding == 1 else sample.rate
                    found.setdefault((system.protocol, outstanding), []).append(value)
                    if outstanding > 1:
                        cpu.setdefault(system.protocol, []).append(used)
    for protocol, used_us in cpu.items():
        about = "processor time of the leader for a commit, 128 outstanding"
        report.add(f"{about}, {protocol}", OURS, statistics.median(used_us), "us")
    for outstanding, measured, unit in ((1, "commit p50", "ms"), (128, "commits", "1/s")):
        about = f"{measured}, {outstanding} outstanding"
        values = {p: found[p, outstanding] for p in ("PLAINTEXT", "SASL_SSL")}
        for protocol, some in values.items():
            report.add(f"{about}, {protocol}", OURS, statistics.median(some), unit)
        pairs = zip(values["SASL_SSL"], values["PLAINTEXT"], strict=True)
        ratio = statistics.median(secure / plain for secure, plain in pairs)
        text = f"{about}, SASL_SSL over PLAINTEXT"
        report.goals.append(Goal(text, ratio, 1.3 if outstanding == 1 else 0.8, outstanding == 1))
    return report


async def _loaded(
    system: SecureControllers, outstanding: int, seconds: float
) -> tuple[Sample, float]:
    """A load after a warm-up, and the processor time of the leader for each commit of it, us."""
    leader = system.leader()
    clients = await system.connect(outstanding)
    await put_for(clients, outstanding, 1.0)
    before = cpu_seconds(leader)
    sample = await put_for(clients, outstanding, seconds)
    used = cpu_seconds(leader) - before
    for client in clients:
        client.close()
    return sample, used / len(sample.latencies) * 1e6


def _handshakes(system: SecureControllers, seconds: float, clients: int = 2) -> float:
    """TLS handshakes, each with an answer to ApiVersions, a second."""
    port = system.leader().port
    context = system.tls()
    counts = [0] * clients
    end = time.perf_counter() + seconds

    def shake(number: int) -> None:
        while time.perf_counter() < end:
            with (
                socket.create_connection((HOST, port), 10) as raw,
                context.wrap_socket(raw, server_hostname=HOST) as peer,
            ):
                peer.sendall(_QUESTION)
                assert peer.recv(4)
            counts[number] += 1

    threads = [threading.Thread(target=shake, args=[n]) for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds


def handshakes(quick: bool) -> Report:
    """New connections with client certificates, beside Java's controllers, by turns."""
    report = Report()
    turns, seconds = (2, 2.0) if quick else (7, 4.0)
    found: dict[str, list[float]] = {"quorate": [], "java": []}
    with tempfile.TemporaryDirectory(prefix="quorate-bench-") as folder, ExitStack() as stack:
        systems = {
            kind: stack.enter_context(SecureControllers(Path(folder, kind), kind, "SSL"))
            for kind in found
        }
        for system in systems.values():
            _handshakes(system, 1.0 if quick else 10.0)  # Java compiles
        for _ in range(turns):
            for kind, system in systems.items():
                found[kind].append(_handshakes(system, seconds))
    for kind, rates in found.items():
        name = OURS if kind == OURS else "kafka"
        report.add("handshakes with client certificates", name, statistics.median(rates), "1/s")
    pairs = zip(found["quorate"], found["java"], strict=True)
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    report.hold("handshakes a second over Kafka's", ratio, 0.5)
    return report


def failing_logins(quick: bool) -> Report:
    """Commits while a process sends logins with a wrong password to the leader, as fast as it can.

    Beside it, by turns: the same on a quiet machine. The clients of the flood take processor time from the
    node, which is a part of the ratio: the report says how much.
    """
    report = Report()
    seconds, turns = (3.0, 1) if quick else (8.0, 3)
    quiet, flooded, rates, cores = [], [], [], []
    with (
        tempfile.TemporaryDirectory(prefix="quorate-bench-") as folder,
        SecureControllers(Path(folder, "q"), protocol="SASL_PLAINTEXT") as system,
    ):
        leader, epoch = system.leader_and_epoch()
        for _ in range(turns):
            quiet.append(_p99(system, seconds))
            flood = subprocess.Popen(
                [sys.executable, "-m", "bench.failing_logins", str(leader.port), str(seconds + 3)],
                cwd=ROOT,
                stdout=subprocess.PIPE,
            )
            flooded.append(_p99(system, seconds))
            rate, used = map(float, flood.communicate()[0].split())
            assert flood.returncode == 0
            rates.append(rate)
            cores.append(used)
        elections = system.leader_and_epoch()[1] - epoch
    report.add("failing logins", OURS, statistics.median(rates), "1/s")
    report.add("use of processors by their clients", OURS, statistics.median(cores), "cores")
    report.add("commit p99, 1 outstanding, without them", OURS, statistics.median(quiet), "ms")
    report.add("commit p99, 1 outstanding, failing logins", OURS, statistics.median(flooded), "ms")
    ratio = statistics.median(b / a for a, b in zip(quiet, flooded, strict=True))
    report.goals.append(Goal("commit p99 under failing logins over that without", ratio, 2.0))
    report.goals.append(Goal("elections under failing logins", elections, 0))
    return report


def _p99(system: SecureControllers, seconds: float) -> float:
    """The 99th percentile of a lone commit, in ms, after a second of warm-up."""
    return run(measure(system.connect, 1, seconds)).percentile_ms(0.99)


def reconnects(quick: bool) -> Report:
    """kill -9 of the active controller: brokers reconnect with mutual TLS and SCRAM."""
    report = Report()
    count = 100 if quick else 1_000
    session_s = 9.0

    async def live(system: SecureControllers) -> None:
        ports = [node.port for node in system.nodes.values()]
        fleet = Fleet(count, system.quorum.cluster_id, ports, system.wires())
        async with fleet:
            await fleet.unfenced(120)
            leader, epoch = await asyncio.to_thread(system.leader_and_epoch)
            silence = fleet.watch_silence()
            await asyncio.to_thread(leader.kill)
            await asyncio.sleep(2 * session_s)
            _, after = await asyncio.to_thread(system.leader_and_epoch)
            found = silence()
            longest = max(found.values())
            late = sum(value > session_s / 2 + 2 for value in found.values())
            fenced = sum(broker.is_fenced for broker in fleet.brokers)
        about = f"{count:,} brokers after kill -9 of the active controller"
        report.add(f"{about}: longest time between two answers", OURS, longest, "s")
        report.add(f"{about}: with a longer silence than 6.5 s", OURS, late, "brokers")
        report.add(f"{about}: fenced", OURS, fenced, "brokers")
        report.add(f"{about}: epochs", OURS, after - epoch, "epochs")
        # A heartbeat is due every 2 s: this is added to the half of a session.
        report.goals.append(Goal(f"{about}: answered again, s", longest, session_s / 2 + 2))
        report.goals.append(Goal(f"{about}: second elections", after - epoch - 1, 0))

    with (
        tempfile.TemporaryDirectory(prefix="quorate-bench-") as folder,
        SecureControllers(Path(folder, "q")) as system,
    ):
        run(live(system))
    return report
