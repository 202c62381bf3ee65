"""Records to image and back, for one record at a time.

`replay` and `records` are each other's inverse: replaying `records(image)` onto `Image()` gives
`image`. To apply many records, an ImageDelta is faster; to follow a log, use the Loader; to write
a snapshot, `record_values` gives the bytes of `records` several times faster.
"""

from __future__ import annotations

from quorate.metadata.bulk import record_values
from quorate.metadata.delta import ImageDelta
from quorate.metadata.dump import records
from quorate.metadata.errors import ReplayError, UnwritableMetadataError
from quorate.metadata.image import Image

__all__ = [
    "ImageDelta",
    "ReplayError",
    "UnwritableMetadataError",
    "record_values",
    "records",
    "replay",
]


def replay(image: Image, record: object) -> Image:
    """`image` after one record of `formats.records`; costs the same at any size of the image.

    Raises ReplayError when the record does not fit, and for the records of a transaction.
    """
    delta = ImageDelta(image)
    delta.replay(record)
    return delta.apply()
