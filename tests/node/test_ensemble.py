"""The meta.properties of all log directories: one node, one cluster, no directory twice."""

import os
import stat
from pathlib import Path

import pytest

from quorate.base.ids import ZERO_UUID, Uuid
from quorate.base.notes import Warn
from quorate.formats.meta_properties import MetaProperties, decode_meta_properties
from quorate.node.config import load_config
from quorate.node.ensemble import (
    IdentityError,
    is_reserved,
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
    values = {"cluster_id": "c", "node_id": 1, "directory_id": (ONE, TWO)[index]} | changes
    write_meta_properties(node.log_dirs[index], MetaProperties(**values))


def test_two_good_directories_give_the_identity_of_the_metadata_directory(node):
    put(node, 0)
    put(node, 1)
    identity = load_identity(node)
    assert (identity.cluster_id, identity.node_id, identity.directory_id) == ("c", 1, ONE)


def test_a_missing_directory_id_is_made_up_and_kept(node):
    put(node, 0, directory_id=None)
    put(node, 1)
    first = load_identity(node).directory_id
    assert first not in (ZERO_UUID, TWO)
    assert load_identity(node).directory_id == first


def test_nothing_formatted(node):
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
def test_a_damaged_file_is_to_be_put_back_not_formatted(node, text, words):
    for directory in node.log_dirs:
        Path(directory, "meta.properties").write_text(text)
    with pytest.raises(IdentityError) as caught:
        load_identity(node)
    for word in (node.log_dirs[0], *words):
        assert word in str(caught.value)
    assert "storage format" not in str(caught.value)


def test_one_directory_not_formatted(node):
    put(node, 0)
    with pytest.raises(IdentityError, match=r"No `meta.properties` found in .*/b"):
        load_identity(node)


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
def test_directories_that_do_not_belong_together(node, changes, message):
    put(node, 0)
    put(node, 1, **changes)
    with pytest.raises(IdentityError, match=message):
        load_identity(node)


def test_a_metadata_log_in_the_wrong_directory(node, tmp_path):
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
    assert "passed over" in note
    (tmp_path / "a" / "meta.properties").write_text("version=7\n")
    put(node, 1)
    with pytest.raises(IdentityError, match=r"I/O error in metadata log directory .*version 7"):
        load_identity(node)


@pytest.mark.parametrize("how", ["a directory", "a pipe"])
def test_what_is_no_file_is_refused_at_once(node, tmp_path, how):
    """Of a pipe that nobody writes to a start waited for ever, and said nothing."""
    put(node, 0)
    put(node, 1)
    path = tmp_path / "a" / "meta.properties"
    path.unlink()
    (os.mkfifo if how == "a pipe" else os.mkdir)(path)
    assert load_ensemble(node.log_dirs).failed == {
        str(tmp_path / "a"): f"{path}: Not a regular file"
    }


def test_an_expected_cluster_is_held_against_every_directory(node):
    put(node, 0)
    ensemble = load_ensemble(node.log_dirs)
    verify(ensemble, "c", 1)
    with pytest.raises(IdentityError, match="Expected other, but read c"):
        verify(ensemble, "other", 1)
    with pytest.raises(IdentityError, match="Stored node id 1 doesn't match previous node id 3"):
        verify(ensemble, "c", 3)


def test_new_directory_ids_are_none_that_kafka_reserves_or_others_have():
    made = {new_directory_id() for _ in range(200)}
    assert len(made) == 200
    assert not any(is_reserved(made_id) for made_id in made)
    assert is_reserved(Uuid(bytes(15) + b"\x63"))
    assert not is_reserved(Uuid(bytes(15) + b"\x64"))


def test_a_file_is_whole_or_absent(node, tmp_path, monkeypatch):
    put(node, 0)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("quorate.node.ensemble.os.fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        put(node, 0, cluster_id="other")
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["meta.properties"]
    kept = decode_meta_properties((tmp_path / "a" / "meta.properties").read_bytes())
    assert kept.cluster_id == "c"


def test_a_file_and_its_name_are_durable_on_return(node, tmp_path, monkeypatch):
    deeds = []
    fsync, replace = os.fsync, Path.replace

    def watched_fsync(descriptor):
        of_directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        deeds.append("sync the directory" if of_directory else "sync the file")
        fsync(descriptor)

    def watched_replace(self, target):
        deeds.append("rename")
        return replace(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", watched_fsync)
        patch.setattr(Path, "replace", watched_replace)
        put(node, 0)
    assert deeds == ["sync the file", "rename", "sync the directory"]


@pytest.fixture
def synced(monkeypatch):
    """The inodes of the directories that were synced, in order."""
    found, fsync = [], os.fsync

    def watched(descriptor):
        found.append(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    return found


def test_each_directory_is_durable_before_one_is_made_in_it(tmp_path, synced, monkeypatch):
    deeds, mkdir = synced, Path.mkdir

    def watched(self, *given, **named):
        deeds.append(f"make {self.name}")
        mkdir(self, *given, **named)

    monkeypatch.setattr(Path, "mkdir", watched)
    make_durable_directory(tmp_path / "a" / "b")
    top, a = tmp_path.stat().st_ino, (tmp_path / "a").stat().st_ino
    assert deeds[-4:] == ["make a", top, "make b", a]


def test_the_name_of_a_directory_that_a_killed_format_left_is_made_durable(tmp_path, synced):
    (tmp_path / "a").mkdir()
    make_durable_directory(tmp_path / "a")
    assert synced == [tmp_path.stat().st_ino]


def test_so_is_the_name_of_the_last_parent_that_it_left(tmp_path, synced):
    (tmp_path / "a").mkdir()
    make_durable_directory(tmp_path / "a" / "b")
    assert synced == [tmp_path.stat().st_ino, (tmp_path / "a").stat().st_ino]


def test_a_parent_in_which_nobody_could_have_made_it_is_left_alone(tmp_path, synced, monkeypatch):
    (tmp_path / "a").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    make_durable_directory(tmp_path / "a")
    assert synced == []


def test_a_file_is_no_directory(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(FileExistsError):
        make_durable_directory(tmp_path / "a")
