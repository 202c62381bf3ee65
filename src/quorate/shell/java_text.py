"""The lines that Kafka prints for registrations, partitions, entries and tokens (their `toString`)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from quorate.base.ids import Uuid, uuid_to_text
from quorate.formats.json_text import double
from quorate.metadata.image import (
    RECOVERED,
    Acl,
    Broker,
    Controller,
    DelegationToken,
    Endpoint,
    Partition,
    ScramCredential,
    VersionRange,
)
from quorate.metadata.loader import Provenance
from quorate.security.acl import AclOperation, AclResource
from quorate.shell.nodes import REDACTED, Redaction

_SECURITY_PROTOCOLS: Final = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}
_PATTERN_TYPES: Final = {1: "ANY", 2: "MATCH", 3: "LITERAL", 4: "PREFIXED"}
_PERMISSIONS: Final = {1: "ANY", 2: "DENY", 3: "ALLOW"}
_OPERATIONS: Final = {1: "ANY", 2: "ALL"} | {int(one): one.name for one in AclOperation}
_RESOURCES: Final = {1: "ANY"} | {int(one): one.name for one in AclResource}
_UNKNOWN: Final = "UNKNOWN"
_MAX_INT16: Final = 0x7FFF


def provenance(end: Provenance) -> str:
    """Offset, epoch and time of the image, as `ProvenanceNode` prints them, in UTC."""
    return f"offset {end.offset}, epoch {end.epoch}, time {zoned_time(end.timestamp_ms)}"


def zoned_time(timestamp_ms: int) -> str:
    """E.g. `2026-11-21T06:14:50.287Z[UTC]`: trailing zeros of the fraction are left out."""
    seconds, ms = divmod(timestamp_ms, 1000)
    try:
        whole = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return f"{timestamp_ms} ms since 1970"
    fraction = f".{ms:03d}".rstrip("0").rstrip(".")
    return f"{whole}{fraction}Z[UTC]"


def broker(found: Broker) -> str:
    cordoned = found.cordoned_directories
    rack = "Optional.empty" if found.rack is None else f"Optional[{found.rack}]"
    return (
        f"BrokerRegistration(id={found.id}, epoch={found.epoch}, "
        f"incarnationId={uuid_to_text(found.incarnation_id)}, "
        f"listeners={_listeners(found.listeners)}, "
        f"supportedFeatures={_features(found.features)}, rack={rack}, "
        f"fenced={_boolean(found.fenced)}, "
        f"inControlledShutdown={_boolean(found.in_controlled_shutdown)}, "
        f"isMigratingZkBroker={_boolean(found.is_migrating_zk_broker)}, "
        f"directories={_uuids(found.directories)}, "
        f"cordonedDirectories={'null' if cordoned is None else _uuids(cordoned)})"
    )


def controller(found: Controller) -> str:
    return (
        f"ControllerRegistration(id={found.id}, "
        f"incarnationId={uuid_to_text(found.incarnation_id)}, "
        f"zkMigrationReady={_boolean(found.zk_migration_ready)}, "
        f"listeners={_listeners(found.listeners)}, "
        f"supportedFeatures={_features(found.features)})"
    )


def partition(found: Partition) -> str:
    state = "RECOVERED" if found.leader_recovery_state == RECOVERED else "RECOVERING"
    return (
        f"PartitionRegistration(replicas={_list(found.replicas)}, "
        f"directories={_uuids(found.directories)}, isr={_list(found.isr)}, "
        f"removingReplicas={_list(found.removing_replicas)}, "
        f"addingReplicas={_list(found.adding_replicas)}, elr={_list(found.elr)}, "
        f"lastKnownElr={_list(found.last_known_elr)}, leader={found.leader}, "
        f"leaderRecoveryState={state}, leaderEpoch={found.leader_epoch}, "
        f"partitionEpoch={found.partition_epoch})"
    )


def acl(entry: Acl) -> str:
    return (
        f"StandardAcl[resourceType={_RESOURCES.get(entry.resource_type, _UNKNOWN)}, "
        f"resourceName={entry.resource_name}, "
        f"patternType={_PATTERN_TYPES.get(entry.pattern_type, _UNKNOWN)}, "
        f"principal={entry.principal}, host={entry.host}, "
        f"operation={_OPERATIONS.get(entry.operation, _UNKNOWN)}, "
        f"permissionType={_PERMISSIONS.get(entry.permission_type, _UNKNOWN)}]"
    )


def scram_credential(found: ScramCredential, redaction: Redaction) -> str:
    hidden = redaction.hides_credentials
    salt, stored, server, iterations = (
        [REDACTED] * 4
        if hidden
        else [
            found.salt.hex(),
            found.stored_key.hex(),
            found.server_key.hex(),
            str(found.iterations),
        ]
    )
    return (
        f"ScramCredentialData(salt={salt}, storedKey={stored}, serverKey={server}, "
        f"iterations={iterations})"
    )


def delegation_token(token_id: str, token: DelegationToken, redaction: Redaction) -> str:
    """A token as `DelegationTokenDataNode` prints it, with its brackets."""
    values: list[object] = [
        token_id,
        token.owner,
        token.requester,
        " ".join(token.renewers),
        token.issue_timestamp,
        token.max_timestamp,
        token.expiration_timestamp,
    ]
    if redaction.hides_credentials:
        values = [REDACTED] * len(values)
    token_id, owner, requester, renewers, issued, most, expiry = map(str, values)
    return (
        f"DelegationTokenDatatokenId={token_id}(owner={owner}(tokenRequester={requester}"
        f"(renewers={renewers}, issueTimestamp={issued}, maxTimestamp={most}), "
        f"expiryTimestamp={expiry}"
    )


def quota(value: float) -> str:
    return double(value).strip('"')


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _list(values: Iterable[object]) -> str:
    return f"[{', '.join(map(str, values))}]"


def _uuids(values: Iterable[Uuid]) -> str:
    return _list(map(uuid_to_text, values))


def _listeners(listeners: Iterable[Endpoint]) -> str:
    return _list(
        f"Endpoint(listenerName='{one.name}', "
        f"securityProtocol={_SECURITY_PROTOCOLS.get(one.security_protocol, _UNKNOWN)}, "
        f"host='{one.host}', port={one.port})"
        for one in listeners
    )


def _features(features: Iterable[VersionRange]) -> str:
    return "{" + ", ".join(f"{one.name}: {_range(one)}" for one in features) + "}"


def _range(versions: VersionRange) -> str:
    if versions.min == versions.max:
        return str(versions.min)
    return f"{versions.min}+" if versions.max == _MAX_INT16 else f"{versions.min}-{versions.max}"
