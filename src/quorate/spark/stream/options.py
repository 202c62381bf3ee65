"""What `spark.readStream.format("quorate-metadata")` is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from quorate.client.config import BootstrapError, client_config
from quorate.spark.files.paths import SourceError
from quorate.spark.source.options import Options, number, parse_options
from quorate.spark.stream.live_leader import Controllers

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
    """What a stream reads, and how; see docs/spark.md."""

    rows: Options
    """As for the batch source: columns, view, raw, failFast; paths that are tailed."""
    controllers: tuple[Controllers, ...] = ()
    max_offsets: int | None = None
    """Records of a micro-batch, of all clusters together."""
    partition_offsets: int = 250_000
    """Records of a task."""
    start: str = EARLIEST
    poll_ms: int = 50
    """A cluster is not asked more often for its high watermark."""
    timeout_ms: int = 60_000
    up_to: str = MAJORITY
    """What of tailed directories counts as committed."""
    on_silence: str = END
    """Whether a cluster of which nobody answers ends the stream, or is waited for."""


def is_stream_option(name: str) -> bool:
    """Whether the batch source has no such option."""
    name = name.lower()
    return name in _OPTIONS or name == BOOTSTRAP or name.startswith((f"{BOOTSTRAP}.", "clusterid."))


def parse_stream_options(given: Mapping[str, str]) -> StreamOptions:
    """The options of `spark.readStream`; raises SourceError that names the one that is wrong."""
    words = {key.lower(): value for key, value in given.items()}
    plain = {key: value for key, value in words.items() if not is_stream_option(key)}
    timeout = number("timeoutMs", words.get("timeoutms", "60000"), 1)
    controllers = tuple(_controllers(words, timeout))
    rows = parse_options(plain, needs_path=not controllers)
    if controllers and rows.paths:
        raise SourceError(
            f"both {BOOTSTRAP} and a path were given: a stream reads controllers or directories"
        )
    return StreamOptions(
        rows,
        controllers,
        _optional("maxOffsetsPerTrigger", words),
        _optional("maxOffsetsPerPartition", words) or 250_000,
        _one_of("startingOffsets", words, _STARTS),
        number("pollMs", words.get("pollms", "50"), 0),
        timeout,
        _one_of("upTo", words, _BOUNDS),
        _one_of("onSilence", words, _ON_SILENCE),
    )


def _controllers(words: Mapping[str, str], timeout_ms: int) -> list[Controllers]:
    found = []
    for name, text in words.items():
        if name != BOOTSTRAP and not name.startswith(f"{BOOTSTRAP}."):
            continue
        label = name[len(BOOTSTRAP) + 1 :]
        try:
            addresses = client_config(None, controllers=text).bootstrap
        except BootstrapError as error:
            raise SourceError(f"option {name}: {error}") from None
        id = words.get(f"{_CLUSTER}.{label}" if label else _CLUSTER)
        found.append(Controllers(addresses, label, id, timeout_ms))
    labels = {controllers.label for controllers in found}
    for name in words:
        if name.startswith("clusterid.") and name[len("clusterid.") :] not in labels:
            raise SourceError(f"option {name}: there is no option {BOOTSTRAP}{name[9:]}")
    if len(found) == 1 and found[0].cluster_id is None:
        return [replace(found[0], cluster_id=words.get(_CLUSTER))]
    return sorted(found, key=lambda controllers: controllers.label)


def _optional(name: str, words: Mapping[str, str]) -> int | None:
    text = words.get(name.lower())
    return None if text is None else number(name, text, 1)


def _one_of(name: str, words: Mapping[str, str], known: tuple[str, ...]) -> str:
    text = words.get(name.lower(), known[0]).lower()
    if text not in known:
        raise SourceError(f"option {name}={text}: must be one of {', '.join(known)}")
    return text
