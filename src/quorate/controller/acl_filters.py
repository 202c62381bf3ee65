"""Which access control entries a filter asks for, and what many filters find together.

A filter that names a resource looks at the patterns that its name leads to. The others share one pass over
all entries. The filters of a pass are in maps by the values that they ask for. An entry takes one lookup
for each set of fields that filters give, and there are 64 such sets at most. So 1,000 filters take as long
as one, if they give the same fields.

Source: `ResourcePatternFilter`, `AccessControlEntryFilter`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from quorate.base.errors import ErrorCode
from quorate.base.ids import Uuid
from quorate.controller.building import Building
from quorate.controller.result import MAX_RECORDS, PAUSE_EVERY, ApiError
from quorate.metadata.image import Acl, AclPattern, Image
from quorate.security.acl import AclOperation, AclResource
from quorate.security.authorizer import ALLOW, DENY, LITERAL, PREFIXED, WILDCARD

ANY: Final = 1
MATCH: Final = 2
RESOURCES: Final = {int(kind): kind.name for kind in AclResource}
OPERATIONS: Final = {2: "ALL", **{int(kind): kind.name for kind in AclOperation}}
PATTERNS: Final = (LITERAL, PREFIXED)
COMPARED: Final = 10 * PAUSE_EVERY
"""Lookups of an entry or a pattern in one step."""

Found = list[tuple[Uuid, Acl]]


class EntryFilter(NamedTuple):
    """What entries are asked for; None and ANY ask for everything. The fields are those of `Acl`."""

    resource_type: int
    name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int

    def problem(self) -> ApiError | None:
        """Why it is refused: a code has no meaning."""
        patterns, permissions = (ANY, MATCH, *PATTERNS), (ANY, DENY, ALLOW)
        if self.resource_type not in (ANY, *RESOURCES) or self.pattern_type not in patterns:
            return ApiError(ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
        if self.operation not in (ANY, *OPERATIONS) or self.permission_type not in permissions:
            return ApiError(ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")
        return None

    def patterns(self, image: Image, name: str) -> Iterator[AclPattern]:
        """The patterns that the filter may match, for its name; the image may not have them."""
        kinds = RESOURCES if self.resource_type == ANY else (self.resource_type,)
        if self.pattern_type != MATCH:
            types = PATTERNS if self.pattern_type == ANY else (self.pattern_type,)
            yield from (AclPattern(kind, each, name) for kind in kinds for each in types)
            return
        for kind in kinds:
            for literal in dict.fromkeys((name, WILDCARD)):
                yield AclPattern(kind, LITERAL, literal)
            for length in image.acl_prefix_lengths.get(kind, ()):
                if length <= len(name):
                    yield AclPattern(kind, PREFIXED, name[:length])

    def given(self) -> tuple[int, ...]:
        """The indexes of the fields whose value an entry must have, beside the name."""
        return tuple(
            index
            for index, (value, free) in enumerate(zip(self, _FREE, strict=True))
            if index != _NAME and value not in free
        )


_NAME: Final = 1
_FREE: Final = ((ANY,), (None,), (ANY, MATCH), (None,), (None,), (ANY,), (ANY,))
"""The values of each field that ask for everything, where the name is seen to."""


class _Work:
    """Counts lookups for the next pause."""

    def __init__(self) -> None:
        self._done = 0

    def is_due(self, more: int) -> bool:
        """Whether a pause is due, after `more` lookups."""
        self._done += more
        if self._done < COMPARED:
            return False
        self._done = 0
        return True


def matching(
    image: Image, filters: Iterable[EntryFilter], removed: set[Uuid] | None = None
) -> Building[dict[EntryFilter, Found]]:
    """The entries that each filter matches, in no order; filters that match none may be absent.

    removed: gets the ids. Raises ApiError (INVALID_REQUEST) when these are more than a request may
    remove.
    """
    work = _Work()
    found: dict[EntryFilter, Found] = {}
    everywhere: list[EntryFilter] = []
    by_pattern: dict[AclPattern, list[EntryFilter]] = {}
    for wanted in filters:
        if work.is_due(1):
            yield None
        if wanted.name is None:
            everywhere.append(wanted)
            continue
        for pattern in wanted.patterns(image, wanted.name):
            if work.is_due(1):
                yield None
            if pattern in image.acls_by_pattern:
                by_pattern.setdefault(pattern, []).append(wanted)
    for pattern, those in by_pattern.items():
        entries = image.acls_by_pattern[pattern].items()
        yield from _look_up(entries, those, found, removed, work)
    if everywhere:
        yield from _look_up(image.acls.items(), everywhere, found, removed, work)
    return found


def _look_up(
    entries: Iterable[tuple[Uuid, Acl]],
    filters: Sequence[EntryFilter],
    found: dict[EntryFilter, Found],
    removed: set[Uuid] | None,
    work: _Work,
) -> Building[None]:
    """Add each entry to what is found for those of the filters that match it, whatever its name."""
    by_fields: dict[tuple[int, ...], dict[Any, list[Found]]] = {}
    for wanted in filters:
        if work.is_due(1):
            yield None
        given = wanted.given()
        rows = found.setdefault(wanted, [])
        by_fields.setdefault(given, {}).setdefault(_values(given)(wanted), []).append(rows)
    lookups = [(_values(given), by_values) for given, by_values in by_fields.items()]
    for entry in entries:
        acl_id, acl = entry
        matched = 0
        for values, by_values in lookups:
            for rows in by_values.get(values(acl), ()):
                rows.append(entry)
                matched += 1
        if matched and removed is not None:
            removed.add(acl_id)
            if len(removed) > MAX_RECORDS:
                # A part of the deletions would be easily missed: nothing is removed.
                text = f"Cannot remove more than {MAX_RECORDS} acls in a single delete operation."
                raise ApiError(ErrorCode.INVALID_REQUEST, text)
        if work.is_due(len(lookups) + matched):
            yield None


def _values(given: tuple[int, ...]) -> Callable[[tuple[Any, ...]], Any]:
    """Takes the values of the fields from a filter or an entry."""
    return itemgetter(*given) if given else _no_values


def _no_values(entry: tuple[Any, ...]) -> None:
    return None
