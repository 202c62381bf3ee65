"""The keys about security of a client that makes its connections in other processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from quorate.client.config import client_security
from quorate.client.connection import ClientSecurity
from quorate.config.providers import resolved
from quorate.config.settings import Settings

_PREFIXES: Final = ("security.", "ssl.", "sasl.", "config.providers")


def is_security_key(name: str) -> bool:
    """Whether the key of Kafka's clients is about security, or about where secrets come from."""
    return name.startswith(_PREFIXES)


@dataclass(frozen=True, slots=True)
class SecurityKeys:
    """Makes what a connection needs, in any process: it can be pickled, and `ClientSecurity` cannot.

    The keys are kept as they were given: a config provider is asked where the connection is made, so a
    secret that it holds does not travel.
    """

    keys: tuple[tuple[str, str], ...] = field(repr=False)
    place: str
    """Where the keys stand, for messages."""

    @classmethod
    def of(cls, values: Mapping[str, str], place: str) -> SecurityKeys | None:
        """Those of the values that are about security; None without any."""
        keys = tuple((name, text) for name, text in values.items() if is_security_key(name))
        return cls(keys, place) if keys else None

    def __call__(self) -> ClientSecurity | None:
        """What a connection needs; None for PLAINTEXT. Raises ConfigError."""
        values = dict(self.keys)
        places = dict.fromkeys(values, self.place)
        return client_security(Settings(resolved(values, places), places))
