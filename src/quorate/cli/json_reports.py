"""Schemas of the tools that print files, worlds and warehouses; `json_schemas` has the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quorate.cli.json_types import (
    FLAG,
    MAYBE_NUMBER,
    MAYBE_TEXT,
    NUMBER,
    QUANTITY,
    TEXT,
    Schema,
    all_of,
    list_of,
    map_of,
    object_of,
    one_of,
    or_null,
    with_optional,
)

_LEVELS: Final = map_of(NUMBER)
LEVELS_OF_RELEASE: Final = _LEVELS
"""Of `version-mapping`: each feature and its level."""
DEPENDENCIES: Final = list_of(object_of(feature=TEXT, level=NUMBER, requires=_LEVELS))
"""Of `feature-dependencies`."""
_COUNTS: Final = map_of(NUMBER)
_RANGES: Final = list_of(list_of(NUMBER))
"""Ranges of offsets, as pairs; the end is exclusive."""
_GO_ON: Final = MAYBE_TEXT
"""The command that does the rest."""

STORAGE: Final[Mapping[str, Schema]] = {
    "random-uuid": object_of(uuid=TEXT),
    "format": object_of(
        clusterId=TEXT,
        nodeId=NUMBER,
        metadataVersion=TEXT,
        features=_LEVELS,
        voters=list_of(TEXT),
        formatted=list_of(object_of(path=TEXT, kind=TEXT, directoryId=TEXT)),
        unreadable=list_of(TEXT),
    ),
    "info": object_of(
        directories=list_of(TEXT), metadata=or_null(map_of(TEXT)), problems=list_of(TEXT)
    ),
    "check": object_of(
        blocked=FLAG, findings=list_of(object_of(blocks=FLAG, about=TEXT, reason=TEXT))
    ),
    "version-mapping": LEVELS_OF_RELEASE,
    "feature-dependencies": DEPENDENCIES,
}

_RECORD: Final = {"kind": one_of("record"), "offset": NUMBER, "timestamp": NUMBER}
DUMP_LOG: Final[Mapping[str, Schema]] = {
    "log-line": object_of(kind=one_of("log"), startOffset=NUMBER, path=TEXT),
    "bootstrap-line": object_of(kind=one_of("bootstrap"), path=TEXT),
    "snapshot-line": object_of(kind=one_of("snapshot"), endOffset=NUMBER, epoch=NUMBER, path=TEXT),
    "batch-line": object_of(
        kind=one_of("batch"),
        baseOffset=NUMBER,
        lastOffset=NUMBER,
        count=NUMBER,
        partitionLeaderEpoch=NUMBER,
        isControl=FLAG,
        position=NUMBER,
        timestamp=NUMBER,
        size=NUMBER,
        magic=NUMBER,
        compression=TEXT,
        crc=NUMBER,
        valid=FLAG,
    ),
    "decoded-record-line": object_of(**_RECORD, type=TEXT, version=NUMBER, data=map_of({})),
    "coordinator-record-line": object_of(
        **_RECORD,
        type=TEXT,
        key=map_of({}),
        version=MAYBE_NUMBER,
        value=or_null(map_of({})),
    ),
    "record-line": object_of(**_RECORD, key=MAYBE_TEXT, value=MAYBE_TEXT),
    "unreadable-record-line": object_of(**_RECORD, error=TEXT),
    "trailing-line": object_of(kind=one_of("trailing"), bytes=NUMBER, position=NUMBER),
    "index-line": object_of(kind=one_of("index"), offset=NUMBER, position=NUMBER),
    "time-index-line": object_of(kind=one_of("timeIndex"), timestamp=NUMBER, offset=NUMBER),
    "aborted-transaction-line": object_of(
        kind=one_of("abortedTransaction"),
        version=NUMBER,
        producerId=NUMBER,
        firstOffset=NUMBER,
        lastOffset=NUMBER,
        lastStableOffset=NUMBER,
    ),
    "producer-line": with_optional(
        object_of(
            kind=one_of("producer"),
            producerId=NUMBER,
            producerEpoch=NUMBER,
            coordinatorEpoch=NUMBER,
            currentTxnFirstOffset=MAYBE_NUMBER,
            lastTimestamp=NUMBER,
        ),
        firstSequence=NUMBER,
        lastSequence=NUMBER,
        lastOffset=NUMBER,
        offsetDelta=NUMBER,
        timestamp=NUMBER,
    ),
    "index-check-line": object_of(
        kind=one_of("indexCheck"), path=TEXT, result=one_of("empty", "sane")
    ),
}

_FAILED_SEED: Final = {"seed": NUMBER, "check": TEXT, "message": TEXT}
_VIOLATION: Final = {"law": TEXT, "message": TEXT}
SIM: Final[Mapping[str, Schema]] = {
    "run": object_of(
        worlds=NUMBER,
        events=NUMBER,
        simulated_ms=NUMBER,
        seconds=QUANTITY,
        events_per_second_and_core=NUMBER,
        failures=list_of(object_of(**_FAILED_SEED, at_ms=NUMBER, event=NUMBER)),
        go_on=_GO_ON,
    ),
    "campaign": object_of(
        version=TEXT,
        source=TEXT,
        worlds=NUMBER,
        events=NUMBER,
        simulated_ms=NUMBER,
        cpu_seconds=QUANTITY,
        failures=list_of(object_of(**_FAILED_SEED)),
        cold=list_of(TEXT),
        coverage=_COUNTS,
        go_on=_GO_ON,
    ),
    "explore": object_of(
        levels=list_of(
            object_of(
                depth=NUMBER,
                states=NUMBER,
                transitions=NUMBER,
                frontier=NUMBER,
                replicas=NUMBER,
                steps=NUMBER,
                seconds=QUANTITY,
            )
        ),
        states=NUMBER,
        complete=FLAG,
        violation=or_null(object_of(**_VIOLATION)),
    ),
    "nemesis": object_of(
        seed=NUMBER,
        seconds=QUANTITY,
        directory=TEXT,
        faults=_COUNTS,
        failed=_COUNTS,
        skipped=_COUNTS,
        operations=_COUNTS,
        longest_write_outage_ms=NUMBER,
        recovery_ms=NUMBER,
        leaders=list_of(TEXT),
        processes=NUMBER,
        committed_offset=NUMBER,
        violations=list_of(object_of(invariant=TEXT, details=TEXT)),
    ),
}

_INGESTED: Final = object_of(
    warehouse=TEXT,
    clusters=map_of(
        object_of(
            records=NUMBER,
            events=NUMBER,
            log_end_offset=NUMBER,
            applied_end_offset=MAYBE_NUMBER,
            committed_end_offset=NUMBER,
            unproven=_RANGES,
            left_out=_RANGES,
            quarantined=_COUNTS,
            known_before=_COUNTS,
            resolved=_COUNTS,
            taken_back=list_of(
                object_of(
                    start=NUMBER,
                    end=NUMBER,
                    records=NUMBER,
                    epochs=list_of(NUMBER),
                    log=TEXT,
                    reason=TEXT,
                    problem=MAYBE_TEXT,
                )
            ),
            examples=map_of(TEXT),
            foreign_replicas=map_of(TEXT),
            problem=MAYBE_TEXT,
            undecided=MAYBE_TEXT,
            same_id=list_of(TEXT),
        )
    ),
    damaged_pieces=NUMBER,
    unreadable=list_of(TEXT),
    seconds=QUANTITY,
    records=NUMBER,
    events=NUMBER,
    bad=FLAG,
)
_FINDING: Final = object_of(
    check=TEXT,
    severity=TEXT,
    what=TEXT,
    advice=TEXT,
    spot=object_of(
        file=MAYBE_TEXT,
        segment=MAYBE_NUMBER,
        position=MAYBE_NUMBER,
        offset=MAYBE_NUMBER,
        epoch=MAYBE_NUMBER,
    ),
    more=NUMBER,
)
_CAMPAIGN_TOTALS: Final = object_of(
    version=TEXT,
    source=TEXT,
    plan_format=NUMBER,
    seeds=NUMBER,
    events=NUMBER,
    simulated_ms=NUMBER,
    cpu_seconds=QUANTITY,
    events_per_cpu_second=NUMBER,
    cpu_us_per_event=QUANTITY,
    recovery_ms=map_of(or_null(QUANTITY)),
    failed=NUMBER,
    failed_checks=_COUNTS,
    cold=list_of(TEXT),
    coverage=map_of(object_of(seeds=NUMBER, times=NUMBER)),
)
_ROW: Final = map_of({})
"""A row of an answer: its columns depend on the question."""

PIPELINE: Final[Mapping[str, Schema]] = {
    "ingest": _INGESTED,
    "stream": all_of(
        _INGESTED,
        object_of(
            batches=NUMBER,
            unread=list_of(TEXT),
            passed_over=list_of(TEXT),
            silent=list_of(TEXT),
            lag=map_of(object_of(records=NUMBER, ms=NUMBER)),
        ),
    ),
    "history": list_of(_ROW),
    "history-questions": list_of(object_of(name=TEXT, question=TEXT)),
    "who-line": _ROW,
    "who-summary-line": object_of(
        summary=object_of(
            cluster_id=TEXT,
            changes=NUMBER,
            caused_by=_COUNTS,
            confidence=_COUNTS,
            who=_COUNTS,
            files=list_of(_ROW),
            unread_lines=NUMBER,
            controller_clock_ahead_ms=MAYBE_NUMBER,
            notes=list_of(TEXT),
            kept_rows=MAYBE_NUMBER,
        )
    ),
    "audit": object_of(
        ok=FLAG,
        clusters=list_of(
            object_of(
                cluster_id=TEXT,
                voters=list_of(TEXT),
                committed_end=MAYBE_NUMBER,
                committed_epoch=MAYBE_NUMBER,
                replicas=list_of(
                    object_of(
                        cluster_id=TEXT,
                        node_id=NUMBER,
                        path=TEXT,
                        state=TEXT,
                        start=MAYBE_NUMBER,
                        end=MAYBE_NUMBER,
                        last_epoch=MAYBE_NUMBER,
                        findings=list_of(_FINDING),
                    )
                ),
                findings=list_of(_FINDING),
                contradicted_from=MAYBE_NUMBER,
            )
        ),
    ),
    "report": object_of(out=TEXT, clusters=list_of(TEXT)),
    "compact": object_of(
        warehouse=TEXT, joined=NUMBER, written=NUMBER, deleted=NUMBER, seconds=QUANTITY
    ),
    "repair": object_of(
        warehouse=TEXT,
        repaired=list_of(TEXT),
        missing=map_of(list_of(TEXT)),
        rebuilt=list_of(TEXT),
        forgotten=map_of(_RANGES),
        doubled=list_of(TEXT),
        checksums=map_of(NUMBER),
        seconds=QUANTITY,
    ),
    "campaign": all_of(
        _CAMPAIGN_TOTALS,
        object_of(
            out=TEXT,
            ran=NUMBER,
            seconds=QUANTITY,
            failures=list_of(object_of(**_FAILED_SEED, folder=TEXT, shrunk=TEXT)),
        ),
    ),
    "campaign-report": list_of(
        all_of(
            _CAMPAIGN_TOTALS,
            object_of(
                directory=TEXT,
                change=or_null(
                    object_of(
                        common=NUMBER,
                        traces=NUMBER,
                        broken=NUMBER,
                        broken_seeds=list_of(NUMBER),
                        fixed=NUMBER,
                        gained=list_of(TEXT),
                        lost=list_of(TEXT),
                    )
                ),
            ),
        )
    ),
}
