"""Run Kafka's own tests with our controllers, or with Java's as the control: `make kafka-suite`.

PYTHONPATH=tests python -m kafka_suite run                      # every class, resumable
PYTHONPATH=tests python -m kafka_suite run ClusterToolTest      # some, by the end of their name
PYTHONPATH=tests python -m kafka_suite run --controllers java   # the control
PYTHONPATH=tests python -m kafka_suite run --tries 3            # what fails runs again, twice at most
PYTHONPATH=tests python -m kafka_suite record                   # results into the manifest
PYTHONPATH=tests python -m kafka_suite show                     # the manifest as a table
"""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from kafka_suite.manifest import Manifest, load, save
from kafka_suite.suite import default_out, read, reports, run_class, test_classes


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m kafka_suite", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("verb", choices=("run", "record", "show", "list"))
    parser.add_argument("classes", nargs="*", help="by the end of their name; all without one")
    parser.add_argument("--controllers", choices=("quorate", "java"), default="quorate")
    parser.add_argument(
        "--tries", type=int, default=1, help="how often a test may run until it passes"
    )
    parser.add_argument("--out", type=Path, default=default_out(), help="where reports are kept")
    given = parser.parse_intermixed_args()
    if given.verb == "show":
        print(load().table())
        return 0
    known = test_classes()
    chosen = [c for c in known if not given.classes or c.endswith(tuple(given.classes))]
    if not chosen:
        parser.error(f"no class ends with {', '.join(given.classes)}")
    if given.verb == "list":
        print("\n".join(chosen))
        return 0
    if given.verb == "record":
        return _record(chosen, given.out)
    return _run(chosen, given.controllers, given.out, given.tries)


def _run(classes: list[str], controllers: str, out: Path, tries: int) -> int:
    totals: Counter[str] = Counter()
    for number, name in enumerate(classes, 1):
        began = time.monotonic()
        found = run_class(name, controllers, out, tries)
        counts = Counter(one.outcome for one in found)
        totals.update(counts)
        text = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
        took = time.monotonic() - began
        print(f"[{number}/{len(classes)}] {name}: {text or 'no result'} ({took:.0f} s)", flush=True)
        for one in found:
            if one.outcome == "failed":
                print(f"    {one.name}: {one.reason}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(totals.items())))
    return 1 if totals["failed"] else 0


def _record(classes: list[str], out: Path) -> int:
    manifest: Manifest = load()
    for name in classes:
        for controllers in ("quorate", "java"):
            for report in reports(name, controllers, out):
                manifest.record(controllers, read(report))
    save(manifest)
    print(manifest.table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
