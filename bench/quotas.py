"""AlterClientQuotas over the network: our controllers, and Kafka's with and without its linger."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.load import measure
from bench.quorum import by_turns, run, started
from bench.report import Report
from bench.systems import AbsentError, Controllers, Kafka, Quorate, QuotaHops, System

LINGER = "controller.quorum.append.linger.ms"
NO_LINGER = f"{Kafka.name}, linger 0"
SYSTEMS: dict[str, Callable[[Path], System]] = {
    Controllers.name: Controllers,
    NO_LINGER: partial(Kafka, config={LINGER: 0}),
    Kafka.name: Kafka,
}
OUTSTANDING = (1, 128)
FLOORS = (QuotaHops, Quorate, Controllers)
"""What a lone write costs at least: the hops of its bytes alone, then also the raft engine, then all."""


def quotas(quick: bool) -> Report:
    """Latency and rate of one quota in each request, with 1 and 128 requests outstanding.

    And a lone one beside its lower bounds, by turns.
    """
    report = Report()
    seconds = 2.0 if quick else 10.0
    for name, make in SYSTEMS.items():
        try:
            with started(make) as system:
                for outstanding in OUTSTANDING:
                    sample = run(measure(system.connect, outstanding, seconds, warm_up=3.0))
                    report.add(_rate(outstanding), name, sample.rate, "1/s")
                    report.add(_p50(outstanding), name, sample.percentile_ms(0.5), "ms")
        except AbsentError as error:
            report.absent.append(str(error))
    by_turns(report, "lone p50 and its lower bounds, by turns", FLOORS, quick)
    ours = Controllers.name
    report.hold_ratio("lone p50 over Kafka's, linger 0", _p50(1), NO_LINGER, 1 / 4, ours=ours)
    report.hold_ratio("lone p50 over Kafka's default", _p50(1), Kafka.name, 1 / 50, ours=ours)
    report.hold_ratio(
        "rate with 128 outstanding over Kafka's, linger 0",
        _rate(128),
        NO_LINGER,
        3,
        at_most=False,
        ours=ours,
    )
    return report


def _rate(outstanding: int) -> str:
    return f"AlterClientQuotas, {outstanding} outstanding"


def _p50(outstanding: int) -> str:
    return f"{_rate(outstanding)}, p50"
