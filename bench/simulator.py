"""Simulated events and hours a second on one core, with faults and all checks on."""

from __future__ import annotations

from bench.report import Report

from quorate.sim.run.run import checked, run_seed

EVENTS = 100_000
"""The goal: events a second."""
HOURS = 400
"""The goal: hours of a simulated cluster in an hour."""


def worlds(quick: bool) -> Report:
    """Processor time of worlds drawn from seeds: of each seed the best of a few runs."""
    report = Report()
    events = simulated_s = processor_s = 0.0
    for seed in range(20 if quick else 200):
        runs = [run_seed(seed, checked()) for _ in range(2 if quick else 3)]
        failed = runs[0].failure
        if failed is not None:
            raise SystemExit(f"seed {seed} failed: {failed.check}: {failed.message}")
        events += runs[0].events
        simulated_s += runs[0].simulated_ms / 1000
        processor_s += min(run.seconds for run in runs)
    rate = report.add("simulated events on one core", "quorate", events / processor_s, "1/s")
    hours = simulated_s / processor_s
    report.add("simulated hours in an hour on one core", "quorate", hours, "h")
    report.hold("simulated events a second on one core", rate, EVENTS)
    report.hold("simulated cluster-hours in an hour", hours, HOURS)
    return report
