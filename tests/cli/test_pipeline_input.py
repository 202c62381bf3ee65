"""The input and the exit code of jobs, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.cli.pipeline.job import findings_code, input_paths
from quorate.cli.pipeline.summary import cluster_lines
from quorate.spark.tables.summary import ClusterSummary, IngestSummary


@pytest.mark.parametrize(("found", "asked", "code"), [(1, False, 1), (1, True, 0), (0, False, 0)])
def test_findings_are_exit_code_1_unless_0_is_asked_for(found: int, asked: bool, code: int):
    assert findings_code(found, {"findings_exit_zero": asked}) == code


def test_files_beside_directories_are_left_out_by_name(tmp_path: Path, capsys):
    (tmp_path / "node1").mkdir()
    names = ("notes.txt", "00000000000000000000.log", "old.tar.gz")
    for name in names:
        (tmp_path / name).touch()
    entries = sorted(str(path) for path in tmp_path.iterdir())
    stray = str(tmp_path / "notes.txt")
    assert input_paths(entries) == [path for path in entries if path != stray]
    said = capsys.readouterr().err
    assert said == f"left out: {stray}: the name of no segment, snapshot or archive\n"
    assert input_paths([stray]) == [stray]  # refused by its name, later


def test_the_offsets_of_the_summary_are_inclusive():
    summary = ClusterSummary(records=3, log_end_offset=3, applied_end_offset=2, unproven=[(1, 3)])
    assert cluster_lines(IngestSummary("w", {"a": summary})) == [
        "  a: 3 records, 0 events; the log's last offset is 2, the state includes offset 1",
        "    not known to be committed: offsets 1 to 2 (inclusive); a later log may replace them",
    ]
