"""The image of a cluster's metadata, and the records that change it (`MetadataImage`).

`diff` and `replay` are also names of modules: import the functions from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.metadata.delta import ImageDelta
    from quorate.metadata.diff import ImageDiff, KeyDiff
    from quorate.metadata.dump import records
    from quorate.metadata.errors import (
        ReplayError,
        UnknownLevelError,
        UnwritableMetadataError,
    )
    from quorate.metadata.image import (
        Acl,
        Broker,
        Cluster,
        ConfigResource,
        Controller,
        DelegationToken,
        Endpoint,
        Features,
        Image,
        Partition,
        QuotaEntity,
        ScramCredential,
        Topic,
        Topics,
        VersionRange,
    )
    from quorate.metadata.interning import Interner
    from quorate.metadata.loader import (
        Loader,
        LogBatch,
        Provenance,
        Published,
        SnapshotBuilder,
        Transaction,
        log_batch,
    )
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "delta": "ImageDelta",
            "diff": "ImageDiff KeyDiff",
            "dump": "records",
            "errors": "ReplayError UnknownLevelError UnwritableMetadataError",
            "image": "Acl Broker Cluster ConfigResource Controller DelegationToken Endpoint "
            "Features Image Partition QuotaEntity ScramCredential Topic Topics "
            "VersionRange",
            "interning": "Interner",
            "loader": "Loader LogBatch Provenance Published SnapshotBuilder Transaction log_batch",
        },
    )

__all__ = [
    "Acl",
    "Broker",
    "Cluster",
    "ConfigResource",
    "Controller",
    "DelegationToken",
    "Endpoint",
    "Features",
    "Image",
    "ImageDelta",
    "ImageDiff",
    "Interner",
    "KeyDiff",
    "Loader",
    "LogBatch",
    "Partition",
    "Provenance",
    "Published",
    "QuotaEntity",
    "ReplayError",
    "ScramCredential",
    "SnapshotBuilder",
    "Topic",
    "Topics",
    "Transaction",
    "UnknownLevelError",
    "UnwritableMetadataError",
    "VersionRange",
    "log_batch",
    "records",
]
