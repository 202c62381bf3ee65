"""One sample of a tree, printed as JSON: the other half of `bench.pairs`.

The interpreter of the tree runs this file with the tree on its path, so that `bench` and `quorate`
are the tree's own. Only names that every tree has since the first `bench` may be used here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial

from bench import simulator
from bench.load import measure
from bench.quorum import run, started
from bench.systems import Controllers, Quorate, cpu_seconds


def quorum(make: type[Quorate] | type[Controllers], label: str, seconds: float) -> dict[str, float]:
    """Commits of a fresh quorum of three processes.

    The latency is the client's. The processor time is that of the three nodes together: it depends
    little on what else the machine does.
    """
    found: dict[str, float] = {}
    with started(make) as system:
        for outstanding in (1, 128):
            warm_up = run(measure(system.connect, outstanding, 0.5, 0.0))
            before = sum(map(cpu_seconds, system.nodes.values()))
            sample = run(measure(system.connect, outstanding, seconds, 0.0))
            spent_s = sum(map(cpu_seconds, system.nodes.values())) - before
            assert warm_up.latencies and sample.latencies, "nothing was committed"
            name = f"{label}, {outstanding} outstanding"
            if outstanding == 1:
                found[f"{name}, p50, ms"] = sample.percentile_ms(0.5)
            else:
                found[f"{name}, commits/s"] = sample.rate
            found[f"{name}, processor us per commit"] = spent_s / len(sample.latencies) * 1e6
    return found


def simulated(_: float) -> dict[str, float]:
    """Events per second of processor time, over the worlds of the first seeds."""
    name = "simulated events on one core"
    rate = simulator.worlds(quick=True).value(name, "quorate")
    assert rate is not None
    return {"simulator, events/s": rate}


PARTS: dict[str, Callable[[float], dict[str, float]]] = {
    "kv": partial(quorum, Quorate, "key-value"),
    "controllers": partial(quorum, Controllers, "controllers"),
    "simulator": simulated,
}


def main() -> None:
    what, seconds = sys.argv[1], float(sys.argv[2])
    print(json.dumps(PARTS[what](seconds)))


if __name__ == "__main__":
    main()
