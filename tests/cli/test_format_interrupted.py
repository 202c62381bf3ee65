"""An interrupted `storage format`: the directory is not formatted, and the next format is complete."""

import os
from pathlib import Path

import pytest

from quorate.base.ids import ReplicaKey, Uuid
from quorate.formats.records import decode_record
from quorate.formats.snapshot import read_snapshot
from quorate.log_dirs.meta_properties import write_durably

CLUSTER = "Auo5pIz_RXynyYRjkH2osA"
DIRECTORY = "bm9ib2R5IGhhcyB0aGlzMQ"
PARTITION = "__cluster_metadata-0"
CHECKPOINT = f"{PARTITION}/00000000000000000000-0000000000.checkpoint"
BASE = {
    "process.roles": "controller",
    "node.id": "1",
    "listeners": "CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
}
DYNAMIC = {"controller.quorum.bootstrap.servers": "localhost:9093"}
STATIC = {"controller.quorum.voters": "1@localhost:9093"}
STANDALONE_WRITES = ("bootstrap.checkpoint", CHECKPOINT, "meta.properties")


class Node:
    """One node's log directory, and the storage tool for it."""

    def __init__(self, home, quorate):
        self.home, self._quorate = home, quorate
        self.a = home / "a"

    def configure(self, *more):
        values = BASE | {"log.dirs": str(self.a)}
        for some in more:
            values |= some
        path = self.home / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        return path

    def format(self, quorum, *arguments):
        path = self.configure(quorum)
        return self._quorate("storage", "format", "-c", path, "-t", CLUSTER, *arguments)

    def info(self):
        return self._quorate("storage", "info", "-c", self.home / "server.properties")


@pytest.fixture
def node(tmp_path, quorate):
    return Node(tmp_path, quorate)


def files(directory):
    """Files and empty directories below it."""
    found = directory.rglob("*")
    return {str(p.relative_to(directory)) for p in found if p.is_file() or not any(p.iterdir())}


def cut_short(node, monkeypatch, name, killed=False, flags=()):
    """A `format --standalone` whose write of file `name` fails, or never ends."""
    real = Path.replace

    def replace(self, target):
        if target == node.a / name:
            raise OSError(28, "No space left on device", str(target))
        return real(self, target)

    def unlink(self, missing_ok=False):
        """The process is killed: nothing cleans up."""

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace)
        if killed:
            patch.setattr(Path, "unlink", unlink)
        outcome = node.format(DYNAMIC, "--standalone", *flags)
    assert outcome.code == 1
    assert f"Error while writing {node.a / name}: No space left on device" in outcome.err
    return outcome


@pytest.mark.parametrize("name", STANDALONE_WRITES)
def test_an_interrupted_format_counts_as_not_formatted(node, monkeypatch, name):
    cut_short(node, monkeypatch, name)
    outcome = node.info()
    assert outcome.code == 1
    assert f"Found problem:\n  {node.a} is not formatted.\n" in outcome.out
    again = node.format(DYNAMIC, "--standalone")
    assert again.code == 0
    assert files(node.a) == set(STANDALONE_WRITES)


def test_with_json_a_failure_is_text_on_stderr(node, monkeypatch):
    outcome = cut_short(node, monkeypatch, "meta.properties", flags=("--json",))
    assert outcome.out == ""
    said = " ".join(node._quorate("storage", "format", "--help").out.split())
    assert "Print JSON; errors stay text on stderr." in said


@pytest.mark.parametrize("killed", [False, True], ids=["failed", "killed"])
@pytest.mark.parametrize("name", STANDALONE_WRITES)
@pytest.mark.parametrize(
    ("quorum", "flags"),
    [(STATIC, ()), (DYNAMIC, ("-N",))],
    ids=["static voters", "joins later"],
)
def test_the_next_format_removes_the_interrupted_ones_voters(
    node, monkeypatch, quorum, flags, name, killed
):
    cut_short(node, monkeypatch, name, killed=killed)
    assert node.format(quorum, *flags).code == 0
    assert files(node.a) == {"bootstrap.checkpoint", "meta.properties"}
    assert node.info().code == 0


@pytest.mark.parametrize("name", STANDALONE_WRITES)
def test_the_next_format_replaces_the_voters(node, monkeypatch, name):
    cut_short(node, monkeypatch, name)
    assert node.format(DYNAMIC, "-r", "4.0", "-I", f"1@localhost:9093:{DIRECTORY}").code == 0
    assert files(node.a) == set(STANDALONE_WRITES)
    voters = read_snapshot((node.a / CHECKPOINT).read_bytes()).control.voters
    assert voters is not None
    (voter,) = voters
    assert voter.key == ReplicaKey(1, Uuid(b"nobody has this1"))
    values = read_snapshot((node.a / "bootstrap.checkpoint").read_bytes()).values
    assert decode_record(values[0])[0].feature_level == 25  # type: ignore[attr-defined]  # of 4.0


@pytest.mark.parametrize("name", STANDALONE_WRITES)
def test_the_next_format_in_the_other_layout_replaces_the_records(node, monkeypatch, name):
    cut_short(node, monkeypatch, name)
    assert node.format(DYNAMIC, "--standalone", "-r", "4.4").code == 0
    assert files(node.a) == {CHECKPOINT, "meta.properties"}


@pytest.mark.parametrize("name", [CHECKPOINT, "meta.properties"])
def test_an_interrupted_format_of_the_layout_of_4_4_leaves_no_records(node, monkeypatch, name):
    cut_short(node, monkeypatch, name, flags=("-r", "4.4"))
    assert node.format(DYNAMIC, "-N").code == 0
    assert files(node.a) == {"bootstrap.checkpoint", "meta.properties"}


def test_a_data_directory_keeps_no_metadata_partition_of_an_interrupted_format(
    node, monkeypatch, tmp_path
):
    cut_short(node, monkeypatch, "meta.properties")
    elsewhere = {"metadata.log.dir": str(tmp_path / "b")}
    assert node.format(DYNAMIC | elsewhere, "--standalone").code == 0
    assert files(node.a) == {"bootstrap.checkpoint", "meta.properties"}
    assert files(tmp_path / "b") == set(STANDALONE_WRITES)


def test_old_voters_are_durably_removed_before_meta_properties_is_written(node, monkeypatch):
    cut_short(node, monkeypatch, "meta.properties")
    operations = []
    fsync, replace, rmdir = os.fsync, Path.replace, Path.rmdir

    def watched_fsync(descriptor):
        if os.fstat(descriptor).st_ino == node.a.stat().st_ino:
            operations.append("sync")
        fsync(descriptor)

    def watched_replace(self, target):
        operations.append(target.name)
        return replace(self, target)

    def watched_rmdir(self):
        operations.append("remove")
        rmdir(self)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", watched_fsync)
        patch.setattr(Path, "replace", watched_replace)
        patch.setattr(Path, "rmdir", watched_rmdir)
        assert node.format(STATIC).code == 0
    assert operations[operations.index("remove") :] == ["remove", "sync", "meta.properties", "sync"]


@pytest.mark.parametrize(
    ("quorum", "flags"),
    [(DYNAMIC, ["-N"]), (DYNAMIC, ["--standalone"]), (STATIC, []), (STATIC, ["-g"])],
)
def test_a_log_without_meta_properties_is_not_formatted(node, quorum, flags):
    """Kafka's tool does: the node then leads a new cluster with the records of an old one."""
    assert node.format(DYNAMIC, "--standalone").code == 0
    segment = node.a / PARTITION / "00000000000000000000.log"
    write_durably(segment, b"records")
    (node.a / "meta.properties").unlink()
    before = {name: (node.a / name).read_bytes() for name in files(node.a)}
    refused = node.format(quorum, *flags)
    assert refused.code == 1
    assert f"holds a metadata log ({PARTITION}) but no meta.properties" in refused.err
    assert "Put the file back as it was" in refused.err
    assert {name: (node.a / name).read_bytes() for name in files(node.a)} == before
