"""The verdict on every invocation of Kafka's tests, kept in manifest.json beside this file.

Per invocation: the outcome on our controllers and on Java's as processes of their own, the seconds on ours.
A failure has JUnit's reason too, and `why`, its cause, which is written by hand. A verdict follows:

- passes: on ours.
- fails on both: also on Java controllers; the test looks into the controller's process, or is broken.
- fails here: passes on Java controllers. A defect of ours, with its reason.
- differs by design: passes on Java controllers, and we do otherwise on purpose. `by_design` is
  written by hand.
- unknown: fails on ours, and Java's outcome is not recorded.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka_suite.suite import Invocation

KINDS = ("passes", "fails on both", "differs by design", "fails here", "unknown")
FILE = Path(__file__).with_name("manifest.json")


@dataclass
class Manifest:
    """`rows`: class -> invocation -> its facts."""

    release: str = "4.3.1"
    rows: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)

    def record(self, controllers: str, found: Iterable[Invocation]) -> None:
        """Take results. Invocations that were aborted say nothing. The best of several runs counts."""
        for one in found:
            if one.outcome == "aborted":
                continue
            row = self.rows.setdefault(one.test_class, {}).setdefault(one.name, {})
            if row.get(controllers) == "passed":
                continue
            row[controllers] = one.outcome
            row.setdefault("id", one.unique_id)
            if controllers == "quorate":
                row["seconds"] = round(one.seconds, 1)
                row.pop("reason", None)
                if one.outcome == "failed":
                    row["reason"] = one.reason
                else:
                    row.pop("why", None)
                    row.pop("by_design", None)

    def verdict(self, row: dict[str, Any]) -> str:
        if row.get("quorate") == "passed":
            return "passes"
        if row.get("by_design"):
            return "differs by design"
        java = row.get("java")
        if java is None:
            return "unknown"
        return "fails here" if java == "passed" else "fails on both"

    def passing(self) -> list[tuple[str, str, str]]:
        """(class, invocation, JUnit's unique id) of what passes."""
        return [
            (name, invocation, row["id"])
            for name, rows in sorted(self.rows.items())
            for invocation, row in sorted(rows.items())
            if self.verdict(row) == "passes" and row.get("id")
        ]

    def unexplained(self) -> list[str]:
        """What does not pass and has no cause."""
        return [
            f"{name}.{invocation}"
            for name, rows in sorted(self.rows.items())
            for invocation, row in sorted(rows.items())
            if self.verdict(row) != "passes" and not row.get("why")
        ]

    def table(self) -> str:
        """One line per class, and the totals."""
        totals: Counter[str] = Counter()
        lines = []
        for name, rows in sorted(self.rows.items()):
            counts = Counter(self.verdict(row) for row in rows.values())
            totals.update(counts)
            lines.append(
                f"{name.rsplit('.', 1)[-1]:45}" + "".join(f"{counts[k]:>19}" for k in KINDS)
            )
        head = f"{'Kafka ' + self.release:45}" + "".join(f"{kind:>19}" for kind in KINDS)
        foot = f"{'total':45}" + "".join(f"{totals[kind]:>19}" for kind in KINDS)
        return "\n".join((head, *lines, foot))


def load() -> Manifest:
    if not FILE.exists():
        return Manifest()
    kept = json.loads(FILE.read_text())
    return Manifest(kept["release"], kept["classes"])


def save(manifest: Manifest) -> None:
    kept = {"release": manifest.release, "classes": manifest.rows}
    FILE.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
