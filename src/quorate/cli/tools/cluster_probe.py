"""One try at the address of a node: whether anybody answers there, and what it supports."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final, NamedTuple

from quorate.base.ids import Address
from quorate.client.connection import Connection
from quorate.client.errors import ClientError, ConnectError, SilentNodeError

if TYPE_CHECKING:
    from quorate.client import Admin

PROBE_MS: Final = 2_000
"""How long a node may take to accept a connection, and then to answer."""
_METADATA_VERSION: Final = "metadata.version"


class Probe(NamedTuple):
    """What became of a connection: an error, or what the node supports."""

    error: ClientError | None
    versions: tuple[int, int] | None = None
    """Of metadata.version, lowest and highest; None for unknown."""

    @property
    def hangs(self) -> bool:
        """The machine accepted the connection, and the process did not answer."""
        return isinstance(self.error, SilentNodeError)

    @property
    def is_alive(self) -> bool:
        """A process accepted the connection, whatever it did then."""
        return self.hangs or not isinstance(self.error, ConnectError)


def probe(admin: Admin, address: Address) -> Probe:
    """Connect as the client does, and exchange ApiVersions."""
    config = admin.config
    try:
        with Connection(address, config.client_id, PROBE_MS, config.security) as connection:
            features = connection.features.supported_features
    except ClientError as error:
        return Probe(error)
    ranges = {each.name: (each.min_version, each.max_version) for each in features}
    return Probe(None, ranges.get(_METADATA_VERSION))


def bootstrap_words(admin: Admin, command_config: str | None = None) -> str:
    """The options that reach the same cluster again, for a command that is printed."""
    config = admin.config
    kind = "controller" if config.controllers else "server"
    addresses = ",".join(map(str, config.bootstrap))
    words = ["--bootstrap-" + kind, addresses]
    if command_config is not None:
        words += ["--command-config", command_config]
    return shlex.join(words)
