"""Ask a Java controller and ours the same seeded requests: `make differential`.

PYTHONPATH=tests python -m differential --seeds 0..20 --requests 3000   # resumable
PYTHONPATH=tests python -m differential --seeds 7 --requests 3000 --show
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from differential.run import run_seed
from interop.java import ROOT
from quorate.sim.run.version import source_digest

DEFAULT_OUT = ROOT / "build" / "differential.jsonl"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m differential", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seeds", default="0..10", help="one seed, or FIRST..END (exclusive)")
    parser.add_argument("--requests", type=int, default=3000, help="of each seed")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="a line for each seed")
    parser.add_argument("--show", action="store_true", help="print each request")
    parser.add_argument("--go-on", action="store_true", help="also after responses that differ")
    parser.add_argument("--only", default="", help="of some kinds: tokens,acls")
    given = parser.parse_args()
    first, _, end = given.seeds.partition("..")
    seeds = range(int(first), int(end) if end else int(first) + 1)
    code, done = source_digest(), set()
    if given.out.exists() and not given.show:
        for line in given.out.read_text().splitlines():
            row = json.loads(line)
            if row["code"] == code and row["requests"] >= given.requests and not row["lines"]:
                done.add(row["seed"])
    failed, totals = 0, Counter[str]()
    for seed in seeds:
        if seed in done:
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="differential-") as root:
            show = print if given.show else None
            found = run_seed(
                Path(root), seed, given.requests, show, go_on=given.go_on, only=given.only
            )
        took = time.monotonic() - began
        verdict = "DIFFERENT" if found.lines else "same"
        if found.fault:
            verdict += ", until a known defect of Kafka's"
        print(
            f"seed {seed}: {verdict}, {found.requests} requests, {found.records} records, "
            f"{took:.0f} s",
            flush=True,
        )
        for line in found.lines:
            print(f"    {line}", flush=True)
        failed += bool(found.lines)
        totals.update(found.kinds)
        row = {
            "seed": seed,
            "requests": found.requests,
            "records": found.records,
            "code": code,
            "lines": found.lines,
            "kinds": dict(found.kinds),
        }
        given.out.parent.mkdir(parents=True, exist_ok=True)
        with given.out.open("a") as file:
            file.write(json.dumps(row) + "\n")
    print(f"{failed} of {len(seeds)} seeds differ, {len(done)} were done before")
    for name, count in sorted(totals.items()):
        print(f"  {name}: {count}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
