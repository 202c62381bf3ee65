"""Generate docs/conformance.md from the markers on the tests: `python tools/conformance.py`.

`--check` compares the page with the markers and changes nothing.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
TESTS: Final = ROOT / "tests"
NAMES: Final = TESTS / "conformance" / "kafka_scenarios.toml"
PAGE: Final = ROOT / "docs" / "conformance.md"
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_TEXT: Final = """\
# Kafka's scenarios and our tests

Kafka 4.3.1 tests its raft layer (package `org.apache.kafka.raft`) and its controller. Here are {count}
named scenarios in {classes} of its classes. Each appears once, under the name of its
class, with the test of ours that proves the same. Where the concept does not exist in Quorate, the row gives
the reason and the test that holds the guarantee instead. {mapped} are mapped, {left_out} do not apply.

`python tools/conformance.py` generates this page from the markers `@kafka_scenario` and `@kafka_guarantee`
on the tests and from [kafka_scenarios.toml](../tests/conformance/kafka_scenarios.toml).
`tests/test_conformance.py` compares them.

The tests are our own, written after what each scenario checks; no code is Kafka's. A scenario that Kafka
runs with many parameters is one parametrised test here, and some tests are one table for several scenarios.
Where behaviour differs on purpose, the test says so:

- Java throws or stops on a peer's unauthorized answer, a second leader in one epoch, or a resignation of
  the wrong epoch. Quorate refuses each with a note, and the replica goes on.
- Writing is asynchronous: the replica sends what promises durability after the disk has confirmed the
  write.
- A pre-vote that times out leads back to Unattached or Follower. As in Kafka, the next attempt starts at
  once when the remaining deadline has passed.
- Two voter sets overlap in Quorate only if they differ in at most one voter. Kafka also accepts the
  exchange of one voter for another, whose majorities need not overlap. Quorate still reads such a log.
"""


Marks = dict[tuple[str, str, str], list[str]]
"""The tests that carry a marker, by (marker, class, scenario)."""


def scenarios() -> dict[str, dict[str, str]]:
    """By class: the scenarios of Kafka in its order, and why one does not apply ("": it does)."""
    return tomllib.loads(NAMES.read_text(encoding="utf-8"))


def marked(path: Path) -> Iterator[tuple[str, str, str, str]]:
    """(marker, class, scenario, test) of each marker in a test file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, _FUNCTIONS):
            continue
        for call in node.decorator_list:
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
                continue
            if call.func.id in ("kafka_scenario", "kafka_guarantee"):
                kafka_class, *names = (ast.literal_eval(arg) for arg in call.args)
                yield from ((call.func.id, kafka_class, name, node.name) for name in names)


def marks() -> Marks:
    """Every marker of the tests. Raises ValueError for a scenario that Kafka does not have."""
    found: Marks = defaultdict(list)
    known = {(kafka_class, name) for kafka_class, names in scenarios().items() for name in names}
    for path in sorted(TESTS.rglob("test_*.py")):
        for marker, kafka_class, name, test in marked(path):
            if (kafka_class, name) not in known:
                raise ValueError(f"{path.name}::{test}: Kafka has no {kafka_class}.{name}")
            found[marker, kafka_class, name].append(f"`{path.name}::{test}`")
    return found


def page() -> str:
    """The text of docs/conformance.md. Raises ValueError for a scenario without a test."""
    known, found = scenarios(), marks()
    reasons = [reason for names in known.values() for reason in names.values()]
    left_out = sum(bool(reason) for reason in reasons)
    lines = [
        _TEXT.format(
            count=len(reasons),
            classes=len(known),
            mapped=len(reasons) - left_out,
            left_out=left_out,
        )
    ]
    for kafka_class, names in known.items():
        lines += [f"## {kafka_class} ({len(names)})", "", "| Scenario | Our test |", "|---|---|"]
        lines += [
            f"| {name} | {_cell((kafka_class, name), reason, found)} |"
            for name, reason in names.items()
        ]
        lines.append("")
    return "\n".join(lines)


def _cell(scenario: tuple[str, str], reason: str, found: Marks) -> str:
    tests, guards = found["kafka_scenario", *scenario], found["kafka_guarantee", *scenario]
    if reason:
        if tests:
            raise ValueError(f"{'.'.join(scenario)} does not apply, and yet {tests} prove it")
        return f"not applicable: {reason}" + (f" ({', '.join(guards)})" if guards else "")
    if not tests:
        raise ValueError(f"{'.'.join(scenario)}: no test carries @kafka_scenario with its name")
    return ", ".join(tests)


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(
            0 if PAGE.read_text(encoding="utf-8") == page() else "run: python tools/conformance.py"
        )
    PAGE.write_text(page(), encoding="utf-8")
