"""The meta.properties of all log directories: one node, one cluster, unique directory ids."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from conformance.marker import kafka_scenario
from quorate.base.ids import ZERO_UUID, Uuid, is_reserved_directory
from quorate.base.notes import Warn
from quorate.config.node_file import load_config
from quorate.formats.meta_properties import MetaProperties, decode_meta_properties
from quorate.log_dirs.meta_properties import (
    IdentityError,
    load_ensemble,
    load_identity,
    make_durable_directory,
    new_directory_id,
    verify,
    write_meta_properties,
)

ONE, TWO = Uuid(b"1" * 16), Uuid(b"2" * 16)


@pytest.fixture
def node(tmp_path):
    """A configuration with two directories, and a function that formats one of them."""
    dirs = [tmp_path / "a", tmp_path / "b"]
    for directory in dirs:
        directory.mkdir()
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=controller\nnode.id=1\nlisteners=CONTROLLER://localhost:9093\n"
        "controller.listener.names=CONTROLLER\n"
        "controller.quorum.bootstrap.servers=localhost:9093\n"
        f"log.dirs={dirs[0]},{dirs[1]}\n"
    )
    return load_config(path)


def put(node, index, **changes):
    values: dict[str, Any] = {"cluster_id": "c", "node_id": 1, "directory_id": (ONE, TWO)[index]}
    values |= changes
    write_meta_properties(node.log_dirs[index], MetaProperties(**values))


def test_the_identity_comes_from_the_metadata_directory(node):
    put(node, 0)
    put(node, 1)
    identity = load_identity(node)
    assert (identity.cluster_id, identity.node_id, identity.directory_id) == ("c", 1, ONE)


@kafka_scenario("KafkaRaftClientTest", "nodeDirectoryId")
def test_a_missing_directory_id_is_generated_and_kept(node):
    put(node, 0, directory_id=None)
    put(node, 1)
    first = load_identity(node).directory_id
    assert first not in (ZERO_UUID, TWO)
    assert load_identity(node).directory_id == first


def test_unformatted_directories_are_refused(node):
    with pytest.raises(IdentityError, match=r"No readable meta.properties files found") as caught:
        load_identity(node)
    assert "'quorate storage format' first" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("version=2\ncluster.id=c\nnode.id=1\n", ("version 2", "a newer release")),
        (
            "version=1\ncluster.id=c\nnode.id=1\ndirectory.id=abc\n",
            ("directory.id: 'abc'", "Put the file back"),
        ),
        ("", ("node ID not found", "Put the file back")),
        ("version=1\nnode.id=1\n", ("cluster.id was not found", "Put the file back")),
    ],
)
def test_a_damaged_file_is_to_be_restored_not_formatted(node, text, words):
    for directory in node.log_dirs:
        Path(directory, "meta.properties").write_text(text)
    with pytest.raises(IdentityError) as caught:
        load_identity(node)
    for word in (node.log_dirs[0], *words):
        assert word in str(caught.value)
    assert "storage format" not in str(caught.value)


def test_one_unformatted_directory_is_refused(node):
    put(node, 0)
    with pytest.raises(IdentityError, match=r"No `meta.properties` found in .*/b"):
        load_identity(node)


@kafka_scenario("KafkaRaftClientTest", "nodeDirectoryId")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"cluster_id": "d"},
            r"Invalid cluster.id in: .*/b/meta.properties. Expected c, but read d",
        ),
        ({"node_id": 2}, "Stored node id 2 doesn't match previous node id 1 in .*/b/meta"),
        (
            {"directory_id": ONE},
            "Duplicate directory ID .* It was the ID of .*/a, but also of .*/b",
        ),
        ({"directory_id": ZERO_UUID}, "Invalid reserved directory ID AAAAAAAAAAAAAAAAAAAAAA"),
    ],
)
def test_directories_of_different_nodes_are_refused(node, changes, message):
    put(node, 0)
    put(node, 1, **changes)
    with pytest.raises(IdentityError, match=message):
        load_identity(node)


def test_a_metadata_log_in_another_directory_is_refused(node, tmp_path):
    put(node, 0)
    put(node, 1)
    (tmp_path / "b" / "__cluster_metadata-0").mkdir()
    with pytest.raises(IdentityError, match="Found unexpected metadata location"):
        load_identity(node)


def test_an_unreadable_file_matters_in_the_metadata_directory_only(node, tmp_path):
    put(node, 0)
    put(node, 1)
    assert load_identity(node).notes == ()
    (tmp_path / "b" / "meta.properties").write_text("version=1\n")
    identity = load_identity(node)
    assert identity.directory_id == ONE
    (note,) = identity.notes
    assert isinstance(note, Warn)
    assert f"{tmp_path}/b/meta.properties: cluster.id was not found" in note
    assert "is ignored" in note
    (tmp_path / "a" / "meta.properties").write_text("version=7\n")
    put(node, 1)
    with pytest.raises(IdentityError, match=r"I/O error in metadata log directory .*version 7"):
        load_identity(node)


@pytest.mark.parametrize("how", ["a directory", "a pipe"])
def test_a_path_that_is_not_a_regular_file_is_refused_at_once(node, tmp_path, how):
    """Regression: opening a named pipe blocked the start for ever, without a message."""
    put(node, 0)
    put(node, 1)
    path = tmp_path / "a" / "meta.properties"
    path.unlink()
    (os.mkfifo if how == "a pipe" else os.mkdir)(path)
    assert load_ensemble(node.log_dirs).failed == {
        str(tmp_path / "a"): f"{path}: Not a regular file"
    }


def test_every_directory_is_checked_for_the_expected_cluster(node):
    put(node, 0)
    ensemble = load_ensemble(node.log_dirs)
    verify(ensemble, "c", 1)
    with pytest.raises(IdentityError, match="Expected other, but read c"):
        verify(ensemble, "other", 1)
    with pytest.raises(IdentityError, match="Stored node id 1 doesn't match previous node id 3"):
        verify(ensemble, "c", 3)


def test_new_directory_ids_are_unique_and_not_reserved():
    made = {new_directory_id() for _ in range(200)}
    assert len(made) == 200
    assert not any(is_reserved_directory(made_id) for made_id in made)
    assert is_reserved_directory(Uuid(bytes(15) + b"\x63"))
    assert not is_reserved_directory(Uuid(bytes(15) + b"\x64"))
    assert is_reserved_directory(Uuid(bytes(8) + b"\x80" + bytes(7)))  # Java's long is negative


def test_a_file_is_complete_or_absent_after_a_crash(node, tmp_path, monkeypatch):
    put(node, 0)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("quorate.log_dirs.meta_properties.os.fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        put(node, 0, cluster_id="other")
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["meta.properties"]
    kept = decode_meta_properties((tmp_path / "a" / "meta.properties").read_bytes())
    assert kept.cluster_id == "c"


def test_a_file_and_its_name_are_durable_on_return(node, tmp_path, monkeypatch):
    operations = []
    fsync, replace = os.fsync, Path.replace

    def watched_fsync(descriptor):
        of_directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        operations.append("sync the directory" if of_directory else "sync the file")
        fsync(descriptor)

    def watched_replace(self, target):
        operations.append("rename")
        return replace(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", watched_fsync)
        patch.setattr(Path, "replace", watched_replace)
        put(node, 0)
    assert operations == ["sync the file", "rename", "sync the directory"]


@pytest.fixture
def synced(monkeypatch):
    """The inodes of the directories that were synced, in order."""
    found, fsync = [], os.fsync

    def watched(descriptor):
        found.append(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    return found


def test_each_directory_is_durable_before_its_child_is_created(tmp_path, synced, monkeypatch):
    operations, mkdir = synced, Path.mkdir

    def watched(self, *given, **named):
        operations.append(f"make {self.name}")
        mkdir(self, *given, **named)

    monkeypatch.setattr(Path, "mkdir", watched)
    make_durable_directory(tmp_path / "a" / "b")
    top, a = tmp_path.stat().st_ino, (tmp_path / "a").stat().st_ino
    assert operations[-4:] == ["make a", top, "make b", a]


def test_the_name_of_a_directory_that_a_killed_format_left_is_made_durable(tmp_path, synced):
    (tmp_path / "a").mkdir()
    make_durable_directory(tmp_path / "a")
    assert synced == [tmp_path.stat().st_ino]


def test_the_name_of_the_last_parent_that_a_killed_format_left_is_made_durable(tmp_path, synced):
    (tmp_path / "a").mkdir()
    make_durable_directory(tmp_path / "a" / "b")
    assert synced == [tmp_path.stat().st_ino, (tmp_path / "a").stat().st_ino]


def test_a_parent_that_is_not_writable_is_not_synced(tmp_path, synced, monkeypatch):
    (tmp_path / "a").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    make_durable_directory(tmp_path / "a")
    assert synced == []


def test_a_file_in_place_of_a_directory_is_an_error(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(FileExistsError):
        make_durable_directory(tmp_path / "a")
