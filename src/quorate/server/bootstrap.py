"""The records that a new cluster begins with, from the two places where releases of Kafka keep them.

1. Up to Kafka 4.3: `bootstrap.checkpoint` of the metadata log directory.
2. From Kafka 4.4 on: data records in the snapshot 0-0 of the metadata log (KAFKA-19648). Where there
   are any, they replace all of the other file, as in `QuorumController.handleLoadBootstrap`.
"""

from __future__ import annotations

from pathlib import Path

from quorate.base.sentences import sentence
from quorate.controller.activation import Bootstrap, metadata_version_in
from quorate.formats.errors import FormatError, NewerBatchError, NewerRecordError
from quorate.formats.files import BOOTSTRAP_CHECKPOINT, PARTITION_DIRECTORY, snapshot_name
from quorate.formats.snapshot import BOOTSTRAP_SNAPSHOT_ID, read_snapshot
from quorate.formats.supported_levels import check_values
from quorate.formats.versions import FeatureError
from quorate.storage.disk import read_regular


def read_bootstrap(metadata_log_dir: Path, is_new: bool, unstable: bool = False) -> Bootstrap:
    """Read the bootstrap records; without any, the default of `Bootstrap`.

    `is_new`: the log has no feature level and may begin with them. Then each level must be supported;
    `unstable` is `unstable.feature.versions.enable`. Raises UnsupportedLevelError, FormatError for a
    damaged file and for records that this release does not know, and OSError.
    """
    for path in (
        metadata_log_dir / PARTITION_DIRECTORY / snapshot_name(BOOTSTRAP_SNAPSHOT_ID),
        metadata_log_dir / BOOTSTRAP_CHECKPOINT,
    ):
        try:
            data = read_regular(str(path))
        except FileNotFoundError:
            continue
        try:
            bootstrap = Bootstrap(read_snapshot(data).values)
            # The initial voters alone, or nothing: no records are kept here.
            if not bootstrap.values and path.name != BOOTSTRAP_CHECKPOINT:
                continue
            records = bootstrap.records()
            if is_new:
                check_values(bootstrap.values, unstable, str(path))
                metadata_version_in(records)
        except (NewerBatchError, NewerRecordError) as error:
            raise FormatError(
                f"{path}: {sentence(str(error))} A newer release of Kafka formatted this directory: "
                "run that release here, or format a new directory"
            ) from None
        except (FormatError, FeatureError) as error:
            raise FormatError(
                f"{path}: {sentence(str(error))} Restore the file, or format anew"
            ) from None
        return bootstrap
    return Bootstrap()
