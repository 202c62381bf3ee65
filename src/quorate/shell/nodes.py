"""Nodes of the tree, their text and their differences (`MetadataNode`, `ShellNodePrinter`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

from quorate.config_definitions.definition import (
    broker_configs,
    client_metrics_configs,
    group_configs,
    topic_configs,
)
from quorate.metadata.image import ConfigResource
from quorate.metadata.resource_types import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)

REDACTED: Final = "[redacted]"
_DEFINITIONS: Final = MappingProxyType(
    {
        TOPIC_RESOURCE: topic_configs,
        BROKER_RESOURCE: broker_configs,
        CLIENT_METRICS_RESOURCE: client_metrics_configs,
        GROUP_RESOURCE: group_configs,
    }
)


class Redaction(Enum):
    """Which secrets a printer hides (`MetadataNodeRedactionCriteria`).

    Kafka's shell hides none.
    """

    DISABLED = "disabled"
    NORMAL = "normal"
    """Credentials, tokens, and configs that are sensitive or unknown."""

    @property
    def hides_credentials(self) -> bool:
        return self is not Redaction.DISABLED

    def hides_config(self, resource: ConfigResource, key: str) -> bool:
        """Whether to hide the value; configs without a definition are sensitive, as for Kafka."""
        if self is Redaction.DISABLED:
            return False
        definitions = _DEFINITIONS.get(resource.type)
        definition = None if definitions is None else definitions().get(key)
        return definition is None or definition.is_sensitive


@dataclass(frozen=True, slots=True)
class Leaf:
    """A file: one line of text."""

    text: Callable[[Redaction], str]


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory. Names and children are made on demand: an image may hold a million partitions."""

    names: Callable[[], Iterable[str]]
    child: Callable[[str], Node | None]
    """The child of a name; None when there is none."""

    def sorted_names(self) -> list[str]:
        """The names in Java's order of strings: by UTF-16 code units."""
        names = list(self.names())
        if all(map(str.isascii, names)):
            return sorted(names)
        return sorted(names, key=lambda name: name.encode("utf-16-be", "surrogatepass"))

    def children(self) -> Iterator[tuple[str, Node]]:
        """The (name, node) pairs in the order of their names."""
        for name in self.sorted_names():
            node = self.child(name)
            if node is not None:
                yield name, node


Node = Leaf | Directory


def leaf(text: object) -> Leaf:
    """A file with a fixed text."""
    line = str(text)
    return Leaf(lambda _: line)


def directory(children: Mapping[str, Node]) -> Directory:
    """A directory with fixed children."""
    return Directory(lambda: children, children.get)


def print_node(node: Node, redaction: Redaction, level: int = 0) -> Iterator[str]:
    """The lines of a node and of all nodes below it, indented by two blanks a level."""
    indent = "  " * level
    if isinstance(node, Leaf):
        yield indent + node.text(redaction)
        return
    for name, child in node.children():
        yield f"{indent}{name}:"
        yield from print_node(child, redaction, level + 1)


def files(node: Node, path: str) -> Iterator[tuple[str, Leaf]]:
    """The absolute path and the node of each file in `node`, in the order of the names."""
    if isinstance(node, Leaf):
        yield path, node
        return
    for name, child in node.children():
        yield from files(child, f"{path.rstrip('/')}/{name}")


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
