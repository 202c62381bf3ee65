"""docs/conformance.md holds every raft scenario of Kafka 4.3.1 once, each with a test that exists.

The names themselves are pinned by a checksum: a scenario cannot be dropped for another.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TABLE = HERE.parent / "docs" / "conformance.md"
SCENARIOS = {
    "KafkaRaftClientTest": 122,
    "KafkaRaftClientReconfigTest": 58,
    "KafkaRaftClientSnapshotTest": 39,
    "KafkaRaftClientPreVoteTest": 24,
    "KafkaRaftClientFetchTest": 14,
    "KafkaRaftClientAutoJoinTest": 6,
    "KafkaRaftClientClusterAuthTest": 4,
    "KafkaRaftClientDriverTest": 2,
    "RaftEventSimulationTest": 9,
    "QuorumStateTest": 98,
    "LeaderStateTest": 25,
    "VoterSetTest": 20,
    "VoterSetHistoryTest": 9,
    "KRaftControlRecordStateMachineTest": 8,
    "KafkaRaftLogTest": 48,
    "FileQuorumStateStoreTest": 7,
    "BatchAccumulatorTest": 18,
    "RecordsIteratorTest": 8,
    "SnapshotWriterReaderTest": 4,
}
NAMES_SHA256 = "2012f0b776e8b98a2ebf9d3415c638b55a18b2b36cdb52592e539b7ca56fb1d3"
AT_LEAST_MAPPED = 0.95
TEST = re.compile(r"`(test_\w+\.py)::(test_\w+)`")
LEAST_REASON = 40


@cache
def table() -> dict[str, list[tuple[str, str]]]:
    """(scenario, second cell) of each row, by class."""
    rows: dict[str, list[tuple[str, str]]] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if heading := re.fullmatch(r"## (\w+) \((\d+)\)", line):
            name = heading[1]
            assert name not in rows, f"{name} has two tables"
            rows[name] = []
        elif (row := re.fullmatch(r"\| (\w+) \| (.+) \|", line)) and row[1] != "Scenario":
            rows[name].append((row[1], row[2]))
    return rows


@cache
def functions_of(file_name: str) -> set[str]:
    """The functions of the one test file of this name; it is not imported."""
    paths = list(HERE.rglob(file_name))
    assert len(paths) == 1, f"{file_name}: {len(paths)} files of this name"
    tree = ast.parse(paths[0].read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def test_every_scenario_stands_there_once() -> None:
    assert {name: len(rows) for name, rows in table().items()} == SCENARIOS
    for name, rows in table().items():
        twice = [scenario for scenario, n in Counter(s for s, _ in rows).items() if n > 1]
        assert not twice, f"{name}: {twice}"
    names = sorted(f"{name}.{s}" for name, rows in table().items() for s, _ in rows)
    assert hashlib.sha256("\n".join(names).encode()).hexdigest() == NAMES_SHA256


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_test_exists(name: str) -> None:
    for scenario, cell in table()[name]:
        named = TEST.findall(cell)
        assert named or cell.startswith("not applicable: "), f"{scenario}: {cell}"
        missing = [f"{file}::{test}" for file, test in named if test not in functions_of(file)]
        assert not missing, f"{scenario}: there is no {missing}"


def test_what_does_not_apply_has_a_reason() -> None:
    rows = [row for rows in table().values() for row in rows]
    left_out = [(s, cell) for s, cell in rows if cell.startswith("not applicable: ")]
    for scenario, cell in left_out:
        assert len(cell.removeprefix("not applicable: ")) >= LEAST_REASON, scenario
    assert len(left_out) <= (1 - AT_LEAST_MAPPED) * len(rows)


def test_the_text_counts_right() -> None:
    text = TABLE.read_text(encoding="utf-8")
    rows = [cell for rows in table().values() for _, cell in rows]
    left_out = sum(cell.startswith("not applicable: ") for cell in rows)
    assert f"with {len(rows)} named scenarios in {len(SCENARIOS)} classes" in text
    assert f"{len(rows) - left_out} are mapped, {left_out} do not apply" in text
    for name, count in SCENARIOS.items():
        assert f"## {name} ({count})" in text
