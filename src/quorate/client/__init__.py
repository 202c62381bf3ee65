"""Clients of a cluster: the admin client, connections, results, configuration, voter set changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.client.admin import (
        Admin,
        AsyncAdmin,
        ClientClosedError,
        ClientConfig,
        NoActiveControllerError,
        NoReachableNodeError,
        NotLoadedError,
        PartlyDoneError,
    )
    from quorate.client.alter import AlterError, QuorumView, Targets, steps_to
    from quorate.client.config import BootstrapError, client_config
    from quorate.client.connection import Connection
    from quorate.client.errors import (
        ClientError,
        ConnectError,
        NoResponseError,
        TlsRefusedError,
        UnsupportedVersionError,
    )
    from quorate.client.results import (
        ClusterDescription,
        FeatureMetadata,
        MismatchedEndpointTypeError,
        NodeDescription,
        QuorumInfo,
        ReplicaStatus,
        RequestFailedError,
        UnsupportedEndpointTypeError,
    )
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "admin": "Admin AsyncAdmin ClientClosedError ClientConfig NoActiveControllerError "
            "NoReachableNodeError NotLoadedError PartlyDoneError",
            "alter": "AlterError QuorumView Targets steps_to",
            "config": "BootstrapError client_config",
            "connection": "Connection",
            "errors": "ClientError ConnectError NoResponseError TlsRefusedError "
            "UnsupportedVersionError",
            "results": "ClusterDescription FeatureMetadata MismatchedEndpointTypeError "
            "NodeDescription QuorumInfo ReplicaStatus RequestFailedError UnsupportedEndpointTypeError",
        },
    )

__all__ = [
    "Admin",
    "AlterError",
    "AsyncAdmin",
    "BootstrapError",
    "ClientClosedError",
    "ClientConfig",
    "ClientError",
    "ClusterDescription",
    "ConnectError",
    "Connection",
    "FeatureMetadata",
    "MismatchedEndpointTypeError",
    "NoActiveControllerError",
    "NoReachableNodeError",
    "NoResponseError",
    "NodeDescription",
    "NotLoadedError",
    "PartlyDoneError",
    "QuorumInfo",
    "QuorumView",
    "ReplicaStatus",
    "RequestFailedError",
    "Targets",
    "TlsRefusedError",
    "UnsupportedEndpointTypeError",
    "UnsupportedVersionError",
    "client_config",
    "steps_to",
]
