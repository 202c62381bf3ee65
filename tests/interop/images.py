"""Do two controllers hold the same image? Java's snapshots against the log of ours, record by record."""

from __future__ import annotations

from collections import Counter

from interop.kafka import Quorum
from interop.process import Node, wait_for
from quorate.base.ids import OffsetAndEpoch
from quorate.formats.files import parse_snapshot_name, snapshot_name
from quorate.formats.records import decode_record
from quorate.formats.snapshot import read_snapshot
from quorate.metadata.replay import record_values
from quorate.shell.loading import Until, load_directory


def newest_snapshot(node: Node) -> OffsetAndEpoch | None:
    """The newest finished snapshot on the node's disk."""
    found = filter(None, (parse_snapshot_name(p.name) for p in node.partition.glob("*.checkpoint")))
    return max(found, default=None)


def assert_images_agree(quorum: Quorum, java: Node, ours: Node) -> None:
    """A new snapshot of Java's has the records of our image at its offset.

    Writes until Java has made one that holds everything that is committed now.
    """
    committed = quorum.wait_until(lambda v: v.high_watermark > 0, "a leader").high_watermark

    def beyond() -> OffsetAndEpoch | None:
        found = newest_snapshot(java)
        if found is None or found.offset < committed:
            quorum.write(5)
            return None
        view = quorum.view()
        held = view is not None and view.voters[ours.id].end_offset >= found.offset
        return found if held else None

    snapshot_id = wait_for(beyond, f"a snapshot of {java} from {committed} on", 60, 0.2)
    data = (java.partition / snapshot_name(snapshot_id)).read_bytes()
    theirs = Counter(map(_canonical, read_snapshot(data).values))
    image = load_directory(str(ours.partition), Until(offset=snapshot_id.offset - 1))
    mine = Counter(map(_canonical, record_values(image.published.image)))
    only = {"java": [*(theirs - mine)], "quorate": [*(mine - theirs)]}
    assert only == {"java": [], "quorate": []}, f"at {snapshot_id}"


def _canonical(value: bytes) -> str:
    """A record and its version as text. The features of a registration come from Java's hash map."""
    record, version = decode_record(value)[:2]
    fields = {field.name: getattr(record, field.name) for field in type(record).schema.fields}
    if "features" in fields:
        fields["features"] = sorted(map(repr, fields["features"]))
    return f"{type(record).__name__} v{version} {fields}"
