"""The log of the authorizer's decisions, as lines of Kafka's `kafka-authorizer.log` and as JSON lines.

`quorate pipeline who` reads the former. A thread formats and writes the lines, so that the event loop
only hands the decisions over. What waits for the thread is bounded: beyond a first bound, allowed
decisions are dropped, and beyond a second, denials, too. The node's log says how many are missing.

Kafka's appender writes in the thread of the request, which waits for the disk. Here that is the event
loop, and a client without any permission could stop the quorum with it.

Source: `StandardAuthorizerData.buildAuditMessage`, `StandardAcl`, and the layout of `log4j2.yaml`.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from quorate.base.errors import QuorateError
from quorate.config.monitoring_settings import AUTHORIZER_LOG_DIR, AuthorizerLogSettings
from quorate.metadata.image import Acl
from quorate.security.acl import AclOperation, AclResource
from quorate.security.authorizer import ALL_OPERATIONS, ALLOW, PREFIXED, DecisionLog, LoggedDecision
from quorate.server.logs import LOG
from quorate.server.rotating_file import RotatingFile
from quorate.wire.registry import APIS

TEXT_FILE: Final = "kafka-authorizer.log"
JSON_FILE: Final = "kafka-authorizer.jsonl"
_LOGGER: Final = "kafka.authorizer.logger"
_MAX_WAITING: Final = 16_384
"""Decisions that wait for the thread; beyond it, what is allowed is dropped."""
_MOST_DENIED: Final = 65_536
"""Decisions that wait for the thread; beyond it, denials are dropped, too."""
_MOST_CHARACTERS: Final = 16 * 1024 * 1024
"""Of all names that wait: a client chooses names of up to 32,767 characters."""
_REPORT_AFTER_S: Final = 1.0
_REPORT_EVERY_S: Final = 60.0
_RESOURCE_NAMES: Final[Mapping[int, str]] = {
    AclResource.TOPIC: "Topic",
    AclResource.GROUP: "Group",
    AclResource.CLUSTER: "Cluster",
    AclResource.TRANSACTIONAL_ID: "TransactionalId",
    AclResource.DELEGATION_TOKEN: "DelegationToken",
    AclResource.USER: "User",
}
"""`SecurityUtils.resourceTypeName`"""


class AuthorizerLogError(QuorateError):
    """The directory of the log cannot be used. The message says why."""


class _Batch(NamedTuple):
    entries: Sequence[LoggedDecision]
    wall_ms: int


def _characters(entries: Sequence[LoggedDecision]) -> int:
    return sum(len(entry.name) + len(entry.requester.principal) for entry in entries)


class AuthorizerLog:
    """Writes decisions from a thread of its own, until `close`."""

    def __init__(
        self,
        settings: AuthorizerLogSettings,
        decisions: DecisionLog,
        node_id: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open the files for what `decisions` collects. Raises AuthorizerLogError."""
        self._clock = clock
        self._decisions = decisions
        self.missing = 0
        """Decisions since the start that were not logged: the disk was too slow, or failed."""
        self._node_id = node_id
        self._folder = settings.folder
        self._unreported = self._unreported_denials = 0
        self._report_at = 0.0
        self._is_failing = False
        self._files: dict[str, RotatingFile] = {}
        for form in settings.formats:
            name = TEXT_FILE if form == "text" else JSON_FILE
            self._files[form] = RotatingFile(
                settings.folder, _names(name), settings.max_bytes, settings.max_files
            )
        try:
            settings.folder.mkdir(parents=True, exist_ok=True)
            for file in self._files.values():
                file.open()
        except OSError as error:
            raise AuthorizerLogError(
                f"{AUTHORIZER_LOG_DIR}={settings.folder}: {error.strerror or error}: make it a "
                "directory that this node may write"
            ) from None
        self._changed = threading.Condition()
        self._batches: list[_Batch] = []
        self._waiting = 0
        """Decisions in `_batches`."""
        self._waiting_characters = 0
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="authorizer-log", daemon=True)
        self._thread.start()

    def write_new(self, wall_ms: int) -> None:
        """Log the decisions since the last call, made at `wall_ms` since 1970. It waits for no disk."""
        if not self._decisions.entries:
            return
        entries = self._decisions.take()
        with self._changed:
            kept = self._admitted(entries)
            if len(kept) < len(entries):
                denials = sum(not entry.decision.is_allowed for entry in entries)
                kept_denials = sum(not entry.decision.is_allowed for entry in kept)
                self._count_lost(len(entries) - len(kept), denials - kept_denials)
                self._report()  # the thread may wait for the disk for long
            if kept:
                self._batches.append(_Batch(kept, wall_ms))
                self._waiting += len(kept)
                self._waiting_characters += _characters(kept)
            self._changed.notify_all()

    def _admitted(self, entries: list[LoggedDecision]) -> list[LoggedDecision]:
        """Return as many as may wait for the thread, denials before others."""
        waiting, characters = self._waiting, self._waiting_characters
        is_small = characters + _characters(entries) <= _MOST_CHARACTERS
        if is_small and waiting + len(entries) <= _MAX_WAITING:
            return entries
        kept: list[LoggedDecision] = []
        for entry in entries:
            if entry.decision.is_allowed:
                continue
            characters += _characters((entry,))
            if waiting + len(kept) >= _MOST_DENIED or characters > _MOST_CHARACTERS:
                break
            kept.append(entry)
        return kept

    def _count_lost(self, lost: int, denials: int) -> None:
        if not self._unreported:
            self._report_at = max(self._report_at, self._clock() + _REPORT_AFTER_S)
        self.missing += lost
        self._unreported += lost
        self._unreported_denials += denials

    def _report(self) -> None:
        """Log what is missing since the last report, when that is long ago or the log closes."""
        if self._unreported and (self._is_closing or self._clock() >= self._report_at):
            LOG.warning(
                "%d decisions are missing in the authorizer's log, %d of them denials",
                self._unreported,
                self._unreported_denials,
            )
            self._unreported = self._unreported_denials = 0
            self._report_at = self._clock() + _REPORT_EVERY_S

    def close(self) -> None:
        """Write what waits, and close the files."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        is_closing = False
        while not is_closing:
            with self._changed:
                if not self._batches and not self._is_closing:
                    due = max(0.0, self._report_at - self._clock()) if self._unreported else None
                    self._changed.wait(due)
                batches, self._batches = self._batches, []
                self._waiting = self._waiting_characters = 0
                is_closing = self._is_closing
                self._report()
            try:
                self._append(batches)
            except OSError as error:
                entries = [entry for batch in batches for entry in batch.entries]
                with self._changed:
                    denials = sum(not entry.decision.is_allowed for entry in entries)
                    self._count_lost(len(entries), denials)
                    if is_closing:
                        self._report()
                self._fail(error)
            else:
                if batches:
                    self._is_failing = False
        for file in self._files.values():
            file.close()

    def _append(self, batches: Sequence[_Batch]) -> None:
        for form, file in self._files.items():
            for batch in batches:
                lines = (
                    text_lines(batch.entries, batch.wall_ms)
                    if form == "text"
                    else json_lines(batch.entries, batch.wall_ms, self._node_id)
                )
                file.append("".join(lines).encode("utf-8", "backslashreplace"))

    def _fail(self, error: OSError) -> None:
        if not self._is_failing:
            LOG.error("The authorizer's log in %s cannot be written: %s", self._folder, error)
        self._is_failing = True
        for file in self._files.values():
            file.close()


def _names(name: str) -> Callable[[int], str]:
    return lambda age: f"{name}.{age}" if age else name


def text_lines(entries: Sequence[LoggedDecision], wall_ms: int) -> Iterator[str]:
    """The lines of Kafka's log, `[%d] %p %m (%c)%n`, in local time."""
    seconds, ms = divmod(wall_ms, 1000)
    moment = f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(seconds))},{ms:03}"
    for requester, operation, resource, name, decision in entries:
        level, result = ("DEBUG", "Allowed") if decision.is_allowed else ("INFO", "Denied")
        yield (
            f"[{moment}] {level} Principal = {_one_line(requester.principal)} is {result} operation "
            f"= {operation.name} from host = {requester.host or '?'} on resource = "
            f"{_RESOURCE_NAMES[resource]}:LITERAL:{_one_line(name)} for request = "
            f"{_request(requester.api_key)} with resourceRefCount = 1 based on rule "
            f"{_rule(decision.rule, decision.acl)} ({_LOGGER})\n"
        )


def json_lines(entries: Sequence[LoggedDecision], wall_ms: int, node_id: int) -> Iterator[str]:
    """One object per decision."""
    moment = datetime.fromtimestamp(wall_ms / 1000, UTC).isoformat(timespec="milliseconds")
    for requester, operation, resource, name, decision in entries:
        whole = {
            "time": moment,
            "node": node_id,
            "principal": requester.principal,
            "result": "Allowed" if decision.is_allowed else "Denied",
            "operation": operation.name,
            "address": requester.host,
            "resourceType": _RESOURCE_NAMES[resource],
            "resourceName": name,
            "request": _request(requester.api_key),
            "rule": decision.rule,
            "acl": None if decision.acl is None else _facts(decision.acl),
        }
        yield json.dumps(whole, separators=(",", ":")) + "\n"


def _request(api_key: int) -> str:
    api = APIS.get(api_key)
    return f"API {api_key}" if api is None else api.name


def _rule(rule: str, acl: Acl | None) -> str:
    if acl is None:
        return rule
    facts = ", ".join(f"{key}={_one_line(value)}" for key, value in _facts(acl).items())
    return f"{rule}(acl=StandardAcl[{facts}])"


def _facts(acl: Acl) -> Mapping[str, str]:
    """The fields of `StandardAcl`, in its order."""
    operation = acl.operation
    return {
        "resourceType": AclResource(acl.resource_type).name,
        "resourceName": acl.resource_name,
        "patternType": "PREFIXED" if acl.pattern_type == PREFIXED else "LITERAL",
        "principal": acl.principal,
        "host": acl.host,
        "operation": "ALL" if operation == ALL_OPERATIONS else AclOperation(operation).name,
        "permissionType": "ALLOW" if acl.permission_type == ALLOW else "DENY",
    }


def _one_line(text: str) -> str:
    """A name that cannot end the line."""
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")
