"""The samples of two clusters with one id, and changes to them."""

from __future__ import annotations

import shutil
from pathlib import Path

from quorate.formats.batch import iter_batches

ID = "AAECAwQFRgeICQoLDA0ODw"
A, B = f"{ID}@2023-04-05-a244fd75", f"{ID}@2023-08-21-9c8b44ef"
LOG = "__cluster_metadata-0/00000000000000000000.log"


def cleaned(node: Path, first: int) -> Path:
    """The node, without the batches before an offset."""
    file = node / LOG
    data = file.read_bytes()
    position = next(view.position for view in iter_batches(data) if view.base_offset == first)
    file.with_name(f"{first:020}.log").write_bytes(data[position:])
    file.unlink()
    return node


def undecided(outside: Path) -> str:
    """The name of a replica of compose-b that overlaps no other log."""
    cleaned(shutil.copytree(outside / "compose-b/node1", outside / "late"), 14)
    file = outside / "compose-b/node1" / LOG
    data = file.read_bytes()
    file.write_bytes(data[: next(v.position for v in iter_batches(data) if v.base_offset == 14)])
    return f"{ID}@2023-08-21-86da1c5e-from-14"
