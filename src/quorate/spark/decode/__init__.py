"""Decodes the batches of a log or snapshot to Arrow columns. A job spends most of its time here.

batches   the decoders of the source: batches in, Arrow record batches out
rows      the rows of batches, and the columns that batch headers fill
groups    many records of one type and version at once, without a loop over them
walk      the fields of many records at once, found by numpy
arrays    the values of one field of many records, as Arrow arrays and as JSON
facts     the key facts of a record: its topic, partition, broker or other resource
columns   the columns of `quorate-metadata`
typed     the columns of the typed view of each record type
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.spark.decode.batches import Decoder, RowDecoder, ViewDecoder
    from quorate.spark.decode.columns import COLUMNS, COMMENTS
    from quorate.spark.decode.rows import BatchRows, Origin
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "batches": "Decoder RowDecoder ViewDecoder",
            "columns": "COLUMNS COMMENTS",
            "rows": "BatchRows Origin",
        },
    )

__all__ = [
    "COLUMNS",
    "COMMENTS",
    "BatchRows",
    "Decoder",
    "Origin",
    "RowDecoder",
    "ViewDecoder",
]
