"""The streaming source `spark.readStream.format("quorate-metadata")`: committed records.

reader     the stream reader that Spark calls: offsets, admission control, partitions
options    the options of the stream, parsed and checked
feed       the interface of a committed log that a stream reads in partitions
live       the observer of `quorate.client`, with errors of the pipeline
live_feed  a running quorum as a feed
lag        how far a stream is behind
tail       log directories that grow: their ends, and which offsets are committed
tail_feed  log directories as a feed
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.spark.stream.feed import LogBounds, StreamFeed
    from quorate.spark.stream.lag import LagMeter, StreamLag
    from quorate.spark.stream.options import StreamOptions, parse_stream_options
    from quorate.spark.stream.reader import MetadataStreamReader, open_feeds
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "reader": "MetadataStreamReader open_feeds",
            "options": "StreamOptions parse_stream_options",
            "feed": "LogBounds StreamFeed",
            "lag": "LagMeter StreamLag",
        },
    )

__all__ = [
    "LagMeter",
    "LogBounds",
    "MetadataStreamReader",
    "StreamFeed",
    "StreamLag",
    "StreamOptions",
    "open_feeds",
    "parse_stream_options",
]
