"""`quorate pipeline audit`: what it prints, and its exit codes."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest

from cli.json_schema import misfits
from metadata.samples import DATA
from quorate.cli import main
from quorate.formats.batch import encode_batch
from quorate.spark.audit import audit_here
from spark.fleet import STATIC
from spark.logs import NO_OP, START_MS, batches, log_directory
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

    def here(spark, paths, *, notify, **words):
        notify("auditing")
        return audit_here(paths, **words)

    monkeypatch.setattr(SESSIONS, "session", lambda *_, **__: Nothing())
    monkeypatch.setattr(JOB, "audit", here)

    def run(*arguments):
        capfd.readouterr()
        words = ["pipeline", "audit", "--quiet", *map(str, arguments)]
        code = main.run(words)
        out, err = capfd.readouterr()
        if out and "--json" in words:
            assert misfits(words, out) == []
        return code, out, err

    return run


def test_sound_replicas_are_exit_code_0(audit):
    code, out, err = audit(DATA / "e-truncated")
    assert (code, err) == (0, "")
    assert "committed up to offset 362 (inclusive), epoch 6" in out
    assert out.endswith("all replicas are sound\n")


def test_an_uncommitted_tail_is_reported_and_is_no_failure(audit):
    code, out, _ = audit(DATA / "d-divergent")
    assert code == 0
    assert "node 4: uncommitted-tail (offsets 228 to 316, inclusive)" in out
    assert "divergent uncommitted tail: the offsets 307 to 316 of epoch 4" in out
    assert out.endswith("6 sound, 1 uncommitted-tail\n")


def test_damage_is_exit_code_1(audit, tmp_path):
    cluster = copy_of("f-static-v0", tmp_path)
    change(log_of(cluster, 2), lambda old: flip(old, 1000))
    code, out, _ = audit(cluster, "--json", "--out", tmp_path / "out")
    report = json.loads(out)
    assert (code, report["ok"]) == (1, False)
    assert report == json.loads((tmp_path / "out" / "report.json").read_text())
    assert [one["cluster_id"] for one in report["clusters"]] == [STATIC]
    states = {one["node_id"]: one["state"] for one in report["clusters"][0]["replicas"]}
    assert states == {1: "sound", 2: "damaged", 3: "sound", 11: "sound"}


@pytest.mark.parametrize(
    ("first", "line"),
    [
        (
            1,
            "committed up to offset 0 (inclusive), epoch 1; from offset 1 on the replicas contradict",
        ),
        (
            3,
            "committed up to offset 2 (inclusive), epoch 1; from offset 3 on the replicas contradict",
        ),
    ],
)
def test_the_committed_end_is_not_above_the_first_contradiction(audit, tmp_path, first, line):
    logs = [encode_batch(n, 1, START_MS, [NO_OP]) for n in range(first)]
    logs[:1] = batches(())
    for node in (1, 2):
        other = encode_batch(first, 1, START_MS + node, [NO_OP])
        log_directory(tmp_path / f"node{node}", {0: b"".join([*logs, other])}, node=node)
    code, out, _ = audit(tmp_path)
    assert code == 1 and f"cluster cluster-a: {line} each other\n" in out


@pytest.mark.parametrize("name", ["node2.tar", "node2.tar.gz", "node2.zip"])
def test_an_archive_that_is_cut_off_has_a_verdict_and_the_others_are_audited(audit, tmp_path, name):
    cluster = copy_of("e-truncated", tmp_path)
    archive = cluster / name
    format, _, packed = name.partition(".")[2].partition(".")
    shutil.make_archive(str(cluster / "node2"), f"{packed}{format}", cluster / "node2")
    shutil.rmtree(cluster / "node2")
    archive.write_bytes(archive.read_bytes()[:3000])
    code, out, err = audit(cluster)
    assert (code, err) == (1, "")
    assert f"unknown node: damaged (no log) {archive}" in out
    assert f"damage (archive): {archive} is not a sound archive: " in out
    assert f"[{archive}, byte 3000]. What follows in the archive was not audited. Copy" in out
    assert "committed up to offset 362 (inclusive), epoch 6" in out
    kept = not name.endswith("tar")  # the log's beginning stands before the cut
    begun = re.search(
        rf"damaged \(offsets 0 to \d\d, inclusive\) {archive}!__cluster_metadata-0", out
    )
    assert (begun is not None) == kept
    assert out.endswith(f"{1 + kept} damaged, 6 sound\n")
    code, out, err = audit(cluster, "--fail-fast")
    assert (code, out) == (1, "") and f"{archive} is not a sound archive: " in err
    code, out, _ = audit(archive)
    assert code == 1 and out.endswith(f"{1 + kept} damaged\n")


def test_a_side_file_that_cannot_be_unpacked_is_damage_of_its_replica(audit, tmp_path):
    cluster = copy_of("d-divergent", tmp_path)
    archive = Path(shutil.make_archive(str(cluster / "node2"), "zip", cluster / "node2"))
    shutil.rmtree(cluster / "node2")
    with zipfile.ZipFile(archive) as opened:
        names = [name for name in opened.namelist() if name.endswith("quorum-state")]
        before = {name: opened.read(name) for name in opened.namelist()}
    with zipfile.ZipFile(archive, "w") as out:
        for name, content in before.items():
            out.writestr(name, content)
    change(archive, lambda old: old.replace(before[names[0]], before[names[0]].swapcase(), 1))
    code, out, err = audit(cluster)
    assert (code, err) == (1, "")
    assert f"damage (quorum-state): {archive}!{names[0]}: all bytes could be unpacked, but" in out
    assert "1 damaged" in out and "node 1: sound" in out


@pytest.mark.parametrize(
    ("path", "message"),
    [("missing", "no such file or directory"), ("a-first/node1/meta.properties", "not the name")],
)
def test_a_wrong_path_is_exit_code_2(audit, path, message):
    code, out, err = audit(DATA / path)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_a_path_that_does_not_exist_is_refused_before_spark_starts(audit, monkeypatch, tmp_path):
    monkeypatch.setattr(SESSIONS, "session", lambda *_, **__: pytest.fail("Spark is started"))
    code, out, err = audit(tmp_path / "nowhere", tmp_path / "nothing")
    assert (code, out) == (2, "")
    assert err == f"{tmp_path}/nowhere: there is no such file or directory\n"


def test_fail_fast_names_file_and_byte(audit, tmp_path):
    cluster = copy_of("f-static-v0", tmp_path)
    file = log_of(cluster, 2)
    change(file, lambda old: flip(old, 1000))
    code, out, err = audit(cluster, "--fail-fast")
    assert (code, out) == (1, "")
    assert f"{file}: at byte" in err
