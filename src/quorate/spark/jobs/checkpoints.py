"""The checkpoints of streams that ingest clusters into a warehouse.

Each set of clusters has a checkpoint of its own below `control/_stream`, so one warehouse may have
many streams. When a set grows, it continues its checkpoint.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import count
from typing import Final

from quorate.spark.tables.store import TableStore

CHECKPOINT: Final = "control/_stream"
"""The folder of all checkpoints, below the warehouse."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_+-]{1,100}")


def checkpoint_for(store: TableStore, clusters: Collection[str], silent: int = 0) -> str:
    """The folder, below the warehouse, of the checkpoint for these clusters.

    silent: the number of further clusters that do not answer, so that their ids are unknown
    """
    return posixpath.join(CHECKPOINT, chosen(checkpoints(store), clusters, silent))


def reached(store: TableStore, folder: str) -> dict[str, int]:
    """The offset (exclusive) of each cluster in the checkpoint of this folder."""
    return checkpoints(store).get(folder.removeprefix(CHECKPOINT).strip("/"), {})


def checkpoints(store: TableStore) -> dict[str, dict[str, int]]:
    """Return, by name of a checkpoint, the offset (exclusive) of each of its clusters.

    The name '' is that of the only checkpoint of earlier releases.
    """
    base = store.path(CHECKPOINT)
    found: dict[str, dict[int, str]] = {}
    for info in store.listing(base):
        folder, name = posixpath.split(posixpath.relpath(info.path, base))
        checkpoint, kind = posixpath.split(folder)
        if kind == "offsets" and name.isdigit():
            found.setdefault(checkpoint, {})[int(name)] = info.path
    return {name: _newest(store, files) for name, files in found.items()}


def _newest(store: TableStore, files: Mapping[int, str]) -> dict[str, int]:
    """The offsets in the newest complete file."""
    for batch in sorted(files, reverse=True):
        known = places_in(store.read_text(files[batch]))
        if known:
            return known
    return {}


def places_in(text: str) -> dict[str, int]:
    """The offset of each cluster in a file of Spark's offset log: a version, settings, then a line
    for each source."""
    found: dict[str, int] = {}
    for line in text.splitlines()[2:]:
        try:
            offsets = json.loads(line)
        except ValueError:
            continue  # '-' for no offset, or a file that is being written
        if isinstance(offsets, dict):
            found |= {id: at["offset"] for id, at in offsets.items()}
    return found


def chosen(known: Mapping[str, Collection[str]], clusters: Collection[str], silent: int = 0) -> str:
    """The name of the checkpoint with the most of these clusters and at most `silent` others.

    Where there is none, a new name.
    """
    here = {name: len(set(has) & set(clusters)) for name, has in known.items()}
    fitting = [name for name, own in here.items() if own and len(set(known[name])) <= own + silent]
    if fitting:
        return max(fitting, key=lambda name: (here[name], len(known[name]), name))
    return next(name for name in _names(clusters) if not known.get(name))


def _names(clusters: Collection[str]) -> Iterator[str]:
    """Names made of the cluster ids, for operators; a hash where they do not make a file name."""
    ids = "+".join(sorted(clusters))
    plain = ids if _PLAIN.fullmatch(ids) else hashlib.sha256(ids.encode()).hexdigest()[:32]
    yield f"of-{plain}"
    yield from (f"of-{plain}.{number}" for number in count(2))
