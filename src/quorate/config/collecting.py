"""Read settings to their end: each fault is noted, and what only follows from one is not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from quorate.base.errors import QuorateError
from quorate.config.settings import ConfigError, Settings

_Entry = TypeVar("_Entry")
_Found = TypeVar("_Found")
_Other = TypeVar("_Other")


class FollowsError(QuorateError):
    """A rule needs a value that an earlier fault leaves open: it has no answer."""


class CollectingSettings(Settings):
    """Settings that go on behind a ConfigError: the values of its key are open from then on."""

    def __init__(
        self, values: Mapping[str, str], places: Mapping[str, str], source: str = ""
    ) -> None:
        super().__init__(values, places, source)
        self._faults: dict[str, ConfigError] = {}
        self._unknown: set[str] = set()

    @property
    def faults(self) -> list[ConfigError]:
        """What was found so far, in the order in which it was found."""
        return list(self._faults.values())

    def guarded(self, read: Callable[[], _Found], otherwise: _Other) -> _Found | _Other:
        try:
            return read()
        except FollowsError:
            return otherwise
        except ConfigError as error:
            self._note(error)
            return otherwise

    def each(self, read: Callable[[_Entry], _Found], entries: Iterable[_Entry]) -> list[_Found]:
        """What `read` returns for the entries without a fault."""
        found: list[_Found] = []
        for entry in entries:
            self.guarded(lambda entry=entry: found.append(read(entry)), None)  # type: ignore[misc]
        return found

    def needs(self, *keys: str) -> None:
        """Raise FollowsError where the value of a key is open."""
        if not self._unknown.isdisjoint(keys):
            raise FollowsError(", ".join(self._unknown.intersection(keys)))

    def leave_open(self, keys: Iterable[str]) -> None:
        self._unknown.update(keys)

    def is_unknown(self, key: str) -> bool:
        return key in self._unknown

    def has_fault_of(self, name: str) -> bool:
        """Whether a key has a fault that is `name`, or is `name` with a prefix, or the reverse."""
        return any(
            name == key or name.endswith(f".{key}") or key.endswith(f".{name}")
            for key in self._unknown
        )

    def text(self, key: str) -> str | None:
        """The value as text; None when the key is absent. Raises FollowsError where it is open."""
        self.needs(key)
        return super().text(key)

    def _note(self, error: ConfigError) -> None:
        self._faults.setdefault(str(error), error)
        if error.key is not None:
            self._unknown.add(error.key)
