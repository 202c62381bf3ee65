"""Trees of files become partitions, and problems are reported; no Spark needed."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    Not,
)

from formats.samples import DATA
from narrow import not_none
from quorate.base.ids import Uuid
from quorate.formats.batch import encode_batch
from quorate.formats.files import encode_partition_metadata, segment_name
from quorate.spark.audit.replicas import find_replicas
from quorate.spark.decode.columns import COLUMNS, COMMENTS
from quorate.spark.decode.typed import source_type
from quorate.spark.files.archives import FileReaders, archive_members
from quorate.spark.files.paths import SourceError, expand, list_files
from quorate.spark.source.options import parse_options
from quorate.spark.source.plan import ReadPartition, partitions
from quorate.spark.source.read import read_partition
from quorate.spark.stream.options import parse_stream_options
from quorate.spark.stream.tail_feed import skipped_archives
from spark.logs import NO_OP, START_MS, batches, end_offset, log_directory, snapshot, topic


def plan(*paths: Path | str, filters=(), **options: str) -> list[ReadPartition]:
    joined = '", "'.join(map(str, paths))
    return partitions(parse_options({"paths": f'["{joined}"]', **options}), filters)


def read(*paths: Path | str, filters=(), **options: str) -> list[dict[str, Any]]:
    joined = '", "'.join(map(str, paths))
    parsed = parse_options({"paths": f'["{joined}"]', **options})
    return [
        row
        for partition in partitions(parsed, filters)
        for batch in read_partition(partition, parsed, filters)
        for row in batch.to_pylist()
    ]


def problems(rows: list[dict[str, Any]]) -> list[str]:
    return [row["problem"] for row in rows if row["problem"]]


@pytest.fixture
def two_segments(tmp_path: Path) -> tuple[Path, int]:
    """A log directory whose second segment begins at the given offset."""
    first = b"".join(batches())
    base = end_offset(first)
    second = b"".join(batches(base=base))
    home = log_directory(tmp_path / "node1", {0: first, base: second}, {(10, 1): snapshot()})
    return home, base


def test_a_log_directory_its_parent_and_its_partition_are_the_same(two_segments):
    home, _ = two_segments
    rows = read(home)
    assert rows == read(home.parent) == read(home / "__cluster_metadata-0") == read(home, home)
    assert {(row["cluster_id"], row["node_id"]) for row in rows} == {("cluster-a", 1)}
    assert {row["kind"] for row in rows} == {"log", "snapshot"}
    assert [row["offset"] for row in rows if row["kind"] == "log"] == list(range(42))


def test_rows_of_a_snapshot_name_its_id(two_segments):
    rows = read(two_segments[0], kinds="snapshot")
    assert {(row["snapshot_offset"], row["snapshot_epoch"], row["segment"]) for row in rows} == {
        (10, 1, None)
    }
    assert [row["type"] for row in rows] == [
        "SnapshotHeader",
        *["TopicRecord"] * 4,
        "SnapshotFooter",
    ]


def test_a_single_file_knows_the_cluster_beside_it(two_segments):
    home, base = two_segments
    rows = read(home / "__cluster_metadata-0" / segment_name(base))
    assert {row["cluster_id"] for row in rows} == {"cluster-a"}
    assert {row["segment"] for row in rows} == {base} and problems(rows) == []


def test_ids_can_be_given(two_segments):
    rows = read(two_segments[0], clusterId="prod", nodeId="7")
    assert {(row["cluster_id"], row["node_id"]) for row in rows} == {("prod", 7)}


@pytest.mark.parametrize("size", [1, 100, 1000, 100_000])
def test_partitions_of_any_size_read_the_same(two_segments, size: int):
    home, _ = two_segments
    cut = plan(home, maxPartitionBytes=str(size))
    assert all(
        file_range.end - file_range.start <= size
        for partition in cut
        for file_range in partition.ranges
    )
    assert read(home, maxPartitionBytes=str(size)) == read(home)


def test_small_files_share_a_partition():
    assert len(plan(DATA)) < 5


def test_a_glob_skips_paths_without_a_log(two_segments, tmp_path: Path):
    (tmp_path / "note.txt").write_text("hello")
    assert read(tmp_path / "n*") == read(two_segments[0])
    with pytest.raises(SourceError, match=r"note.txt: not the name of a segment"):
        read(tmp_path / "note.*")


def test_a_path_that_is_there_is_no_pattern_and_an_empty_one_is_none(two_segments, tmp_path: Path):
    odd = two_segments[0].rename(tmp_path / "node[1]")
    assert len(read(odd)) > 40
    with pytest.raises(SourceError, match="a path is empty: is a variable not set"):
        read("")


def packed(home: Path, archive: Path, how: int = zipfile.ZIP_DEFLATED) -> Path:
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive, "w", how) as out:
            for path in sorted(home.rglob("*")):
                out.write(path, path.relative_to(home))
    else:
        with tarfile.open(archive, "w:gz" if archive.name.endswith("gz") else "w") as out:
            out.add(home, ".")
    return archive


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tgz", "a.zip"])
@pytest.mark.parametrize("size", ["300", "1000000"])
def test_an_archive_is_read_as_the_tree_in_it(two_segments, tmp_path: Path, name: str, size: str):
    home, _ = two_segments
    archive = packed(home, tmp_path / name)
    rows = read(archive, maxPartitionBytes=size)
    prefix = f"{archive}!"
    assert all(row["file"].startswith(prefix + "__cluster_metadata-0/0") for row in rows)
    plain = read(home)
    for row in (*rows, *plain):
        row["file"] = row["file"].rpartition("/")[2]
    assert sorted(rows, key=str) == sorted(plain, key=str)


def test_archives_and_directories_of_a_tree_are_read_together(two_segments, tmp_path: Path):
    home, _ = two_segments
    tree = tmp_path / "tree"
    log_directory(tree / "b", {0: b"".join(batches(epoch=3))}, cluster="cluster-b")
    packed(home, tree / "a.tar.gz")
    assert {row["cluster_id"] for row in read(tree)} == {"cluster-a", "cluster-b"}


def test_an_archive_that_two_paths_lead_to_is_read_once(two_segments, tmp_path: Path):
    archive = packed(two_segments[0], tmp_path / "a.tar.gz")
    assert read(archive, tmp_path / "a.*") == read(archive)


@pytest.mark.parametrize("how", ["hard", "symbolic"])
@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz"])
def test_links_of_an_archive_are_followed(two_segments, tmp_path: Path, name: str, how: str):
    """As of backups that share with the day before what did not change."""
    home, _ = two_segments
    with tarfile.open(tmp_path / name, "w:gz" if name.endswith("gz") else "w") as out:
        out.add(home, "monday")
        for path in sorted(path for path in home.rglob("*") if path.is_file()):
            inside = path.relative_to(home)
            link = tarfile.TarInfo(f"tuesday/{inside}")
            up = "../" * len(inside.parts) if how == "symbolic" else ""
            link.type = tarfile.SYMTYPE if how == "symbolic" else tarfile.LNKTYPE
            link.linkname = f"{up}monday/{inside}"
            out.addfile(link)
    rows = read(tmp_path / name)
    assert problems(rows) == []
    days = [[row for row in rows if f"/{day}/" in row["file"].replace("!", "/")]
            for day in ("monday", "tuesday")]  # fmt: skip
    assert len(days[0]) == len(days[1]) == len(read(home))


def test_a_link_out_of_an_archive_is_named_where_it_is_one_of_a_log(tmp_path: Path):
    log = "n/__cluster_metadata-0/00000000000000000000.log"
    with tarfile.open(tmp_path / "a.tar", "w") as out:
        for name in ("n/latest", log):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, "/elsewhere"
            out.addfile(link)
    words = rf"a.tar!{log}: a link to /elsewhere, which is not in the archive"
    with pytest.raises(SourceError, match=words):
        read(tmp_path / "a.tar")


def test_a_sparse_member_of_an_archive_is_read(two_segments, tmp_path: Path):
    """GNU tar -S writes one for a file with a hole."""
    home, _ = two_segments
    subprocess.run(["tar", "-S", "-cf", tmp_path / "a.tar", "-C", home, "."], check=True)
    hole = tmp_path / "hole" / "__cluster_metadata-0"
    hole.mkdir(parents=True)
    with (hole / segment_name(0)).open("wb") as file:
        file.write((home / "__cluster_metadata-0" / segment_name(0)).read_bytes())
        file.truncate(4 << 20)
    subprocess.run(["tar", "-S", "-cf", tmp_path / "b.tar", "-C", hole.parent, "."], check=True)
    assert (tmp_path / "b.tar").stat().st_size < 1 << 20
    plain, packed_ = read(hole.parent), read(tmp_path / "b.tar")
    assert len(plain) == len(packed_) > 5
    assert [row["offset"] for row in plain] == [row["offset"] for row in packed_]


def test_an_encrypted_archive_is_refused(two_segments, tmp_path: Path):
    archive = packed(two_segments[0], tmp_path / "a.zip")
    data = bytearray(archive.read_bytes())
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.find(mark)
        while at >= 0:
            data[at + flags] |= 1
            at = data.find(mark, at + 1)
    archive.write_bytes(data)
    (problem,) = problems(read(archive))
    assert "a.zip!" in problem and "is encrypted, password required" in problem


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_of_a_garbled_member_what_can_be_unpacked_is_read(tmp_path: Path, how: int, share: float):
    archive = packed(DATA / "a-first/node1", tmp_path / "a.zip", how)
    sound = read(archive)
    with zipfile.ZipFile(archive) as opened:
        member = next(m for m in opened.infolist() if m.filename.endswith("0.log"))
    data = bytearray(archive.read_bytes())
    data[member.header_offset + 100 + int((member.compress_size - 100) * share)] ^= 0x55
    archive.write_bytes(data)
    rows = read(archive)
    *_, problem = problems(rows)
    assert problem.startswith(
        (
            "cannot be unpacked from byte ",
            "all bytes could be unpacked, but differ from the packed ones: Bad CRC",
        )
    )
    good = [row for row in rows if row["problem"] is None]
    assert 0 < len(good) < len(sound)
    assert [row for row in sound if row in good] == good
    assert len(good) > len(sound) * (share - 0.3)
    with pytest.raises(SourceError, match=r"a\.zip!.*0\.log"):
        read(archive, failFast="true")


def test_a_member_is_opened_once_however_long_it_is(tmp_path: Path, monkeypatch):
    """Each time it is opened, all that stands before is unpacked again."""
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as out:
        out.writestr("x", bytes(range(256)) * 256)
    opened = []
    plain = zipfile.ZipFile.open

    def noted(self, *args):
        opened.append(args)
        return plain(self, *args)

    monkeypatch.setattr(zipfile.ZipFile, "open", noted)
    (file,) = archive_members(list_files(str(tmp_path / "a.zip"))[1].popitem()[1]).values()
    with FileReaders() as readers:
        read_part = readers.reader(file)
        parts = [read_part(at, 1000) for at in range(0, file.size, 1000)]
    assert b"".join(parts) == bytes(range(256)) * 256
    assert len(opened) == 1


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.zip"])
@pytest.mark.parametrize("options", [{}, {"clusterId": "c"}])
def test_a_damaged_archive_is_named_and_the_others_are_read(
    two_segments, tmp_path: Path, name: str, options: dict[str, str]
):
    (tmp_path / "all").mkdir()
    archive = packed(two_segments[0], tmp_path / "all" / name)
    sound = read(packed(two_segments[0], tmp_path / "all/sound.tar.gz"), **options)
    archive.write_bytes(archive.read_bytes()[:30])
    rows = read(tmp_path / "all", **options)
    assert [row for row in rows if row["file"] != str(archive)] == sound
    (problem,) = (row["problem"] for row in rows if row["file"] == str(archive))
    assert problem.startswith(f"{archive} is not a sound archive: ")
    assert problem.endswith("(read to byte 30 of 30)")
    with pytest.raises(SourceError, match=f"{name} is not a sound archive"):
        read(tmp_path / "all", failFast="true", **options)


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_all_valid_batches_of_a_member_with_a_wrong_checksum_are_read(tmp_path: Path, how: int):
    archive = packed(DATA / "a-first/node1", tmp_path / "a.zip", how)
    sound = read(archive)
    with zipfile.ZipFile(archive) as opened:
        member = next(m for m in opened.infolist() if m.filename.endswith("0.log"))
    checksum = member.CRC.to_bytes(4, "little")
    archive.write_bytes(archive.read_bytes().replace(checksum, bytes(4)))
    rows = read(archive)
    (bad_row,) = (row for row in rows if row["problem"])
    assert [row for row in rows if row is not bad_row] == sound
    assert bad_row["problem"].startswith(
        "all bytes could be unpacked, but differ from the packed ones: Bad CRC"
    )
    assert bad_row["position"] == member.file_size and bad_row["file"].endswith("0.log")


def cut(data: bytes, at: int) -> bytes:
    return data[:at]


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]


def test_a_wrong_checksum_of_an_archive_is_reported_and_all_batches_are_read(
    two_segments, tmp_path: Path
):
    archive = packed(two_segments[0], tmp_path / "a.tar.gz")
    sound = read(archive)
    data = archive.read_bytes()
    archive.write_bytes(flipped(data, len(data) - 8))
    rows = read(archive)
    (bad_row,) = (row for row in rows if row["problem"])
    assert [row for row in rows if row is not bad_row] == sound
    assert "is not a sound archive: CRC check failed" in bad_row["problem"]


def garbled(data: bytes, at: int) -> bytes:
    return data[:at] + b"\xff" * 2000 + data[at + 2000 :]


@pytest.mark.parametrize("damage", [cut, garbled])
@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz"])
def test_of_a_damaged_tar_the_members_before_the_damage_are_kept(
    two_segments, tmp_path: Path, name: str, damage
):
    """The log of the first node stands before the damage, that of the second behind it."""
    home, _ = two_segments
    other = shutil.copytree(home, tmp_path / "node2")
    (tmp_path / "all").mkdir()
    with tarfile.open(tmp_path / "all" / name, "w:gz" if name.endswith("gz") else "w") as out:
        out.add(home, "node1")
        whole = out.offset
        pad = tarfile.TarInfo("pad")
        pad.size = 1 << 16
        out.addfile(pad, io.BytesIO(Random(0).randbytes(pad.size // 2).hex().encode()))
        out.add(other, "node2")
    archive = tmp_path / "all" / name
    at = whole + 5 if name == "a.tar" else archive.stat().st_size // 2
    archive.write_bytes(damage(archive.read_bytes(), at))
    options = {"clusterId": "c", "nodeId": "1"}
    rows = read(tmp_path / "all", **options)
    (bad_row,) = (row for row in rows if row["problem"])
    good = [row for row in rows if row is not bad_row]
    assert [{**row, "file": None} for row in good] == [
        {**row, "file": None} for row in read(home, **options)
    ]
    assert {row["file"].partition("!")[0] for row in good} == {str(archive)}
    assert bad_row["problem"].startswith(f"{archive} is not a sound archive: ")
    assert " (read to byte " in bad_row["problem"]
    with pytest.raises(SourceError, match=f"{name} is not a sound archive"):
        read(tmp_path / "all", failFast="true", **options)


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz"])
def test_the_whole_batches_of_a_truncated_member_are_read(tmp_path: Path, name: str):
    log = DATA / "a-first/node1/__cluster_metadata-0/00000000000000000000.log"
    meta = DATA / "a-first/node1/meta.properties"
    archive = tmp_path / name
    with tarfile.open(archive, "w:gz" if name.endswith("gz") else "w") as out:
        out.add(meta, "meta.properties")
        out.add(log, f"__cluster_metadata-0/{log.name}")
    sound = read(archive)
    size = archive.stat().st_size
    archive.write_bytes(archive.read_bytes()[: size - size // 3 if name == "a.tar.gz" else 9000])
    rows = read(archive)
    of_archive, of_member = (row for row in rows if row["problem"])
    good = [row for row in rows if not row["problem"]]
    assert 0 < len(good) < len(sound) and good == sound[: len(good)]
    assert of_archive["file"] == str(archive) and of_archive["cluster_id"] == good[0]["cluster_id"]
    assert of_member["file"] == f"{archive}!__cluster_metadata-0/{log.name}"
    assert of_member["position"] == good[-1]["position"] + good[-1]["batch_length"]


class Pipe(io.RawIOBase):
    """What a zip is streamed into: lengths stand behind the members then, as Java writes them."""

    def __init__(self) -> None:
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, some: Any) -> int:
        self.data += some
        return len(some)


def zipped(how: int, streamed: bool) -> tuple[bytes, int, int]:
    """A zip of two nodes' logs, where the second log's header stands, and where the directory."""
    out: Any = Pipe() if streamed else io.BytesIO()
    home = DATA / "a-first/node1"
    log = f"__cluster_metadata-0/{segment_name(0)}"
    with zipfile.ZipFile(out, "w", how) as packer:
        for node in ("node1", "node2"):
            packer.write(home / "meta.properties", f"{node}/meta.properties")
            packer.write(home / log, f"{node}/{log}")
        found = packer.getinfo(f"node2/{log}").header_offset
    data = bytes(out.data if streamed else out.getvalue())
    return data, found, data.find(b"PK\x01\x02", found)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_of_a_zip_that_is_cut_off_all_before_that_is_kept(tmp_path: Path, how: int, streamed: bool):
    data, last, directory = zipped(how, streamed)
    archive = tmp_path / "a.zip"
    archive.write_bytes(data)
    sound = read(archive)
    first = sum("!node1/" in row["file"] for row in sound)
    for at in (10, last + 20, (last + directory) // 2, directory, len(data) - 1):
        archive.write_bytes(data[:at])
        rows = read(archive)
        (bad_row,) = (row for row in rows if row["file"] == str(archive))
        assert bad_row["problem"].startswith(f"{archive} is not a sound archive: ")
        good = [row for row in rows if row["problem"] is None]
        assert good == sound[: len(good)]
        if at == 10 or (streamed and how == zipfile.ZIP_STORED):
            assert good == []  # no header says how long a member is
            continue
        assert (
            " its central directory is lost: File is not a zip file (read to byte "
            in bad_row["problem"]
        )
        if at == last + 20:
            assert len(good) == first
        elif at < directory:
            assert first < len(good) < len(sound)
            assert [row["file"] for row in rows if row["problem"]][1:] == [good[-1]["file"]]
        else:
            assert good == sound
        with pytest.raises(SourceError, match=r"a\.zip is not a sound archive"):
            read(archive, failFast="true")


@pytest.mark.parametrize("streamed", [False, True])
def test_of_a_zip_that_is_garbled_and_cut_off_all_before_the_garbage_is_kept(
    tmp_path: Path, streamed: bool
):
    data, last, directory = zipped(zipfile.ZIP_DEFLATED, streamed)
    archive = tmp_path / "a.zip"
    archive.write_bytes(data)
    sound = read(archive)
    archive.write_bytes(garbled(data[:directory], (last + directory) // 2))
    rows = read(archive)
    good = [row for row in rows if row["problem"] is None]
    assert good == sound[: len(good)] and sum("!node2/" in row["file"] for row in good) > 5
    assert [row["file"] for row in rows if row["problem"]][:2] == [str(archive), good[-1]["file"]]


@pytest.mark.parametrize("name", ["a.tar", "a.zip"])
def test_the_good_part_of_an_archive_is_of_no_cluster_that_it_does_not_name(
    tmp_path: Path, name: str
):
    """Two such archives would come under one id."""
    log_directory(tmp_path / "b", {0: b"".join(batches(epoch=3))}, cluster="cluster-b")
    archive = packed(tmp_path / "b", tmp_path / name)
    data = archive.read_bytes()
    archive.write_bytes(data[: data.index(b"meta.properties") + 3])
    (bad_row,) = read(archive)
    assert (
        "__cluster_metadata-0: the file that names its cluster is behind the" in bad_row["problem"]
    )
    assert len(read(archive, clusterId="b")) > 5


def test_a_tree_with_many_ways_to_a_file_is_read_once(two_segments, tmp_path: Path):
    """Two links a level to the next one: 2^60 ways, and a link back up."""
    home, _ = two_segments
    tree = tmp_path / "tree"
    for level in range(60):
        (tree / f"{level}").mkdir(parents=True)
        for link in ("a", "b"):
            (tree / f"{level}" / link).symlink_to(tree / f"{level + 1}")
    (tree / "0" / "up").symlink_to(tree)
    (tree / "60").symlink_to(home)
    rows = read(tree)
    assert len(rows) == len(read(home))
    assert all(row["file"].startswith(f"{tree}/") for row in rows)


def test_of_a_directory_and_a_link_to_it_the_directory_is_read(two_segments, tmp_path: Path):
    home, _ = two_segments
    (home.parent / "a-link").symlink_to(home)
    (home.parent / "b-link-to-nothing").symlink_to(tmp_path / "nothing")
    assert read(home.parent) == read(home)


@pytest.mark.parametrize("path", ["/dev/null", "pipe"])
def test_what_is_neither_file_nor_directory_is_refused_in_words(tmp_path: Path, path: str):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SourceError, match="neither a file nor a directory, but a device, pipe"):
        read(tmp_path / path)


def test_an_archive_without_a_log_says_so(tmp_path: Path):
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as out:
        out.addfile(tarfile.TarInfo("x"), io.BytesIO(b""))
    with pytest.raises(SourceError, match=r"a.tar.gz: holds no metadata log"):
        read(tmp_path / "a.tar.gz")


def archive_of(path: Path, files: dict[str, Path]) -> Path:
    """A tar or zip of these files by their names in it."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as made:
            for name, file in files.items():
                made.write(file, name)
        return path
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as tar:
        for name, file in files.items():
            tar.add(file, name)
    return path


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.zip"])
@pytest.mark.parametrize("options", [{}, {"clusterId": "cluster-a"}])
def test_a_nested_archive_is_reported(two_segments, tmp_path: Path, name: str, options: Any):
    home, _ = two_segments
    files = {f"n/{path.relative_to(home)}": path for path in home.rglob("*") if path.is_file()}
    inner = archive_of(tmp_path / "inner.tar", files)
    outer = archive_of(tmp_path / name, {**files, "old/inner.tar": inner})
    rows = read(outer, **options)
    [problem] = problems(rows)
    assert f"{outer}!old/inner.tar: an archive in an archive" in problem
    assert "unpack the outer archive" in problem
    good = [row for row in rows if not row["problem"]]
    assert [row["record"] for row in good] == [row["record"] for row in read(home)]
    (found,) = [one for one in find_replicas([str(outer)]) if one.problem is not None]
    assert not_none(found.problem).what == problem
    with pytest.raises(SourceError, match=r"old/inner\.tar: an archive in an archive"):
        read(outer, failFast="true", **options)


@pytest.mark.parametrize("name", ["a.tar", "a.zip"])
def test_an_archive_of_nothing_but_archives_is_refused(two_segments, tmp_path: Path, name: str):
    inner = archive_of(tmp_path / "inner.tgz", {"x": Path(__file__)})
    outer = archive_of(tmp_path / name, {"inner.tgz": inner})
    for refuse in (lambda: read(outer), lambda: find_replicas([str(outer)])):
        with pytest.raises(SourceError, match=r"inner\.tgz: an archive in an archive"):
            refuse()


@pytest.mark.parametrize("name", ["a.tar", "a.zip"])
def test_a_stream_passes_over_an_archive_in_an_archive(two_segments, tmp_path: Path, name: str):
    home, _ = two_segments
    files = {f"n/{path.relative_to(home)}": path for path in home.rglob("*") if path.is_file()}
    inner = archive_of(tmp_path / "inner.tar", files)
    outer = archive_of(tmp_path / name, {**files, "inner.tar": inner})
    [why] = skipped_archives(parse_stream_options({"path": str(outer)}))
    assert f"{outer}!inner.tar: an archive in an archive" in why


def test_two_asterisks_stand_for_any_depth(tmp_path: Path):
    places = ["a", "x/a", "x/y/a", "x/y/b"]
    for node, place in enumerate(places):
        log_directory(tmp_path / place, {0: b"".join(batches())}, node=node)
    (tmp_path / "x/a.txt").touch()

    def nodes(pattern: str) -> set[int]:
        return {row["node_id"] for row in read(tmp_path / pattern)}

    assert nodes("**/a") == {0, 1, 2}
    assert nodes("**/__cluster_metadata-0") == nodes("**") == nodes("**/**") == {0, 1, 2, 3}
    assert nodes("x/**/a") == {1, 2} and nodes("*/**/b") == {3} and nodes("x/**") == {1, 2, 3}
    assert nodes("x/*/a") == {2}, "a file beside the directories is none of them"
    with pytest.raises(SourceError, match="no path matches this pattern"):
        read(tmp_path / "x/**/c")
    with pytest.raises(SourceError, match="no path matches this pattern"):
        read(tmp_path / "x/a.txt/*")


# Filters


def pieces_of(found: list[ReadPartition]) -> list[Any]:
    return [file_range for partition in found for file_range in partition.ranges]


@pytest.mark.parametrize(
    ("filters", "files"),
    [
        ([EqualTo(("kind",), "snapshot")], 1),
        ([EqualTo(("kind",), "log"), LessThan(("offset",), 21)], 1),
        ([EqualTo(("kind",), "log"), GreaterThanOrEqual(("offset",), 21)], 1),
        ([EqualTo(("kind",), "log"), GreaterThan(("offset",), 20)], 1),
        ([In(("offset",), (3, 30)), EqualTo(("kind",), "log")], 2),
        ([EqualTo(("cluster_id",), "other")], 0),
        ([In(("cluster_id",), ("other", "cluster-a"))], 3),
        ([EqualTo(("node_id",), 2)], 0),
        ([IsNotNull(("snapshot_offset",))], 1),
        ([Not(EqualTo(("kind",), "log"))], 3),
        ([EqualTo(("type",), "TopicRecord")], 3),
    ],
)
def test_files_that_no_row_can_pass_from_are_not_read(two_segments, filters, files: int):
    home, base = two_segments
    assert base == 21
    assert len(pieces_of(plan(home, filters=filters))) == files


def test_batches_that_no_row_can_pass_from_are_not_decoded(two_segments):
    rows = read(two_segments[0], kinds="log", filters=[EqualTo(("offset",), 30)])
    assert [row["offset"] for row in rows] == list(range(28, 36))


def test_batches_of_times_that_no_calendar_has_are_found_by_the_time_shown(tmp_path: Path):
    log = encode_batch(0, 1, START_MS, [NO_OP]) + encode_batch(1, 1, 1 << 62, [NO_OP])
    home = log_directory(tmp_path, {0: log})
    [row] = read(home, filters=[GreaterThan(("timestamp",), START_MS * 1000)])
    assert (row["offset"], row["timestamp"].year) == (1, 9999)


@pytest.mark.parametrize("columns", ["", "offset,type", "record,offset,type,position"])
def test_records_of_types_that_no_row_can_pass_with_are_left_out(two_segments, columns: str):
    home, _ = two_segments
    every = read(home, kinds="log", columns=columns)
    found = read(home, kinds="log", columns=columns, filters=[EqualTo(("type",), "TopicRecord")])
    kept = ("TopicRecord", "LeaderChange")
    assert found == [row for row in every if row["type"] in kept]
    assert {row["type"] for row in every} > set(kept)


# What is wrong with the input


def test_a_missing_path_is_named(tmp_path: Path):
    with pytest.raises(SourceError, match=r"nowhere: there is no such file or directory"):
        plan(tmp_path / "nowhere")
    with pytest.raises(SourceError, match=r"no path matches this pattern"):
        plan(tmp_path / "no*")


def test_an_empty_directory_is_named(tmp_path: Path):
    with pytest.raises(SourceError, match=r"the directory is empty"):
        plan(tmp_path)


def test_a_directory_without_a_log_is_named(tmp_path: Path):
    (tmp_path / "x.txt").write_text("x")
    with pytest.raises(SourceError, match=r"holds no metadata log.* among 1 files"):
        plan(tmp_path)


def test_directories_without_a_log_do_not_stop_a_read_of_others(tmp_path: Path):
    log_directory(tmp_path / "a", {0: b"".join(batches())})
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/x.txt").write_text("x")
    whole = read(tmp_path / "a")
    for options in ({}, {"clusterId": "given"}):
        rows = read(tmp_path / "empty", tmp_path / "a", tmp_path / "other", **options)
        found = {row["file"]: row["problem"] for row in rows if row["problem"]}
        assert found == {
            f"{tmp_path}/empty": f"{tmp_path}/empty: the directory is empty",
            f"{tmp_path}/other": f"{tmp_path}/other: holds no metadata log: no directory "
            "__cluster_metadata-0 with .log or .checkpoint files among 1 files",
        }
        assert len(rows) == len(whole) + 2
    with pytest.raises(SourceError, match="the directory is empty"):
        read(tmp_path / "a", tmp_path / "empty", failFast="true")
    with pytest.raises(SourceError, match="there is no such file"):
        read(tmp_path / "a", tmp_path / "empty", tmp_path / "nowhere")


def epochs(home: Path, *lines: str) -> None:
    text = "\n".join(["0", str(len(lines)), *lines, ""])
    (home / "__cluster_metadata-0/leader-epoch-checkpoint").write_text(text)


def test_an_emptied_segment_is_reported_where_its_records_left_a_trace(tmp_path: Path):
    whole = b"".join(batches())
    base = end_offset(whole)
    rolled = log_directory(tmp_path / "rolled", {0: whole, base: b""})
    epochs(rolled, "1 0")
    new = log_directory(tmp_path / "new", {0: b""}, {(0, 0): snapshot()})
    assert problems(read(rolled, kinds="log")) == problems(read(new, kinds="log")) == []
    for segments, snapshots, trace, end, what in [
        ({0: b""}, {}, "1 0", 0, "leader-epoch-checkpoint says that epoch 1 begins at offset 0"),
        ({0: whole, base: b""}, {}, f"4 {base + 3}", base, f"epoch 4 begins at offset {base + 3}"),
        ({0: b""}, {(10, 1): snapshot()}, None, 0, "a snapshot of 10 is beside it"),
    ]:
        home = log_directory(tmp_path / f"{end}{trace}", segments, snapshots)
        if trace is not None:
            epochs(home, trace)
        (problem,) = problems(read(home, kinds="log"))
        assert f"the log ends before offset {end}, but {what}" in problem or what in problem
        assert "its end is lost, or was not copied" in problem


def test_a_directory_of_another_topic_is_refused(tmp_path: Path):
    orders = tmp_path / "orders-3"
    orders.mkdir()
    (orders / segment_name(0)).write_bytes(b"".join(batches()))
    with pytest.raises(SourceError, match=r"orders-3: a directory of the topic orders, not a"):
        plan(tmp_path)
    (orders / "partition.metadata").write_bytes(encode_partition_metadata(Uuid(bytes([9]) * 16)))
    with pytest.raises(SourceError, match=r"of the topic CQkJCQkJCQkJCQkJCQkJCQ, not a"):
        plan(orders)


def test_another_topic_beside_the_log_is_passed_over(two_segments):
    home, _ = two_segments
    expected = read(home)
    orders = home / "orders-3"
    orders.mkdir()
    (orders / segment_name(0)).write_bytes(b"".join(batches(epoch=9)))
    assert read(home) == expected


def test_a_partition_directory_with_another_topics_id_is_refused(two_segments):
    partition = two_segments[0] / "__cluster_metadata-0"
    (partition / "partition.metadata").write_bytes(encode_partition_metadata(Uuid(bytes([9]) * 16)))
    with pytest.raises(SourceError, match=r"of the topic CQkJCQkJCQkJCQkJCQkJCQ, not a"):
        plan(two_segments[0])


def test_two_clusters_are_not_put_under_one_given_id(tmp_path: Path):
    log_directory(tmp_path / "a", {0: b"".join(batches())}, cluster="cluster-a")
    log_directory(tmp_path / "b", {0: b"".join(batches())}, cluster="cluster-b")
    with pytest.raises(SourceError, match=r"would mix 2 clusters under one id: cluster-a in .*/a"):
        plan(tmp_path, clusterId="one")
    assert len(pieces_of(plan(tmp_path))) == 2


def test_logs_of_unknown_clusters_are_not_put_together(tmp_path: Path):
    log_directory(tmp_path / "a", {0: b"".join(batches())}, cluster=None)
    assert {row["cluster_id"] for row in read(tmp_path)} == {"unknown"}
    log_directory(tmp_path / "b", {0: b"".join(batches())}, cluster=None)
    with pytest.raises(SourceError, match=r"/a/.* and 1 more: no meta.properties.*option clusters"):
        plan(tmp_path)
    assert {row["cluster_id"] for row in read(tmp_path, clusterId="mine")} == {"mine"}


def test_damaged_meta_properties_keep_their_log_out_and_say_so(two_segments, tmp_path: Path):
    home, _ = two_segments
    expected = read(home)
    log_directory(tmp_path / "z", {0: b"".join(batches())})
    (tmp_path / "z" / "meta.properties").write_text("version=1\ncluster.id=x\n")
    rows = read(tmp_path)
    (problem,) = problems(rows)
    assert "z/meta.properties: node.id was not found" in problem
    assert [row for row in rows if not row["problem"]] == expected


def test_a_log_that_starts_above_zero_needs_its_snapshot(tmp_path: Path):
    data = b"".join(batches(base=100))
    log_directory(tmp_path / "a", {100: data})
    rows = read(tmp_path)
    (problem,) = problems(rows)
    assert "the log starts at offset 100 and there is no snapshot of 100 or later" in problem
    assert len(rows) == 22
    log_directory(tmp_path / "b", {100: data}, {(100, 1): snapshot()}, node=2)
    assert problems(read(tmp_path / "b")) == []


def test_a_missing_segment_is_reported(tmp_path: Path):
    first, third = b"".join(batches()), b"".join(batches(base=60))
    log_directory(tmp_path / "a", {0: first, 60: third})
    (problem,) = problems(read(tmp_path))
    assert problem == "the offsets 21 to 59 are missing: offset 60 comes next"


def test_batches_out_of_order_are_reported(tmp_path: Path):
    parts = batches()
    log_directory(tmp_path / "a", {0: b"".join([*parts[:3], *parts[4:]])})
    (row,) = [row for row in read(tmp_path) if row["problem"]]
    assert row["problem"] == "the offsets 5 to 6 are missing: offset 7 comes next"
    assert row["position"] == sum(map(len, parts[:3]))
    log_directory(tmp_path / "b", {0: b"".join([*parts[:2], *parts[1:]])})
    (problem,) = problems(read(tmp_path / "b"))
    assert problem == "offset 1 comes next where 2 should: offsets go back"


def test_a_snapshot_without_its_footer_is_reported(tmp_path: Path):
    whole = snapshot()
    log_directory(tmp_path / "a", {}, {(10, 1): whole, (20, 1): whole[:-70]})
    rows = read(tmp_path)
    assert [row["snapshot_offset"] for row in rows if row["problem"]] == [20, 20]
    torn, unfinished = problems(rows)
    assert "torn tail" in torn
    assert unfinished == "the snapshot ends without its footer: it is not whole"


def test_fail_fast_stops_at_the_first_problem(tmp_path: Path):
    data = bytearray(b"".join(batches()))
    data[-1] ^= 1
    home = log_directory(tmp_path / "a", {0: bytes(data)})
    assert len(problems(read(home))) == 1
    with pytest.raises(SourceError, match=r"0\.log: at byte \d+: checksum does not match"):
        read(home, failFast="true")


def test_fail_fast_stops_at_a_record_from_the_future(tmp_path: Path):
    home = log_directory(tmp_path, {0: encode_batch(0, 1, START_MS, [topic(1), b"\1\x63\0"])})
    assert len(problems(read(home))) == 1
    with pytest.raises(SourceError, match=r"0\.log: Unknown metadata id 99"):
        read(home, failFast="true")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"kind": "log"}, "there is no option 'kind'; there are path"),
        ({"kinds": "logs"}, "kinds=logs: must be log, snapshot or both"),
        ({"raw": "yes"}, "raw=yes: must be true or false"),
        ({"maxPartitionBytes": "0"}, "maxPartitionBytes=0: must be a whole number of at least 1"),
        ({"nodeId": "one"}, "nodeId=one: must be a whole number"),
        ({"columns": "offset, typ"}, "there is no column 'typ'; there are cluster_id"),
        ({"columns": "offset,type,Offset"}, "column offset is named 2 times"),
        ({"view": "Topic"}, "view=Topic: there is no such record type, only "),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, str], says: str):
    with pytest.raises(Exception, match=says):
        parse_options({"path": "x", **options})


def test_names_are_taken_in_any_case():
    options = parse_options({"path": "x", "view": "topicrecord", "columns": "OFFSET, topicid"})
    assert (options.view, options.columns) == ("TopicRecord", ("offset", "topicId"))


PAGE = Path(__file__).parents[2] / "docs/spark-source.md"


def test_the_page_names_every_column_and_option():
    lines = PAGE.read_text().splitlines()
    tables = [line.strip("| ").split(" | ") for line in lines if line.startswith("| `")]
    columns, others = tables[: len(COLUMNS)], tables[len(COLUMNS) :]
    assert columns == [
        [f"`{field.name}`", field.dataType.simpleString(), COMMENTS[field.name]]
        for field in source_type()
    ]
    with pytest.raises(SourceError) as refused:
        parse_options({"path": "x", "none": ""})
    options = str(refused.value).partition("there are ")[2].split(", ")
    names = ",".join(row[0] for row in others).replace("`", "")
    assert {"path", *names.replace(" ", "").split(",")} == set(options)


def test_a_path_must_be_given():
    with pytest.raises(SourceError, match="no path is given"):
        parse_options({})


def test_raw_bytes_are_returned_on_demand(two_segments):
    assert {row["raw"] for row in read(two_segments[0])} == {None}
    assert all(row["raw"] for row in read(two_segments[0], raw="true", kinds="log"))


def test_control_batches_are_found_among_the_others():
    only = [EqualTo(("is_control",), True)]
    found = read(DATA / "a-first/node1", filters=only, columns="offset,is_control,type")
    rows = read(DATA / "a-first/node1", columns="offset,is_control,type")
    assert found == [row for row in rows if row["is_control"]]
    assert {"LeaderChange", "KRaftVoters", "SnapshotFooter"} <= {row["type"] for row in found}


@pytest.mark.parametrize(
    "path", ["/tmp/a\0b", "/tmp/a\0*", "file:///tmp/a\0b", "/tmp/\udcff", "s3://b/\0"]
)
def test_what_no_path_may_hold_is_refused(path):
    for look in (list_files, expand):
        with pytest.raises(SourceError, match="a NUL or no UTF-8 text") as refused:
            look(path)
        assert str(refused.value).isprintable()
