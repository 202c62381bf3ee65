"""Where the jobs that follow clusters into a warehouse keep how far they have come.

Each set of clusters has a checkpoint of its own below `control/_stream`, so that one warehouse may
follow many. A checkpoint of some of the clusters goes on with more of them: a fleet grows.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import count
from typing import Final

from quorate.spark.tables.store import Store

CHECKPOINT: Final = "control/_stream"
"""Below the warehouse."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_+-]{1,100}")


def checkpoint_for(store: Store, clusters: Collection[str], silent: int = 0) -> str:
    """The folder, below the warehouse, for a job that follows these clusters, and so many more of
    which nobody says who they are."""
    return posixpath.join(CHECKPOINT, chosen(checkpoints(store), clusters, silent))


def reached(store: Store, folder: str) -> dict[str, int]:
    """How far the job with the checkpoint in this folder, below the warehouse, has come: offsets
    (exclusive) of its clusters."""
    return checkpoints(store).get(folder.removeprefix(CHECKPOINT).strip("/"), {})


def checkpoints(store: Store) -> dict[str, dict[str, int]]:
    """How far each that has begun has come: offsets (exclusive) of its clusters, by its name; '' is
    the only one of earlier releases."""
    base = store.path(CHECKPOINT)
    found: dict[str, dict[int, str]] = {}
    for info in store.listing(base):
        folder, name = posixpath.split(posixpath.relpath(info.path, base))
        checkpoint, kind = posixpath.split(folder)
        if kind == "offsets" and name.isdigit():
            found.setdefault(checkpoint, {})[int(name)] = info.path
    return {name: _newest(store, files) for name, files in found.items()}


def _newest(store: Store, files: Mapping[int, str]) -> dict[str, int]:
    """What the newest file that is whole tells."""
    for batch in sorted(files, reverse=True):
        known = places_in(store.read_text(files[batch]))
        if known:
            return known
    return {}


def places_in(text: str) -> dict[str, int]:
    """Where the clusters in a file of Spark's offsets are; it has version, settings, then a line
    for each source."""
    found: dict[str, int] = {}
    for line in text.splitlines()[2:]:
        try:
            told = json.loads(line)
        except ValueError:
            continue  # '-', or a file that is just being written
        if isinstance(told, dict):
            found |= {id: at["offset"] for id, at in told.items()}
    return found


def chosen(known: Mapping[str, Collection[str]], clusters: Collection[str], silent: int = 0) -> str:
    """The checkpoint with the most of these clusters and at most `silent` others; else anew."""
    here = {name: len(set(has) & set(clusters)) for name, has in known.items()}
    fitting = [name for name, own in here.items() if own and len(set(known[name])) <= own + silent]
    if fitting:
        return max(fitting, key=lambda name: (here[name], len(known[name]), name))
    return next(name for name in _names(clusters) if not known.get(name))


def _names(clusters: Collection[str]) -> Iterator[str]:
    """Ids where they make a name, so that an operator finds the folder."""
    told = "+".join(sorted(clusters))
    plain = told if _PLAIN.fullmatch(told) else hashlib.sha256(told.encode()).hexdigest()[:32]
    yield f"of-{plain}"
    yield from (f"of-{plain}.{number}" for number in count(2))
