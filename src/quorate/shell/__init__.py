"""The metadata shell: a metadata image as a tree of directories and files (`kafka-metadata-shell`).

- `nodes`: the node types and their printers
- `image_tree`: the tree of an image, with the names and texts of `org.apache.kafka.image.node`
- `globs`, `commands`: what a user types
- `loading`: an image and its control records from a snapshot or a log directory, at any offset or time
- `following`: the same from live controllers, up to the high watermark
- `differences`: the files that differ between two trees
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.shell.commands import ShellState, complete, run
    from quorate.shell.following import QuorumFollower
    from quorate.shell.image_tree import ControlView, MetadataView, root
    from quorate.shell.loading import LoadError, Until, load_directory, load_snapshot
    from quorate.shell.nodes import Directory, Leaf, Node, Redaction, print_node
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "commands": "ShellState complete run",
            "following": "QuorumFollower",
            "image_tree": "ControlView MetadataView root",
            "loading": "LoadError Until load_directory load_snapshot",
            "nodes": "Directory Leaf Node Redaction print_node",
        },
    )

__all__ = [
    "ControlView",
    "Directory",
    "Leaf",
    "LoadError",
    "MetadataView",
    "Node",
    "QuorumFollower",
    "Redaction",
    "ShellState",
    "Until",
    "complete",
    "load_directory",
    "load_snapshot",
    "print_node",
    "root",
    "run",
]
