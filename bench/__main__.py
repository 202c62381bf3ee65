"""Measure Quorate beside its peers: `python -m bench [names] [--quick] [--json] [--out FILE]`.

`python -m bench pairs BEFORE AFTER` compares two worktrees of Quorate.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from bench import (
    blocks,
    controllers,
    engine,
    limits,
    pairs,
    quorum,
    quotas,
    security,
    simulator,
    spark_audit,
    spark_decode,
    spark_history,
    spark_scale,
    spark_stream,
    tools,
)
from bench.report import Report

MEASURES: dict[str, Callable[[bool], Report]] = {
    "commits": quorum.commits,
    "hops": quorum.hops,
    "slow-disk": quorum.slow_disk,
    "quotas": quotas.quotas,
    "entities": quorum.entities,
    "keys": quorum.keys,
    "failover": quorum.failover,
    "steady": quorum.steady,
    "idle": quorum.idle,
    "brokers": limits.brokers,
    "partitions": limits.partitions,
    "controllers": controllers.controllers,
    "acls": limits.acls,
    "blocks": blocks.blocks,
    "connections": limits.connections,
    "secure-commits": security.secure_commits,
    "handshakes": security.handshakes,
    "failing-logins": security.failing_logins,
    "reconnects": security.reconnects,
    "tools": tools.tools,
    "many-topics": tools.many_topics,
    "dump-log": tools.dump_log,
    "codec": engine.codec_rates,
    "steps": engine.step_costs,
    "image": engine.image_sizes,
    "worlds": simulator.worlds,
    "spark": spark_decode.spark_decode,
    "spark-audit": spark_audit.spark_audit,
    "spark-scale": spark_scale.spark_scale,
    "spark-history": spark_history.spark_history,
    "spark-stream": spark_stream.spark_stream,
}


def main() -> int:
    if sys.argv[1:2] == ["pairs"]:
        return pairs.main(sys.argv[2:])
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"any of {', '.join(MEASURES)}; all without one")
    parser.add_argument("--quick", action="store_true", help="seconds, for a first look")
    parser.add_argument("--json", action="store_true", help="print JSON in place of the tables")
    parser.add_argument("--out", type=Path, help="write the JSON to a file, too")
    given = parser.parse_args()
    if unknown := [name for name in given.names if name not in MEASURES]:
        parser.error(f"unknown: {', '.join(unknown)}; known are {', '.join(MEASURES)}")
    report = Report()
    for name in given.names or MEASURES:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        found = MEASURES[name](given.quick)
        report.extend(found)
        if not given.json:  # each as it comes: a run that is cut short has said something
            print(found.as_text(), end="\n\n", flush=True)
        if given.out:
            given.out.write_text(json.dumps(report.as_json(), indent=2) + "\n")
    if given.json:
        print(json.dumps(report.as_json(), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
