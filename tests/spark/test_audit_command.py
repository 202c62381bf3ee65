"""`quorate pipeline audit`: what it prints, and its exit codes."""

from __future__ import annotations

import importlib
import json

import pytest

from metadata.samples import DATA
from quorate.cli import main
from quorate.spark.audit import audit_here
from spark.fleet import STATIC
from spark.replica_dirs import change, copy_of, flip, log_of
from spark.shared import SESSIONS

JOB = importlib.import_module("quorate.spark.audit.job")


class Nothing:
    """In place of a session: what is tested here is the command, not Spark."""

    def stop(self):
        """There is nothing to stop."""


@pytest.fixture
def audit(monkeypatch, capfd):
    """Runs `quorate pipeline audit ...` in this process: (exit code, stdout, stderr)."""

    def here(spark, paths, *, tell, **words):
        tell("auditing")
        return audit_here(paths, **words)

    monkeypatch.setattr(SESSIONS, "session", lambda *_, **__: Nothing())
    monkeypatch.setattr(JOB, "audit", here)

    def run(*arguments):
        capfd.readouterr()
        code = main.run(["pipeline", "audit", "--quiet", *map(str, arguments)])
        out, err = capfd.readouterr()
        return code, out, err

    return run


def test_all_is_well(audit):
    code, out, err = audit(DATA / "e-truncated")
    assert (code, err) == (0, "")
    assert "committed up to offset 363, epoch 6" in out
    assert out.endswith("all is well\n")


def test_an_uncommitted_tail_is_told_and_is_no_failure(audit):
    code, out, _ = audit(DATA / "d-divergent")
    assert code == 0
    assert "node 4: uncommitted-tail (offsets 228 to 317)" in out
    assert "divergent uncommitted tail: the offsets 307 to 316 of epoch 4" in out
    assert out.endswith("6 sound, 1 uncommitted-tail\n")


def test_damage_is_exit_code_1(audit, tmp_path):
    cluster = copy_of("f-static-v0", tmp_path)
    change(log_of(cluster, 2), lambda old: flip(old, 1000))
    code, out, _ = audit(cluster, "--json", "--out", tmp_path / "out")
    told = json.loads(out)
    assert (code, told["ok"]) == (1, False)
    assert told == json.loads((tmp_path / "out" / "report.json").read_text())
    assert [one["cluster_id"] for one in told["clusters"]] == [STATIC]
    states = {one["node_id"]: one["state"] for one in told["clusters"][0]["replicas"]}
    assert states == {1: "sound", 2: "damaged", 3: "sound", 11: "sound"}


@pytest.mark.parametrize(
    ("path", "says"),
    [("missing", "no such file or directory"), ("a-first/node1/meta.properties", "not the name")],
)
def test_a_wrong_path_is_exit_code_2(audit, path, says):
    code, out, err = audit(DATA / path)
    assert (code, out) == (2, "")
    assert says in err
    assert "Traceback" not in err


def test_fail_fast_names_file_and_byte(audit, tmp_path):
    cluster = copy_of("f-static-v0", tmp_path)
    file = log_of(cluster, 2)
    change(file, lambda old: flip(old, 1000))
    code, out, err = audit(cluster, "--fail-fast")
    assert (code, out) == (1, "")
    assert f"{file}: at byte" in err
