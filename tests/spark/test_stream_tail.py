"""Growing log directories as a stream: only committed records, once, in order."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import encode_keyed_batch
from quorate.formats.files import encode_quorum_state, segment_name, snapshot_name
from quorate.raft.values import ElectionState, LeaderChange
from quorate.spark.data_source import MetadataLogSource
from quorate.spark.files.archives import FileGoneError
from quorate.spark.files.paths import SourceError
from quorate.spark.jobs.follow import FollowSummary
from quorate.spark.stream.live import LogDivergedError, UnreachableError
from quorate.spark.stream.options import END, WAIT, parse_stream_options
from quorate.spark.stream.reader import poll_each
from quorate.spark.stream.tail_feed import TailedDirectories, TailFeed, skipped_archives
from spark.logs import START_MS, batches, end_offset, log_directory, snapshot
from spark.replica_dirs import control
from spark.streams import Stream, batch_rows, facts
from time_budget import one_in

VOTERS = (1, 2, 3)
CLUSTER = "cluster-a"


class Fleet:
    """The log directories of three voters; each holds a part of what a leader wrote."""

    def __init__(self, home: Path, nodes: tuple[int, ...] = VOTERS) -> None:
        self.home = home
        self.nodes = {node: log_directory(home / f"n{node}", {0: b""}, node=node) for node in nodes}
        self.hear(1)

    def partition(self, node: int) -> Path:
        return self.nodes[node] / "__cluster_metadata-0"

    def segment(self, node: int) -> Path:
        return max(self.partition(node).glob("*.log"))

    def append(self, data: bytes, *nodes: int) -> None:
        for node in nodes or self.nodes:
            with self.segment(node).open("ab") as file:
                file.write(data)

    def hear(self, epoch: int, *nodes: int) -> None:
        """Nodes learn of an epoch."""
        for node in nodes or self.nodes:
            state = ElectionState(epoch, 1, None)
            (self.partition(node) / "quorum-state").write_bytes(encode_quorum_state(state, 1))

    def stream(self, **options: object) -> Stream:
        return Stream(path=self.home, pollMs=0, **options)


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


def end(stream: Stream) -> int:
    return stream.end(CLUSTER)


def test_only_what_a_majority_of_the_voters_has_is_given(fleet: Fleet):
    one, two, three, four = batches((3, 2, 4))
    stream = fleet.stream()
    fleet.append(one + two, 1)
    assert not stream.step()
    fleet.append(one, 2)
    assert stream.step() and end(stream) == 1
    fleet.append(two + three, 2)
    assert stream.step() and end(stream) == 4
    fleet.append(three + four, 1)
    fleet.append(one + two + three + four, 3)
    assert stream.step() and end(stream) == 10
    assert not stream.step()
    assert facts(stream.rows) == facts(batch_rows(fleet.nodes[3], 10))


def test_a_batch_that_is_half_written_waits_for_its_other_half(fleet: Fleet):
    one, two = batches((3,))
    fleet.append(one + two[:40])
    stream = fleet.stream()
    assert stream.step() and end(stream) == 1
    assert not stream.step()
    fleet.append(two[40:])
    assert stream.step() and end(stream) == 4
    assert all(row["problem"] is None for row in stream.rows)


def test_what_an_old_leader_left_on_a_majority_is_not_committed_by_that(fleet: Fleet):
    old = batches((3,))
    fleet.append(b"".join(old))
    fleet.hear(2, 2, 3)  # a later leader may have put it there, or may take it away
    stream = fleet.stream()
    assert not stream.step()
    fleet.append(batches((), base=4, epoch=2)[0], 2, 3)
    assert stream.step() and end(stream) == 5


def test_uncommitted_tails_that_are_replaced_are_never_given(fleet: Fleet):
    one, lost = batches((3,))
    fleet.append(one)
    fleet.append(lost, 1)
    stream = fleet.stream()
    assert stream.step() and end(stream) == 1
    for node in (2, 3):
        fleet.append(b"".join(batches((2, 2), base=1, epoch=2)), node)
    fleet.hear(2)
    assert stream.step() and end(stream) == 6
    fleet.segment(1).write_bytes(fleet.segment(2).read_bytes())  # it truncates and follows
    fleet.append(batches((), base=6, epoch=3)[0])
    fleet.hear(3)
    assert stream.step() and end(stream) == 7
    assert facts(stream.rows) == facts(batch_rows(fleet.nodes[1], 7))


@pytest.mark.parametrize("seed", one_in(4, range(8)))
def test_restarts_anywhere_change_nothing(tmp_path: Path, seed: int):
    chance = random.Random(seed)
    fleet = Fleet(tmp_path)
    written, done = batches([chance.randrange(1, 9) for _ in range(40)]), dict.fromkeys(VOTERS, 0)
    stream = fleet.stream(maxOffsetsPerPartition=chance.choice([3, 10, 1000]))
    for _ in range(60):
        node = chance.choice(VOTERS)
        more = chance.randrange(0, 4)
        fleet.append(b"".join(written[done[node] : done[node] + more]), node)
        done[node] = min(done[node] + more, len(written))
        if chance.random() < 0.3 and done[node] < len(written) and done[node]:
            name = segment_name(end_offset(b"".join(written[: done[node]])))
            (fleet.partition(node) / name).touch()
        planned = stream.plan()
        if chance.random() < 0.3:
            stream.restart()
        if planned:
            stream.finish()
    assert end(stream) > 20
    assert stream.offset_list == list(range(end(stream)))
    fullest = max(VOTERS, key=lambda node: done[node])
    assert facts(stream.rows) == facts(batch_rows(fleet.nodes[fullest], end(stream)))


def test_less_than_a_majority_of_voters_does_not_show_what_is_committed(tmp_path: Path):
    fleet = Fleet(tmp_path, (2,))
    fleet.append(b"".join(batches()))
    with pytest.raises(SourceError, match=r"1 of the 3 voters \[1, 2, 3\].*upTo=snapshot"):
        fleet.stream().step()


def test_voters_that_a_later_release_wrote_do_not_show_what_is_committed(fleet: Fleet):
    """Those before them would be counted, and a majority of these may not have what was given."""
    fleet.append(b"".join(batches((3,))))
    fleet.append(encode_keyed_batch(4, 1, START_MS, [(b"\0\0\0\6", b"\0\5\1\0\x09extra")]))
    with pytest.raises(
        SourceError, match=r"newer Kafka may have written the voters.*upTo=snapshot"
    ):
        fleet.stream().step()
    fleet.append(control(5, 2, LeaderChange(1, (1, 2, 3, 4, 5), (1, 2, 3))))
    fleet.hear(2)
    stream = fleet.stream()
    assert stream.step() and end(stream) == 6


def test_voters_without_their_quorum_state_are_refused(fleet: Fleet):
    """Nobody can say then which epoch they have heard of: nothing would ever be given."""
    fleet.append(b"".join(batches((3,))))
    for node in (1, 3):
        (fleet.partition(node) / "quorum-state").unlink()
    says = r"directories of 3 of the 3 voters \[1, 2, 3\] are given, 1 of them with quorum-state"
    with pytest.raises(SourceError, match=says):
        fleet.stream().step()
    fleet.hear(1, 3)
    stream = fleet.stream()
    assert stream.step() and end(stream) == 4


def test_a_snapshot_confirms_what_is_below_it(tmp_path: Path):
    fleet = Fleet(tmp_path, (2,))
    fleet.append(b"".join(batches()))
    stream = fleet.stream(upTo="snapshot")
    assert not stream.step()
    name = snapshot_name(OffsetAndEpoch(6, 1))
    (fleet.partition(2) / name).write_bytes(snapshot(6))
    assert stream.step() and end(stream) == 6
    whole = fleet.stream(upTo="end")
    assert whole.step() and end(whole) == 21
    assert whole.offset_list == list(range(21))


def test_a_tail_that_was_given_too_early_ends_the_stream(tmp_path: Path):
    fleet = Fleet(tmp_path, (2,))
    fleet.append(b"".join(batches()))
    stream = fleet.stream(upTo="end")
    assert stream.step()
    other = batches((1,))[0] + b"".join(batches((30,), base=1, epoch=2))
    fleet.segment(2).write_bytes(other)
    with pytest.raises(LogDivergedError, match="at offset 21 with epoch 1"):
        stream.step()


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("up_to", ["majority", "snapshot", "end"])
def test_logs_that_are_formatted_again_end_the_stream(fleet: Fleet, up_to: str, restarted: bool):
    """The new log is shorter than what was read of the old one, perhaps for a year."""
    for epoch in (1, 2):
        fleet.append(b"".join(batches((3, 2), base=(epoch - 1) * 6, epoch=epoch)))
    for node in VOTERS:
        name = snapshot_name(OffsetAndEpoch(12, 2))
        (fleet.partition(node) / name).write_bytes(snapshot(12, 2))
    fleet.hear(2)
    stream = fleet.stream(upTo=up_to)
    assert stream.step() and end(stream) == 12
    for node in VOTERS:
        (fleet.partition(node) / name).unlink()
        fleet.segment(node).write_bytes(b"".join(batches((2,))))
    fleet.hear(1)
    if restarted:
        stream.restart()
    with pytest.raises(
        LogDivergedError, match=r"at offset 12 with epoch 2.*the longest ends before offset 3 "
    ):
        stream.step()


def test_one_log_that_has_what_was_read_is_enough(fleet: Fleet):
    fleet.append(b"".join(batches((3, 2))))
    stream = fleet.stream()
    assert stream.step() and end(stream) == 6
    for node in (1, 2):
        fleet.segment(node).write_bytes(batches()[0])  # their disks were replaced
    assert not stream.step()


def test_deleted_segments_are_replaced_by_the_snapshot_and_reported(fleet: Fleet):
    first, second = batches((3, 2)), batches((3, 2), base=20)
    fleet.append(b"".join(first))
    stream = fleet.stream()
    assert stream.step() and end(stream) == 6
    for node in VOTERS:
        fleet.segment(node).unlink()
        (fleet.partition(node) / segment_name(20)).write_bytes(b"".join(second))
        (fleet.partition(node) / snapshot_name(OffsetAndEpoch(20, 1))).write_bytes(snapshot(20))
    stream.restart()
    assert stream.step() and end(stream) == 26
    new = stream.rows[6:]
    (note,) = [row["problem"] for row in new if row["problem"]]
    assert "the offsets 6 to 19 are in no log any more; the snapshot" in note
    assert {row["snapshot_offset"] for row in new if row["kind"] == "snapshot"} == {20}
    log = [row["offset"] for row in new if row["kind"] == "log" and row["offset"] is not None]
    assert log == list(range(20, 26))
    late = fleet.stream()
    assert late.step() and late.offset_list == list(range(20, 26))
    assert late.rows[0]["kind"] == "snapshot" and not any(row["problem"] for row in late.rows)


def test_what_is_cleaned_after_the_listing_is_listed_again(fleet: Fleet):
    fleet.append(b"".join(batches((3, 2))))
    options = parse_stream_options({"path": str(fleet.home), "pollMs": "3600000"})
    feed = TailFeed(CLUSTER, TailedDirectories(options), options)
    assert feed.log_bounds(OffsetAndEpoch(0, 0), 0).end == OffsetAndEpoch(6, 1)
    for node in VOTERS:
        cleaned(fleet, node, 20, 1, b"".join(batches((3, 2), base=20)))
    assert feed.log_bounds(OffsetAndEpoch(6, 1), 0).end == OffsetAndEpoch(26, 1)


def planned_before_cleaning(fleet: Fleet) -> tuple[Stream, list[Any]]:
    """A batch of which every segment is to be cleaned away before it is read."""
    fleet.append(b"".join(batches((3, 2))))
    stream = fleet.stream()
    assert stream.plan() and stream.planned is not None
    return stream, list(stream.reader.partitions(*stream.planned))


def test_what_is_cleaned_while_a_batch_runs_is_read_until_it_is_off_the_disk(fleet: Fleet):
    """Kafka takes a file out of a log by another name, and a minute later from the disk."""
    stream, parts = planned_before_cleaning(fleet)
    for node in VOTERS:
        segment = fleet.segment(node)
        segment.rename(f"{segment}.deleted")
    rows = [
        row for part in parts for batch in stream.reader.read(part) for row in batch.to_pylist()
    ]
    assert [row["offset"] for row in rows] == list(range(6))


def test_a_file_deleted_before_it_is_read_is_reported(fleet: Fleet):
    stream, parts = planned_before_cleaning(fleet)
    for node in VOTERS:
        fleet.segment(node).unlink()
    with pytest.raises(FileGoneError, match=r"\d\.log: .*deleted.*Start again"):
        for part in parts:
            list(stream.reader.read(part))


def cleaned(fleet: Fleet, node: int, base: int, epoch: int, data: bytes = b"") -> None:
    """The node has installed, or made, a snapshot that ends at `base`, and nothing before it."""
    fleet.segment(node).unlink()
    (fleet.partition(node) / segment_name(base)).write_bytes(data)
    name = snapshot_name(OffsetAndEpoch(base, epoch))
    (fleet.partition(node) / name).write_bytes(snapshot(base, epoch))


def follow_to(stream: Stream, offset: int, most: int | None) -> None:
    while end(stream) < offset:
        assert stream.step(most)
    assert end(stream) == offset


@pytest.mark.parametrize("most", [None, 2])
@pytest.mark.parametrize("end_of_it", [11, 14], ids=["to the snapshot", "over the seam"])
def test_what_the_others_have_cleaned_is_read_of_the_voter_that_has_it(
    fleet: Fleet, end_of_it: int, most: int | None
):
    """Weeks later: 1 was down since offset 11, or a little later; 2 and 3 begin at 11."""
    fleet.append(b"".join(batches((3, 2))))
    stream = fleet.stream()
    assert stream.step() and end(stream) == 6
    fleet.append(b"".join(batches((4,), base=6, epoch=2)), 1)
    newer = batches((2, 3), base=11, epoch=3)
    for node in (2, 3):
        cleaned(fleet, node, 11, 2, b"".join(newer))
    if end_of_it > 11:
        fleet.append(b"".join(newer[:2]), 1)
    fleet.hear(3)
    stream.restart()
    follow_to(stream, 17, most)
    assert stream.offset_list == list(range(17))
    assert not any(row["problem"] for row in stream.rows)
    assert {row["kind"] for row in stream.rows} == {"log"}


@pytest.mark.parametrize("most", [None, 2])
def test_a_part_without_a_common_record_is_not_read_instead(fleet: Fleet, most: int | None):
    """Node 1 has other records there: of an epoch that lost."""
    fleet.append(b"".join(batches((3, 2))))
    stream = fleet.stream()
    assert stream.step() and end(stream) == 6
    fleet.append(b"".join(batches((6,), base=6, epoch=2)), 1)
    for node in (2, 3):
        cleaned(fleet, node, 11, 3, b"".join(batches((5,), base=11, epoch=4)))
    fleet.hear(4)
    stream.restart()
    follow_to(stream, 17, most)
    (note,) = [row["problem"] for row in stream.rows if row["problem"]]
    assert "the offsets 6 to 10 are in no log any more; the snapshot" in note


@pytest.mark.parametrize("up_to", ["majority", "snapshot", "end"])
def test_an_empty_log_behind_a_snapshot_does_not_end_the_stream(fleet: Fleet, up_to: str):
    fleet.append(b"".join(batches((3, 2))))
    stream = fleet.stream(upTo="end")
    assert stream.step() and end(stream) == 6
    for node in VOTERS:
        cleaned(fleet, node, 20, 1)
    stream.restart(upTo=up_to)
    assert stream.step() and end(stream) == 20
    (note,) = [row["problem"] for row in stream.rows if row["problem"]]
    assert "the offsets 6 to 19 are in no log any more; the snapshot" in note
    assert {row["snapshot_offset"] for row in stream.rows if row["kind"] == "snapshot"} == {20}
    assert not stream.step()
    fleet.append(b"".join(batches((2,), base=20, epoch=1)))
    assert stream.step() is (up_to != "snapshot")
    assert end(stream) == (20 if up_to == "snapshot" else 23)


def test_several_clusters_are_one_stream(tmp_path: Path):
    one = Fleet(tmp_path)
    one.append(b"".join(batches()))
    log_directory(tmp_path / "b", {0: b"".join(batches((2,)))}, cluster="cluster-b", node=1)
    (tmp_path / "b" / "__cluster_metadata-0" / snapshot_name(OffsetAndEpoch(3, 1))).write_bytes(
        snapshot(3)
    )
    stream = one.stream(upTo="snapshot")
    assert stream.step()
    assert (end(stream), stream.end("cluster-b")) == (0, 3)
    assert {row["cluster_id"] for row in stream.rows} == {"cluster-b"}


def test_a_directory_of_no_known_cluster_is_refused(tmp_path: Path):
    log_directory(tmp_path / "x", {0: b"".join(batches())}, cluster=None)
    with pytest.raises(SourceError, match=r"no meta\.properties beside it.*option clusters"):
        Stream(path=tmp_path, upTo="end").step()
    named = Stream(path=tmp_path, upTo="end", clusterId="mine")
    assert named.step() and named.end("mine") == 21


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.zip"])
def test_a_truncated_archive_is_named_and_the_rest_is_read(
    fleet: Fleet, tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
):
    kind = {"a.tar": "tar", "a.tar.gz": "gztar", "a.zip": "zip"}[name]
    fleet.append(b"".join(batches()))
    (tmp_path / "old").mkdir()
    shutil.make_archive(str(tmp_path / "old" / "a"), kind, fleet.nodes[1])
    archive = tmp_path / "old" / name
    archive.write_bytes(archive.read_bytes()[:700])
    stream = fleet.stream()
    assert stream.step() and end(stream) == 21
    assert not stream.step()
    fleet.append(batches((), base=21)[0])
    assert stream.step() and end(stream) == 22
    (message,) = caplog.messages
    assert message.startswith(str(archive))
    assert (
        "does not grow" in message if name == "a.tar.gz" else "a stream does not read it" in message
    )
    options = parse_stream_options({"path": str(tmp_path)})
    assert skipped_archives(options) == [message] and FollowSummary("w", passed_over=[message]).bad
    with pytest.raises(SourceError, match=name):
        fleet.stream(failFast="true").step()
    with pytest.raises(SourceError, match=name):
        Stream(path=archive).step()


def test_who_is_silent_ends_it_or_is_waited_for_while_another_answers():
    def ask(name: str) -> str:
        if name.islower():
            raise UnreachableError(name, "connection refused")
        return name

    assert poll_each("ABC", ask, END) == (["A", "B", "C"], [])
    message, silent = poll_each("aBc", ask, WAIT)
    assert (message, [str(one) for one in silent]) == (
        ["B"],
        ["a: connection refused", "c: connection refused"],
    )
    for names, how in (("Ab", END), ("bc", WAIT)):
        with pytest.raises(UnreachableError, match="b: connection refused"):
            poll_each(names, ask, how)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "no path is given"),
        ({"bootstrap": "host"}, r"bootstrap.controllers.*host \(it must be host:port\)"),
        ({"bootstrap": "h:1", "path": "/x"}, "both bootstrap.controllers and a path"),
        ({"bootstrap": "h:1", "startingOffsets": "now"}, "earliest, latest"),
        ({"bootstrap": "h:1", "maxOffsetsPerTrigger": "0"}, "at least 1"),
        ({"bootstrap": "h:1", "clusterId.a": "x"}, r"no option bootstrap.controllers\.a"),
        ({"bootstrap": "h:1", "upto": "all"}, "majority, snapshot, end"),
        ({"bootstrap": "h:1", "bogus": "1"}, "there is no option 'bogus'"),
    ],
)
def test_wrong_options_are_named(options: dict[str, str], message: str):
    with pytest.raises(SourceError, match=message):
        Stream(**options)


def test_a_stream_is_not_read_and_files_are_not_streamed_by_the_wrong_words():
    batch = MetadataLogSource({"path": "/x", "pollMs": "1"})
    with pytest.raises(SourceError, match=r"pollMs is for spark\.readStream"):
        batch.reader(batch.schema())
    live = MetadataLogSource({"bootstrap.controllers": "h:1", "kinds": "log"})
    with pytest.raises(SourceError, match="option kinds"):
        live.streamReader(live.schema())
