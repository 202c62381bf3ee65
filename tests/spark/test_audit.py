"""The audit of logs that Kafka wrote: the sample clusters, unchanged and with flipped bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metadata.samples import DATA, OUTSIDE
from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import (
    encode_batch,
    encode_keyed_batch,
    iter_batches,
    with_base_offset_and_epoch,
)
from quorate.formats.records import FeatureLevelRecord, encode_record
from quorate.formats.snapshot import BOOTSTRAP_SNAPSHOT_ID, encode_snapshot, read_snapshot
from quorate.raft.values import ControlState
from quorate.spark.audit import FirstDamageError, audit, audit_here
from quorate.spark.files.paths import SourceError
from spark.fleet import DYNAMIC, STATIC
from spark.logs import START_MS, batches, log_directory, topic
from spark.replica_dirs import FIRST, LOG, copy_of, flip, log_of, verdicts

COMMITTED = {
    "a-first": (147, 1),
    "b-failover": (256, 3),
    "c-reconfigured": (303, 4),
    "d-divergent": (332, 6),
    "e-truncated": (363, 6),
    "f-static-v0": (28, 1),
    "g-upgraded-v1": (60, 1),
}
"""The second longest log of the three voters: what a majority of them holds."""


@pytest.mark.parametrize("folder", sorted(COMMITTED.keys() - {"d-divergent"}))
def test_undamaged_samples_are_sound(folder):
    report = audit_here([str(DATA / folder)])
    (cluster,) = report.clusters
    assert [(one.node_id, one.findings) for one in cluster.replicas if one.findings] == []
    assert {one.state for one in cluster.replicas} == {"sound"}
    assert (cluster.committed_end, cluster.committed_epoch) == COMMITTED[folder]
    assert report.ok


def test_the_divergent_uncommitted_tail_is_on_node_4():
    report = audit_here([str(DATA / "d-divergent")])
    (cluster,) = report.clusters
    states = {one.node_id: one.state for one in cluster.replicas}
    assert states.pop(4) == "uncommitted-tail"
    assert set(states.values()) == {"sound"}
    (found,) = report.findings
    assert found.check == "divergent-tail"
    assert (found.spot.offset, found.spot.epoch, found.spot.segment) == (307, 4, 228)
    assert found.spot.file == str(log_of(DATA / "d-divergent", 4))
    (batch,) = (
        view
        for view in iter_batches(log_of(DATA / "d-divergent", 4).read_bytes())
        if view.base_offset == 307
    )
    assert found.spot.position == batch.position
    assert "offsets 307 to 316 of epoch 4 were never committed" in found.what
    assert cluster.committed_end == COMMITTED["d-divergent"][0]
    assert report.ok, "an uncommitted tail is no damage"


def test_voters_are_those_in_force_at_the_end():
    (cluster,) = audit_here([str(DATA / "c-reconfigured")]).clusters
    assert [voter.partition("-")[0] for voter in cluster.voters] == ["2", "3", "4"]
    (static,) = audit_here([str(DATA / "f-static-v0")]).clusters
    assert static.voters == ("1", "2", "3")


def test_copies_of_different_days_are_audited_together():
    report = audit_here([str(DATA / folder) for folder in COMMITTED])
    assert [cluster.cluster_id for cluster in report.clusters] == sorted([STATIC, DYNAMIC])
    odd = [one for one in report.replicas if one.findings]
    assert [(one.node_id, one.state, "d-divergent" in one.path) for one in odd] == [
        (4, "uncommitted-tail", True)
    ]


def test_with_too_few_voters_the_committed_end_is_unknown():
    (cluster,) = audit_here([str(DATA / "f-static-v0" / "node1")]).clusters
    assert cluster.committed_end is None
    assert cluster.replicas[0].state == "sound"
    (with_snapshot,) = audit_here([str(DATA / "a-first" / "node1")]).clusters
    assert with_snapshot.committed_end == 109, "a snapshot holds only what is committed"


@pytest.mark.parametrize("kind", ["zip", "gztar"])
def test_archives_are_audited_as_directories_are(kind, tmp_path):
    import shutil

    cluster = copy_of("f-static-v0", tmp_path)
    packed = shutil.make_archive(str(tmp_path / "packed"), kind, cluster)
    report = audit_here([packed])
    assert [(one.node_id, one.state, one.end) for one in report.replicas] == [
        *((1, "sound", 27), (2, "sound", 28), (3, "sound", 29), (11, "sound", 30))
    ]


def test_a_single_segment_is_audited_by_itself():
    (replica,) = audit_here([str(DATA / "a-first" / "node1" / LOG / FIRST)]).replicas
    assert (replica.cluster_id, replica.state, replica.end) == (DYNAMIC, "sound", 144)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nothing/there", "there is no such file"),
        ("a-first/node1/meta.properties", "not the name of a segment"),
        ("a-first/node1/no*", "no path matches"),
    ],
)
def test_a_path_without_a_metadata_log_is_refused(path, message):
    with pytest.raises(SourceError, match=message):
        audit_here([str(DATA / path)])


def test_logs_of_unknown_clusters_are_not_mixed(tmp_path):
    cluster = copy_of("f-static-v0", tmp_path)
    for file in cluster.rglob("meta.properties"):
        file.unlink()
    with pytest.raises(SourceError, match="of which cluster"):
        audit_here([str(cluster)])
    (found,) = audit_here([str(cluster)], cluster_id="named").clusters
    assert found.cluster_id == "named"


def test_a_log_of_an_unknown_cluster_beside_known_ones_is_not_left_out(tmp_path):
    cluster = copy_of("f-static-v0", tmp_path)
    (cluster / "node2" / "meta.properties").unlink()
    unknown, known = sorted(audit_here([str(cluster)]).clusters, key=lambda one: len(one.replicas))
    assert (known.cluster_id, {one.state for one in known.replicas}) == (STATIC, {"sound"})
    (replica,) = unknown.replicas
    assert (unknown.cluster_id, replica.state, replica.node_id) == ("unknown", "damaged", -1)
    assert "no meta.properties" in replica.findings[0].what
    assert "--cluster-id" in replica.findings[0].advice
    (found,) = audit_here([str(cluster)], cluster_id=STATIC).clusters
    assert len(found.replicas) == 4
    (alone,) = audit_here([str(cluster / "node2")]).clusters
    assert alone.cluster_id == "unknown"


def test_a_log_of_kafka_3_3_whose_bootstrap_records_precede_its_leader_is_sound():
    replicas = audit_here([str(OUTSIDE / "compose-a")]).replicas
    assert [(one.node_id, one.end) for one in replicas] == [(1, 14), (2, 14), (3, 14)]
    assert {found.check for one in replicas for found in one.findings} == {"quorum-state"}
    (alone,) = audit_here([str(OUTSIDE / "compose-a/node1" / LOG / FIRST)]).replicas
    assert (alone.end, alone.findings) == (14, ())


def with_bootstrap_of_4_4(cluster: Path, node: int) -> Path:
    """Put the records of bootstrap.checkpoint into 0-0, as the format of Kafka 4.4 does."""
    home = cluster / f"node{node}"
    (checkpoint,) = (home / LOG).glob("*0-0000000000.checkpoint")
    control = read_snapshot(checkpoint.read_bytes()).control
    values = (
        level(33),
        encode_record(FeatureLevelRecord(name="share.version", feature_level=2), 0),
        topic(1),
    )
    parts = encode_snapshot(BOOTSTRAP_SNAPSHOT_ID, control, START_MS, values, START_MS)
    checkpoint.chmod(0o644)
    checkpoint.write_bytes(b"".join(parts))
    (home / "bootstrap.checkpoint").unlink()
    return home


def test_bootstrap_records_in_the_first_snapshot_are_no_state_of_the_log(tmp_path):
    """Beside their own log, beside other nodes without them, and in a directory that never ran."""
    cluster = copy_of("a-first", tmp_path)
    with_bootstrap_of_4_4(cluster, 1)
    unused = with_bootstrap_of_4_4(cluster, 2)
    for file in (unused / LOG).iterdir():
        if not file.name.endswith("0-0000000000.checkpoint"):
            file.unlink()
    replicas = audit_here([str(cluster)]).replicas
    assert {(one.state, one.findings) for one in replicas} == {("sound", ())}
    alone = audit_here([str(cluster / "node1")]).replicas
    assert [(one.state, one.findings) for one in alone] == [("sound", ())]


def test_a_first_snapshot_whose_bootstrap_records_are_damaged_is_named(tmp_path):
    cluster = copy_of("a-first", tmp_path)
    (file,) = (with_bootstrap_of_4_4(cluster, 1) / LOG).glob("*0-0000000000.checkpoint")
    whole = file.read_bytes()
    file.write_bytes(flip(whole, whole.index(b"share.version")))
    assert verdicts(cluster)[1][1][0][:3] == ("snapshot", "damage", str(file))


def level(number: int) -> bytes:
    return encode_record(FeatureLevelRecord(name="metadata.version", feature_level=number), 0)


UNKNOWN = {
    "a type": encode_batch(6, 1, START_MS, [b"\1\x63\0\0"]),
    "a version": encode_batch(6, 1, START_MS, [b"\1\2\x09" + topic(9)[3:]]),
    "a newer level": encode_batch(6, 1, START_MS, [level(99)]),
    "an older level": encode_batch(6, 1, START_MS, [level(4)]),
    "a control type": encode_keyed_batch(6, 1, START_MS, [(b"\0\0\0\x09", b"\0\0\0\0")]),
    "a version of a control type": encode_keyed_batch(
        6, 1, START_MS, [(b"\0\0\0\x06", b"\0\x09\xff")]
    ),
}


@pytest.mark.parametrize("place", ["log", "snapshot"])
@pytest.mark.parametrize("what", UNKNOWN)
def test_what_another_release_may_have_written_is_no_damage(tmp_path, what, place):
    """Its bytes are sound: no advice may be to delete or to replace something."""
    unknown = UNKNOWN[what]
    before, after = b"".join(batches((1,) * 5)), encode_batch(7, 1, START_MS, [topic(8)])
    segments, snapshots = {0: before + unknown + after}, {}
    if place == "snapshot":
        parts = [*encode_snapshot(OffsetAndEpoch(6, 1), ControlState(0, None), 0, [], 0)]
        moved = with_base_offset_and_epoch(unknown, 1, 1)
        footer = with_base_offset_and_epoch(parts[-1], 2, 1)
        segments, snapshots = {0: before}, {(6, 1): parts[0] + moved + footer}
    home = log_directory(tmp_path / "home", segments, snapshots)
    (replica,) = audit_here([str(home)]).replicas
    assert replica.state == "warning", replica.findings
    assert replica.end == (8 if place == "log" else 6)
    (found,) = (one for one in replica.findings if one.check != "quorum-state")
    assert "The bytes are sound" in found.advice


def test_logs_of_unknown_clusters_are_not_compared(tmp_path):
    """One has lost its meta.properties, that of another is damaged; they are of two clusters."""
    for folder in ("f-static-v0", "a-first"):
        copy_of(folder, tmp_path)
    (tmp_path / "f-static-v0/node2/meta.properties").unlink()
    (tmp_path / "a-first/node2/meta.properties").write_text("node.id=x\n")
    found = [one for one in audit_here([str(tmp_path)]).replicas if one.findings]
    checks = [(one.node_id, [found.check for found in one.findings]) for one in found]
    assert checks == [(-1, ["meta.properties"])] * 2
    assert len({one.cluster_id for one in found}) == 2


def test_fail_fast_names_the_first_damage(tmp_path):
    cluster = copy_of("f-static-v0", tmp_path)
    file = log_of(cluster, 2)
    file.write_bytes(flip(file.read_bytes(), 1000))
    with pytest.raises(FirstDamageError, match=rf"node2/{LOG}/{FIRST}: at byte \d+: checksum"):
        audit_here([str(cluster)], fail_fast=True)


def test_the_report_is_written_as_json(tmp_path):
    report = audit_here([str(DATA / "d-divergent")], out=str(tmp_path / "out"))
    written = json.loads((tmp_path / "out" / "report.json").read_text())
    assert written == json.loads(json.dumps(report.to_json(), default=str))
    assert written["clusters"][0]["replicas"][3]["state"] == "uncommitted-tail"


SAMPLES = ("d-divergent", "f-static-v0")


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    home = tmp_path_factory.mktemp("flips")
    clusters = {folder: copy_of(folder, home) for folder in SAMPLES}
    return {folder: (path, verdicts(path)) for folder, path in clusters.items()}


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(choice=st.data())
def test_a_flipped_byte_blames_its_file_and_no_other_replica(copies, choice):
    cluster, sound = copies[choice.draw(st.sampled_from(SAMPLES))]
    files = sorted(
        file for file in cluster.glob(f"*/{LOG}/*") if file.suffix in (".log", ".checkpoint")
    )
    file = choice.draw(st.sampled_from(files))
    data = file.read_bytes()
    header = st.tuples(
        st.sampled_from([view.position for view in iter_batches(data)]), st.integers(0, 60)
    ).map(sum)
    position = choice.draw(header | st.integers(0, len(data) - 1))
    file.write_bytes(flip(data, position, 1 << choice.draw(st.integers(0, 7))))
    try:
        found = verdicts(cluster)
    finally:
        file.write_bytes(data)
    node = int(file.parent.parent.name.removeprefix("node"))
    state, findings = found.pop(node)
    assert state in ("damaged", "unsafe")
    assert str(file) in {where for _, severity, where, _ in findings if severity != "warning"}
    assert found == {other: verdict for other, verdict in sound.items() if other != node}


@pytest.mark.slow
def test_spark_gives_the_same_report(spark, tmp_path):
    cluster = copy_of("e-truncated", tmp_path)
    file = log_of(cluster, 3)
    file.write_bytes(flip(file.read_bytes(), 15_000))
    paths = [str(DATA / "d-divergent"), str(DATA / "f-static-v0"), str(cluster)]
    with_spark = audit(spark, paths)
    assert with_spark == audit_here(paths)
    assert not with_spark.ok


def test_spark_names_the_file_that_fails(spark, tmp_path):
    cluster = copy_of("f-static-v0", tmp_path)
    file = log_of(cluster, 2)
    file.write_bytes(flip(file.read_bytes(), 1000))
    with pytest.raises(FirstDamageError, match=rf"^\S+node2/{LOG}/{FIRST}: at byte \d+: checksum"):
        audit(spark, [str(cluster)], fail_fast=True)
