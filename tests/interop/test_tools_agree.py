"""Kafka's tools and ours describe the same quorum in the same words."""

import re

import pytest

from interop.kafka import Quorum

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("tools")]


@pytest.fixture(scope="module")
def quorum(tmp_path_factory):
    """No NoOpRecords: between two calls nothing changes but the clock."""
    quiet = {"metadata.max.idle.interval.ms": 0}
    kinds = {1: "quorate", 2: "java", 3: "java"}
    with Quorum(tmp_path_factory.mktemp("tools"), kinds, config=quiet) as quorum:
        quorum.format()
        quorum.start()
        quorum.leader()
        quorum.join(4, "quorate")
        quorum.wait_until(
            lambda v: 4 in v.observers and v.observers[4].end_offset >= v.high_watermark
            and v.lag <= 0,
            "an observer",
        )  # fmt: skip
        yield quorum


def without_times(text):
    text = re.sub(r"(MaxFollowerLagTimeMs: +)\d+", r"\1<ms>", text)
    text = re.sub(r"\b\d+ ms ago", "<ago>", text)
    return re.sub(r"\b1[789]\d{11}\b *", "<time>", text)


DESCRIBE = [
    ("describe", "--status"),
    ("describe", "--replication"),
    ("describe", "--replication", "--human-readable"),
]


@pytest.mark.parametrize("words", DESCRIBE, ids=" ".join)
@pytest.mark.parametrize("leader", ["java", "quorate"])
def test_describe(quorum, leader, words):
    quorum.hand_over(quorum.of_kind(leader)[0])
    quorum.wait_until(
        lambda v: v.lag <= 0 and {r.end_offset for r in v.observers.values()} == {v.high_watermark},
        "all to be caught up",
    )
    before, view = None, quorum.view()
    while before is None or view.high_watermark != before.high_watermark:
        # A record between the two, such as the registration with a new leader, shows in the second only.
        before = view
        said = {
            kind: quorum.lender(kind).quorum_tool(*quorum.tool_arguments(), *words)
            for kind in ("java", "quorate")
        }
        view = quorum.wait_until(lambda v: v.lag <= 0, "all to be caught up")
    assert said["java"].returncode == said["quorate"].returncode == 0, said
    ours, theirs = (without_times(said[kind].stdout) for kind in ("quorate", "java"))
    assert sorted_rows(ours) == sorted_rows(theirs)


def sorted_rows(text):
    """Lines with blanks squeezed; the rows of a table sorted, for their order is random."""
    lines = [re.sub(r"[ \t]+", " ", line).strip() for line in text.splitlines()]
    return sorted(lines)


REFUSED = [
    ("describe",),
    ("describe", "--status", "--replication"),
    ("remove-controller", "--controller-id", "9"),
    ("remove-controller", "--controller-id", "9", "--controller-directory-id", "nonsense"),
    ("remove-controller", "-i", "9", "-d", "AAAAAAAAAAAAAAAAAAAAAg"),
    ("nonsense",),
]


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_a_refusal_ends_with_the_same_code(quorum, words):
    said = {
        kind: quorum.lender(kind).quorum_tool(*quorum.tool_arguments(), *words)
        for kind in ("java", "quorate")
    }
    assert said["quorate"].returncode == said["java"].returncode != 0, said
    assert "Traceback" not in said["quorate"].stderr


@pytest.mark.parametrize("options", [(), ("--skip-record-metadata",)], ids=["whole", "skip"])
@pytest.mark.parametrize("node_id", [1, 2])
def test_dump_log(quorum, node_id, options):
    node = quorum.nodes[node_id]
    files = sorted([*node.partition.glob("*.log"), *node.partition.glob("*.checkpoint")])
    files.append(node.data / "bootstrap.checkpoint")
    said = {
        kind: quorum.lender(kind).dump_log(*files, options=options) for kind in ("java", "quorate")
    }
    assert said["java"].returncode == said["quorate"].returncode == 0, said
    assert said["quorate"].stdout == said["java"].stdout
