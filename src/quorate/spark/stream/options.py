"""The options of `spark.readStream.format("quorate-metadata")`, parsed and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from quorate.base.errors import QuorateError
from quorate.client.config import BootstrapError, client_config
from quorate.client.leader import Controllers
from quorate.client.security_keys import SecurityKeys, is_security_key
from quorate.spark.files.paths import SourceError
from quorate.spark.source.options import SourceOptions, number, parse_options

BOOTSTRAP: Final = "bootstrap.controllers"
_CLUSTER: Final = "clusterid"
EARLIEST: Final = "earliest"
LATEST: Final = "latest"
MAJORITY: Final = "majority"
SNAPSHOT: Final = "snapshot"
END: Final = "end"
WAIT: Final = "wait"
_OPTIONS: Final = {
    name.lower(): name
    for name in (
        *("maxOffsetsPerTrigger", "maxOffsetsPerPartition", "startingOffsets"),
        *("timeoutMs", "pollMs", "upTo", "onSilence"),
    )
}
_STARTS: Final = (EARLIEST, LATEST)
_BOUNDS: Final = (MAJORITY, SNAPSHOT, END)
_ON_SILENCE: Final = (END, WAIT)


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """The options of a stream; see docs/spark.md."""

    rows: SourceOptions
    """The options that the batch source has too: paths, columns, view, raw, failFast."""
    controllers: tuple[Controllers, ...] = ()
    max_offsets: int | None = None
    """About how many records a micro-batch has, of all clusters together."""
    partition_offsets: int = 250_000
    """About how many records a task reads."""
    start: str = EARLIEST
    poll_ms: int = 50
    """The least time between two requests for the high watermark of a cluster."""
    timeout_ms: int = 60_000
    up_to: str = MAJORITY
    """Which offsets of log directories count as committed."""
    on_silence: str = END
    """Whether a cluster that does not answer ends the stream (`end`) or not (`wait`)."""


def is_stream_option(name: str) -> bool:
    """Whether only a stream has this option."""
    name = name.lower()
    return (
        name in _OPTIONS
        or name == BOOTSTRAP
        or name.startswith((f"{BOOTSTRAP}.", "clusterid."))
        or is_security_key(name)
    )


def parse_stream_options(given: Mapping[str, str]) -> StreamOptions:
    """The options of `spark.readStream`. Raises SourceError, which names the wrong option."""
    options = {key.lower(): value for key, value in given.items()}
    plain = {key: value for key, value in options.items() if not is_stream_option(key)}
    timeout = number("timeoutMs", options.get("timeoutms", "60000"), 1)
    controllers = tuple(_controllers(options, timeout))
    rows = parse_options(plain, needs_path=not controllers)
    if controllers and rows.paths:
        raise SourceError(
            f"both {BOOTSTRAP} and a path are given: a stream reads controllers or directories"
        )
    return StreamOptions(
        rows,
        controllers,
        _optional("maxOffsetsPerTrigger", options),
        _optional("maxOffsetsPerPartition", options) or 250_000,
        _choice("startingOffsets", options, _STARTS),
        number("pollMs", options.get("pollms", "50"), 0),
        timeout,
        _choice("upTo", options, _BOUNDS),
        _choice("onSilence", options, _ON_SILENCE),
    )


def _controllers(options: Mapping[str, str], timeout_ms: int) -> list[Controllers]:
    found = []
    security = _security(options)
    for name, text in options.items():
        if name != BOOTSTRAP and not name.startswith(f"{BOOTSTRAP}."):
            continue
        label = name[len(BOOTSTRAP) + 1 :]
        try:
            addresses = client_config(None, controllers=text).bootstrap
        except BootstrapError as error:
            raise SourceError(f"option {name}: {error}") from None
        id = options.get(f"{_CLUSTER}.{label}" if label else _CLUSTER)
        found.append(Controllers(addresses, label, id, timeout_ms, security=security))
    if security is not None and not found:
        raise SourceError(f"options about security need {BOOTSTRAP}: a path has no connections")
    labels = {controllers.label for controllers in found}
    for name in options:
        if name.startswith("clusterid.") and name[len("clusterid.") :] not in labels:
            raise SourceError(f"option {name}: there is no option {BOOTSTRAP}{name[9:]}")
    if len(found) == 1 and found[0].cluster_id is None:
        return [replace(found[0], cluster_id=options.get(_CLUSTER))]
    return sorted(found, key=lambda controllers: controllers.label)


def _security(options: Mapping[str, str]) -> SecurityKeys | None:
    """Read the keys of connections to controllers. An error is one of the driver, before any task."""
    security = SecurityKeys.of(options, "an option of the source")
    if security is not None:
        try:
            security()
        except QuorateError as error:
            raise SourceError(f"option {error}") from None
    return security


def _optional(name: str, options: Mapping[str, str]) -> int | None:
    text = options.get(name.lower())
    return None if text is None else number(name, text, 1)


def _choice(name: str, options: Mapping[str, str], known: tuple[str, ...]) -> str:
    text = options.get(name.lower(), known[0]).lower()
    if text not in known:
        raise SourceError(f"option {name}={text}: must be one of {', '.join(known)}")
    return text
