"""What differs between two trees: the files that are new, gone, or have another text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from quorate.shell.nodes import Directory, Leaf, Node, Redaction


class NodeDifference(NamedTuple):
    """A file with its text before and after; None where there is no such file."""

    path: str
    before: str | None
    after: str | None


def differences(
    before: Node | None, after: Node | None, path: str, redaction: Redaction
) -> Iterator[NodeDifference]:
    """Each file below two nodes of the same path that differs, in the order of the names.

    Secrets are compared as they are, and shown as `redaction` says.
    """
    old = before if isinstance(before, Directory) else None
    new = after if isinstance(after, Directory) else None
    if old is not None or new is not None:
        names = dict.fromkeys(
            (*(old.sorted_names() if old else ()), *(new.sorted_names() if new else ()))
        )
        for name in sorted(names):
            yield from differences(
                old.child(name) if old else None,
                new.child(name) if new else None,
                f"{path.rstrip('/')}/{name}",
                redaction,
            )
        return
    if _secret(before) != _secret(after):
        yield NodeDifference(path, _shown(before, redaction), _shown(after, redaction))


def _secret(node: Node | None) -> str | None:
    return _shown(node, Redaction.DISABLED)


def _shown(node: Node | None, redaction: Redaction) -> str | None:
    return node.text(redaction) if isinstance(node, Leaf) else None
