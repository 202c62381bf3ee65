"""A slice: the part of the state of a cluster that one task maintains.

The task:

1. reads the current versions, of the kinds that change only;
2. applies the new records in order;
3. writes events (silver), ended versions, and current versions (gold). The file of current versions
   replaces the one it read.

A hash of the group of a thing gives its slice, so a task gets each record of its things, in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from quorate.metadata.errors import ReplayError
from quorate.metadata.interning import Interner
from quorate.spark.files.scan import located_problem
from quorate.spark.tables.events import ChangeEvent, change_events, facts_json
from quorate.spark.tables.files import (
    DataFile,
    TableWriter,
)
from quorate.spark.tables.kinds import (
    ACLS,
    BROKERS,
    CONFIGS,
    CONTROLLERS,
    KINDS,
    LEADERS,
    PARTITIONS,
    QUOTAS,
    SCRAM,
    TOKENS,
    TOPICS,
    VOTERS,
    Key,
    ThingKind,
)
from quorate.spark.tables.orphans import LEFT_OUT, ORPHANED, WHY
from quorate.spark.tables.parse import RecordJsonError, parse_record
from quorate.spark.tables.rules import ThingChange, remove_topic_configs, thing_changes
from quorate.spark.tables.versions import (
    KindState,
    SliceTarget,
)

BASELINE: Final = "!baseline"
"""The type of a step: from here on the records of a snapshot build the state from nothing."""
BASELINE_END: Final = "!baseline-end"
TOPIC_CONFIGS: Final = "!topic-configs"
"""The type of a step: a topic was removed; for the slice that has its configs."""
RESLICE: Final = "!reslice"
"""The type of a step: no change; the slice is written as a part of an older, larger one."""


class SliceStep(NamedTuple):
    """A record for a slice, or one of the special types above; times are us since 1970."""

    effective_offset: int
    effective_time: int
    offset: int
    epoch: int
    time: int
    type: str
    record: str | None
    topic_name: str | None
    file: str | None = None
    position: int | None = None
    node_id: int | None = None


class StateSlice:
    """The state of a slice, and its output. Feed steps in order, then call `finish`."""

    def __init__(self, target: SliceTarget) -> None:
        self._target = target
        self._kinds: dict[str, KindState] = {}
        self._events: TableWriter | None = None
        self._misfits: TableWriter | None = None
        self._step = SliceStep(-1, 0, -1, -1, 0, "", None, None)
        self._resliced = False
        self._in_baseline = False
        self.interner = Interner()
        self.counts = {"events": 0, "misfits": 0}
        self.misfit: str | None = None
        """The text of the first record that did not fit."""

    # -- queries of the rules -------------------------------------------------------------

    @property
    def offset(self) -> int:
        return self._step.effective_offset

    @property
    def epoch(self) -> int:
        return self._step.epoch

    def get(self, kind: ThingKind, key: Key) -> Any:
        return self._state(kind).get(key)

    def partitions(self, topic_id: str) -> Iterable[int]:
        return [key[1] for key in self._state(PARTITIONS).children((topic_id,))]

    def topic_ids(self) -> Iterable[str]:
        return [key[0] for key in self._state(TOPICS)]

    def configs(self, resource_type: str, resource_name: str) -> Iterable[str]:
        found = self._state(CONFIGS).children((resource_type, resource_name))
        return [key[2] for key in found]

    def voters(self) -> Iterable[Key]:
        return list(self._state(VOTERS))

    # -- called by the task ---------------------------------------------------------------

    def feed(self, step: SliceStep) -> None:
        """Apply one step; a record that does not fit goes to quarantine and changes nothing."""
        self._step = step
        if step.type == BASELINE:
            self._begin_baseline()
        elif step.type == BASELINE_END:
            self._end_baseline()
        elif step.type == RESLICE:
            self._resliced = True
        else:
            take = self._leave_out if step.type == ORPHANED else self._put
            try:
                for change in list(self._changes(step)):
                    take(change)
            except (ReplayError, RecordJsonError) as error:
                self._misfit(step, str(error))

    def finish(self) -> Iterator[DataFile]:
        """Write the files of the slice."""
        kinds = KINDS if self._resliced else self._kinds
        for name in kinds:
            yield from self._state(KINDS[name]).write(self._resliced)
        for writer in (self._events, self._misfits):
            file = None if writer is None else writer.close()
            if file is not None:
                yield file

    def replaced(self) -> Iterator[tuple[str, str]]:
        """(table, path) of the files that the new ones replace."""
        if not self._resliced:
            for name, state in self._kinds.items():
                if state.changed and name in self._target.files:
                    yield name, self._target.files[name]

    def _state(self, kind: ThingKind) -> KindState:
        found = self._kinds.get(kind.name)
        if found is None:
            found = self._kinds[kind.name] = KindState(kind, self._target)
            if self._in_baseline and kind is not LEADERS:
                found.begin_baseline()
        return found

    def _changes(self, step: SliceStep) -> Iterable[ThingChange]:
        if step.type == TOPIC_CONFIGS:
            return remove_topic_configs(self, step.topic_name or "")
        kind = "ConfigRecord" if step.type == ORPHANED else step.type
        record = parse_record(kind, step.record or "{}")
        return () if record is None else thing_changes(self, record)

    def _put(self, change: ThingChange) -> None:
        step, (kind, key, _, after) = self._step, change
        self._state(kind).put(key, after, step.effective_offset, step.effective_time)
        if not self._in_baseline:
            for event in change_events(change):
                self._add_event(event, change)

    def _leave_out(self, change: ThingChange) -> None:
        for event in change_events(change):
            self._add_event(ChangeEvent(LEFT_OUT, None, event.after, WHY), change)

    def _begin_baseline(self) -> None:
        for kind in KINDS.values():
            if kind is not LEADERS:
                self._state(kind).begin_baseline()
        self._in_baseline = True

    def _end_baseline(self) -> None:
        step = self._step
        self._in_baseline = False
        for kind in KINDS.values():
            if kind is not LEADERS:
                self._state(kind).end_baseline(step.effective_offset, step.effective_time)
        leader = self.get(LEADERS, ())
        if leader is not None and leader[1] < step.epoch:
            self._state(LEADERS).put((), None, step.effective_offset, step.effective_time)
        if self._target.number == 0:
            facts = {"end_offset": step.effective_offset + 1, "epoch": step.epoch}
            self._add_event(ChangeEvent("snapshot loaded", None, facts), None)

    def _add_event(self, event: ChangeEvent, change: ThingChange | None) -> None:
        if self._events is None:
            self._events = self._target.writer("changes")
        step = self._step
        about = _about(change, step)
        self._events.add(
            (
                self._target.cluster_id,
                step.offset,
                step.effective_offset,
                step.epoch,
                step.time,
                event.name,
                "" if change is None else change.kind.name,
                event.cause,
                *(about.get(name) for name in _ABOUT),
                facts_json(event.before),
                facts_json(event.after),
            )
        )
        self.counts["events"] += 1

    def _misfit(self, step: SliceStep, problem: str) -> None:
        if self._misfits is None:
            self._misfits = self._target.writer("quarantine")
        self._misfits.add(
            (
                self._target.cluster_id,
                "misfit",
                step.offset,
                step.epoch,
                step.type,
                step.record,
                problem,
                step.node_id,
                step.file,
                step.position,
                None,
                step.time,
                self._target.run,
                None,
            )
        )
        self.counts["misfits"] += 1
        if self.misfit is None:
            self.misfit = located_problem(step.file, step.position, step.offset, problem)


_ABOUT: Final = (
    *("topic_id", "topic_name", "partition", "node_id"),
    *("resource_type", "resource_name", "name", "principal"),
)


def _about(change: ThingChange | None, step: SliceStep) -> dict[str, Any]:
    """The columns of silver that name the thing of an event."""
    if change is None:
        return {}
    kind, key, before, after = change
    value = before if after is None else after
    match kind.name:
        case TOPICS.name:
            return {"topic_id": key[0], "topic_name": value[0]}
        case PARTITIONS.name:
            return {"topic_id": key[0], "partition": key[1], "topic_name": value.topic_name}
        case BROKERS.name | CONTROLLERS.name | VOTERS.name:
            return {"node_id": key[0]}
        case LEADERS.name:
            return {"node_id": value[0]}
        case CONFIGS.name:
            topic = key[1] if key[0] == "topic" else None
            words = {"resource_type": key[0], "resource_name": key[1], "name": key[2]}
            return {**words, "topic_name": topic}
        case ACLS.name:
            return {"resource_type": value[0], "resource_name": value[1], "principal": value[3]}
        case QUOTAS.name:
            return {"resource_type": "quota", "resource_name": key[0], "name": key[1]}
        case SCRAM.name:
            return {"principal": key[0], "name": key[1]}
        case TOKENS.name:
            return {"principal": value[0], "name": key[0]}
        case _:
            return {"name": key[0] if key else kind.name}
