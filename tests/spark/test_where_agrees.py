"""What is left out because of a condition is never what the condition wants.

Over sound and damaged logs: the option `where`, and Spark's pushdown, give the rows that are left
when all rows are read and filtered afterwards.
"""

from __future__ import annotations

import operator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fastcrc.crc32 import iscsi as crc32c
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from quorate.formats.batch import encode_batch, iter_batches
from quorate.spark.session import register
from spark.logs import NO_OP, START_MS, batches, end_offset, log_directory, snapshot
from spark.test_plan import read

COLUMNS = (
    *("cluster_id", "node_id", "kind", "snapshot_offset", "segment", "position", "crc_ok"),
    *("is_control", "offset", "epoch", "timestamp", "type", "version", "topic_name", "problem"),
)
COMPARED = {
    EqualTo: operator.eq,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
}
SIGNS = {EqualTo: "=", LessThan: "<", LessThanOrEqual: "<=", GreaterThan: ">"}
SIGNS[GreaterThanOrEqual] = ">="
Row = dict[str, Any]


def unreadable(data: bytes) -> bytes:
    """The same; records of the third batch cannot be separated, and its checksum is right."""
    changed = bytearray(data)
    third = list(iter_batches(data))[2]
    changed[third.position + 61] = 0xFF  # the length of its first record
    body = bytes(changed[third.position + 21 : third.position + third.size])
    changed[third.position + 17 : third.position + 21] = crc32c(body).to_bytes(4, "big")
    return bytes(changed)


def damaged(data: bytes, random: Random) -> bytes:
    """With some bytes changed that the checksum covers, or epochs that it does not; or cut off."""
    changed = bytearray(data)
    for batch in random.sample(list(iter_batches(data)), 2):
        covered = range(batch.position + 21, batch.position + batch.size)
        changed[random.choice((*covered, batch.position + 14))] ^= 1 << random.randrange(8)
    return bytes(changed[: random.choice((len(data), random.randrange(len(data))))])


def write(home: Path, random: Random) -> Path:
    first = b"".join(batches())
    base = end_offset(first)
    second = b"".join(batches(base=base, epoch=2))
    third = encode_batch(end_offset(second), 4, START_MS, [NO_OP])
    shapes = [lambda data: data, unreadable, lambda data: damaged(data, random)]
    segments = {
        0: random.choice(shapes)(first),
        base: random.choice(shapes)(second),
        end_offset(second): third,
    }
    whole = snapshot()
    other = random.choice((whole, damaged(whole, random)))
    return log_directory(home, segments, {(10, 1): other})


def a_filter(rows: list[Row], random: Random) -> Filter:
    column = random.choice(COLUMNS)
    values = [row[column] for row in rows if row[column] is not None]
    if not values or random.random() < 0.3:
        return random.choice((IsNull, IsNotNull))((column,))
    if isinstance(values[0], bool):
        one: Filter = EqualTo((column,), random.choice((True, False)))
    elif random.random() < 0.3:
        one = In((column,), tuple(random.sample(values, min(3, len(values)))))
    else:
        one = random.choice(list(COMPARED))((column,), random.choice(values))
    return Not(one) if isinstance(one, EqualTo | In) and random.random() < 0.3 else one


def holds(found: Filter, row: Row) -> bool:
    if isinstance(found, Not):
        return row[found.child.attribute[0]] is not None and not holds(found.child, row)  # type: ignore[attr-defined]
    value = row[found.attribute[0]]  # type: ignore[attr-defined]
    if isinstance(found, IsNull | IsNotNull):
        return (value is None) == isinstance(found, IsNull)
    if isinstance(found, EqualNullSafe) and found.value is None:
        return value is None
    if value is None:
        return False
    if isinstance(found, In):
        return value in found.value
    return COMPARED[type(found)](value, found.value)  # type: ignore[attr-defined]


def literal(value: Any) -> str:
    if isinstance(value, bool | int):
        return str(value).lower()
    return "'" + str(value).replace("'", "''") + "'"


def text(found: Filter) -> str:
    """As the option `where` has it."""
    if isinstance(found, Not):
        inner = text(found.child)
        return inner.replace(" = ", " <> ") if " = " in inner else inner.replace(" IN ", " NOT IN ")
    column = found.attribute[0]  # type: ignore[attr-defined]
    if isinstance(found, IsNull | IsNotNull):
        return f"{column} IS {'' if isinstance(found, IsNull) else 'NOT '}NULL"
    if isinstance(found, In):
        return f"{column} IN ({', '.join(map(literal, found.value))})"
    return f"{column} {SIGNS[type(found)]} {literal(found.value)}"  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", range(60))
def test_a_condition_gives_what_filtering_afterwards_gives(tmp_path: Path, seed: int):
    random = Random(seed)
    home = write(tmp_path, random)
    options = {"maxPartitionBytes": random.choice(("400", "33554432"))}
    rows = read(home, **options)
    for _ in range(25):
        filters = [a_filter(rows, random) for _ in range(random.choice((1, 1, 2)))]
        wanted = [row for row in rows if all(holds(one, row) for one in filters)]
        where = " AND ".join(map(text, filters))
        assert read(home, where=where, **options) == wanted, where
        pushed = read(home, filters=filters, **options)
        assert [row for row in pushed if all(holds(one, row) for one in filters)] == wanted, where


@pytest.mark.parametrize("column", ["offset", "epoch", "timestamp", "is_control"])
def test_a_null_is_looked_for_where_there_is_damage(tmp_path: Path, column: str):
    """One flipped byte, and a batch that is whole but whose records cannot be separated."""
    flipped = bytearray(b"".join(batches()))
    flipped[-3] ^= 0xFF
    base = 21
    second = unreadable(b"".join(batches(base=base)))
    home = log_directory(tmp_path, {0: bytes(flipped), base: second})
    wanted = [row for row in read(home) if row[column] is None]
    assert len(wanted) == 2 and all(row["problem"] for row in wanted)
    assert read(home, where=f"{column} IS NULL") == wanted
    for one in (IsNull((column,)), EqualNullSafe((column,), None)):
        pushed = read(home, filters=[one])
        assert [row for row in pushed if row[column] is None] == wanted


def test_spark_agrees(spark, tmp_path: Path):
    data = bytearray(b"".join(batches()))
    data[-3] ^= 0xFF
    home = str(log_directory(tmp_path, {0: bytes(data)}))
    register(spark)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    for options in ({}, {"where": "offset IS NULL"}, {"pushdown": "true"}):
        for condition in ("offset IS NULL", "epoch <=> NULL"):
            frame = spark.read.format("quorate-metadata").options(**options).load(home)
            assert frame.where(condition).count() == 1, (options, condition)
