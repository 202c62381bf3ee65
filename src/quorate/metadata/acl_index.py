"""Where an image finds access control entries: by resource pattern, and by principal where there are many.

A pattern of few entries has no index by principal: to look at each of them is as fast, and 100,000
patterns with one entry each need no further map.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from immutables import Map

from quorate.base.ids import Uuid
from quorate.metadata.image import Acl, AclPattern, Image

CROWDED: Final = 32
"""A pattern of so many entries, or more, is indexed by principal."""

Entries = Map[Uuid, Acl]
ByPrincipal = Map[str, Entries]
PrefixLengths = Map[int, Map[int, int]]
_PREFIXED: Final = 4
"""The pattern type of prefixes."""
_NO_ENTRIES: Final[Entries] = Map()


def entries_of(image: Image, pattern: AclPattern, principal: str) -> Entries:
    """The entries of the pattern that may name the principal: of a crowded pattern those that do, of
    another one all."""
    crowd = image.acls_by_principal.get(pattern)
    if crowd is not None:
        return crowd.get(principal, _NO_ENTRIES)
    return image.acls_by_pattern.get(pattern, _NO_ENTRIES)


def with_entry(image: Image, acl_id: Uuid, acl: Acl) -> Image:
    """The image whose indexes have the entry too."""
    pattern = acl.pattern
    known = image.acls_by_pattern.get(pattern)
    entries = Map({acl_id: acl}) if known is None else known.set(acl_id, acl)
    by_principal = image.acls_by_principal
    if len(entries) >= CROWDED:
        crowd = by_principal.get(pattern)
        crowd = _by_principal(entries) if crowd is None else _with(crowd, acl_id, acl)
        by_principal = by_principal.set(pattern, crowd)
    return replace(
        image,
        acls_by_pattern=image.acls_by_pattern.set(pattern, entries),
        acls_by_principal=by_principal,
        acl_prefix_lengths=_counted(image, acl, 1) if known is None else image.acl_prefix_lengths,
    )


def without_entry(image: Image, acl_id: Uuid, acl: Acl) -> Image:
    """The image whose indexes lack the entry; they have it."""
    pattern = acl.pattern
    patterns, by_principal = image.acls_by_pattern, image.acls_by_principal
    entries = patterns[pattern].delete(acl_id)
    crowd = by_principal.get(pattern)
    if crowd is not None and len(entries) < CROWDED:
        by_principal = by_principal.delete(pattern)
    elif crowd is not None:
        left = crowd[acl.principal].delete(acl_id)
        crowd = crowd.set(acl.principal, left) if left else crowd.delete(acl.principal)
        by_principal = by_principal.set(pattern, crowd)
    return replace(
        image,
        acls_by_pattern=patterns.set(pattern, entries) if entries else patterns.delete(pattern),
        acls_by_principal=by_principal,
        acl_prefix_lengths=image.acl_prefix_lengths if entries else _counted(image, acl, -1),
    )


def _by_principal(entries: Entries) -> ByPrincipal:
    crowd: ByPrincipal = Map()
    for acl_id, acl in entries.items():
        crowd = _with(crowd, acl_id, acl)
    return crowd


def _with(crowd: ByPrincipal, acl_id: Uuid, acl: Acl) -> ByPrincipal:
    return crowd.set(acl.principal, crowd.get(acl.principal, _NO_ENTRIES).set(acl_id, acl))


def _counted(image: Image, acl: Acl, by: int) -> PrefixLengths:
    """The lengths of prefixes after a pattern appeared (by = 1) or disappeared (by = -1)."""
    lengths = image.acl_prefix_lengths
    kind, pattern_type, name = acl.pattern
    if pattern_type != _PREFIXED:
        return lengths
    of_kind: Map[int, int] = lengths.get(kind, Map())
    count = of_kind.get(len(name), 0) + by
    of_kind = of_kind.set(len(name), count) if count else of_kind.delete(len(name))
    return lengths.set(kind, of_kind) if of_kind else lengths.delete(kind)
