"""Feature levels: what ApiVersions reports, and which updates the active controller accepts.

Rules and texts: `FeatureControlManager`, `QuorumFeatures`, `DefaultApiVersionManager`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.java_order import hash_map_order
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.result import (
    ApiError,
    Decision,
    KRaftVersionChange,
    Result,
    Steps,
    WriteOperation,
    error_text,
)
from quorate.formats.records import ConfigRecord, FeatureLevelRecord
from quorate.formats.versions import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureError,
    feature,
    metadata_changed_between,
    metadata_version_of,
    supported_features,
)
from quorate.metadata.image import ELR_FEATURE, ConfigResource, Features, Image, VersionRange
from quorate.metadata.resource_types import BROKER_RESOURCE
from quorate.metadata.settings import Configs
from quorate.wire.messages import (
    ApiVersionsResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3
_MIN_INSYNC: Final = "min.insync.replicas"
_ALL_BROKERS: Final = ""


def finalized_levels(features: Features, kraft_version: int) -> dict[str, int]:
    """Level by name, without those at 0.

    In order of names: an immutable map iterates in the order of hashes, which differ by process.
    """
    levels = dict(features.levels)
    if features.metadata_version is not None:
        levels[METADATA_VERSION] = int(features.metadata_version)
    levels.pop(KRAFT_VERSION, None)
    if kraft_version:
        levels[KRAFT_VERSION] = kraft_version
    return {name: level for name, level in sorted(levels.items()) if level}


def api_versions(
    apis: Iterable[tuple[int, int, int]],
    version: int,
    image: Image,
    image_offset: int,
    kraft_version: int,
    unstable: bool,
) -> ApiVersionsResponse:
    """The answer to ApiVersions; `apis` are (key, lowest, highest version).

    Up to version 3 a feature whose lowest level is 0 must not be listed (KIP-1022). Before the
    metadata.version is known no level is in force, not even kraft.version (KAFKA-19964).
    """
    cls = ApiVersionsResponse
    is_known = image.features.metadata_version is not None
    levels = finalized_levels(image.features, kraft_version) if is_known else {}
    return cls(
        api_keys=[
            cls.ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, low, high in apis
        ],
        supported_features=[
            cls.SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in supported_features(unstable).items()
            if high > 0 and (low > 0 or version >= 4)
        ],
        finalized_features_epoch=image_offset if is_known else -1,
        finalized_features=[
            cls.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in levels.items()
        ],
    )


# -- UpdateFeatures (KIP-584) ----------------------------------------------------------------------
def _decide(
    head: HeadView, request: UpdateFeaturesRequest, context: Context
) -> Decision[UpdateFeaturesResponse]:
    try:
        levels, kraft_version = _updates(head.image, request, context)
    except ApiError as refused:
        return Result((), _update_failed(refused))
    configs = elr_records(levels, head.image.configs, context.configs.min_insync_replicas)
    records = [] if request.validate_only else [*configs, *levels]
    response = _updated(request, context.version)
    if kraft_version is None:
        return Result(records, response)
    change = KRaftVersionChange(kraft_version, request.validate_only)
    return _after_kraft_version(change, Result(records, response))


def _after_kraft_version(
    change: KRaftVersionChange, result: Result[UpdateFeaturesResponse]
) -> Steps[UpdateFeaturesResponse]:
    """kraft.version lives in control records, so the raft layer writes it; the other levels follow.

    Kafka writes a NoOpRecord to wait for; here the raft layer reports the commit.
    """
    try:
        yield change
    except ApiError as refused:
        return Result((), _update_failed(refused))
    return result


def _failed(
    request: UpdateFeaturesRequest, error: ErrorCode, message: str | None
) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=error, error_message=error_text(error, message))


UPDATE_FEATURES: Final = WriteOperation("UpdateFeatures", _decide, _failed)


def _update_failed(refused: ApiError) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(
        error_code=refused.error,
        error_message="The update failed for all features since the following feature had an "
        f"error: {refused}",
    )


def _updated(request: UpdateFeaturesRequest, version: int) -> UpdateFeaturesResponse:
    """Up to version 1 each feature has a result of its own."""
    features = [update.feature for update in request.feature_updates] if version <= 1 else []
    result = UpdateFeaturesResponse.UpdatableFeatureResult
    return UpdateFeaturesResponse(
        error_message=None,
        results=[result(feature=name, error_message=ErrorCode.NONE.name) for name in features],
    )


def _updates(
    image: Image, request: UpdateFeaturesRequest, context: Context
) -> tuple[list[FeatureLevelRecord], int | None]:
    """The records to write, and the kraft.version to raise to (None: not asked for).

    Raises ApiError for the first feature that cannot be updated. Where a feature is named twice,
    the last update counts. AllowDowngrade of version 0 is ignored, as `FeatureControlManager`
    ignores it: such an update is an UPGRADE, the default of UpgradeType.
    """
    kraft_version = context.control.kraft_version
    current = finalized_levels(image.features, kraft_version)
    asked = {update.feature: update for update in request.feature_updates}
    updates = {name: asked[name] for name in hash_map_order(asked)}
    proposed = current | {name: update.max_version_level for name, update in updates.items()}
    found: list[FeatureLevelRecord] = []
    upgrade: int | None = None
    for update in updates.values():
        name, level, kind = update.feature, update.max_version_level, update.upgrade_type
        reason = _unsupported(name, level, image, context)
        _check_direction(name, level, current.get(name, 0), kind, reason)
        if name == KRAFT_VERSION:
            if kind == UPGRADE:
                upgrade = level
            elif level != kraft_version:
                _refuse(name, level, "Can't downgrade the version of this feature.")
            continue
        if name == METADATA_VERSION:
            _check_metadata_version(current[name], level, kind)
        else:
            try:
                feature(name).check(level, proposed)
            except FeatureError as error:
                _refuse(name, level, str(error))
        found.append(FeatureLevelRecord(name=name, feature_level=level))
    return found, upgrade


def elr_records(
    levels: Iterable[FeatureLevelRecord], configs: Configs, min_insync_replicas: int
) -> list[ConfigRecord]:
    """The configs that are written when these levels turn eligible leader replicas on (KIP-966).

    All brokers must agree on min.insync.replicas then (`maybeGenerateElrSafetyRecords`): the
    cluster gets a value, and the values of single brokers are removed.
    """
    if not any(record.name == ELR_FEATURE and record.feature_level > 0 for record in levels):
        return []
    everywhere = ConfigResource(BROKER_RESOURCE, _ALL_BROKERS)
    found = []
    if _MIN_INSYNC not in configs.get(everywhere, {}):
        found.append(min_insync_record(min_insync_replicas))
    of_one = sorted(
        resource.name
        for resource, values in configs.items()
        if resource.type == BROKER_RESOURCE and resource.name and _MIN_INSYNC in values
    )
    return found + [_config_of_broker(name, None) for name in of_one]


def min_insync_record(replicas: int) -> ConfigRecord:
    """The cluster's own min.insync.replicas."""
    return _config_of_broker(_ALL_BROKERS, str(replicas))


def _config_of_broker(broker: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(
        resource_type=BROKER_RESOURCE, resource_name=broker, name=_MIN_INSYNC, value=value
    )


def _check_direction(
    name: str, level: int, current: int, kind: int, unsupported: str | None
) -> None:
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        _refuse(name, level, "The controller does not support the given upgrade type.")
    if level < 0:
        _refuse(name, level, "A feature version cannot be less than 0.")
    if unsupported is not None:
        _refuse(name, level, unsupported)
    if level < current and kind == UPGRADE:
        _refuse(
            name,
            level,
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade.",
        )
    if level > current and kind != UPGRADE:
        _refuse(name, level, "Can't downgrade to a newer version.")


def _check_metadata_version(current: int, level: int, kind: int) -> None:
    try:
        old, new = metadata_version_of(current), metadata_version_of(level)
    except FeatureError as error:
        raise ApiError(
            ErrorCode.INVALID_UPDATE_VERSION, f"Invalid metadata.version {level}. {error}"
        ) from None
    if new < old and metadata_changed_between(old, new):
        reason = (
            "Unsafe metadata downgrade is not supported in this version."
            if kind == UNSAFE_DOWNGRADE
            else "Refusing to perform the requested downgrade because it might delete metadata "
            "information."
        )
        raise ApiError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Unsupported metadata.version downgrade from {current} to {level}. {reason}",
        )


def _unsupported(name: str, level: int, image: Image, context: Context) -> str | None:
    """Why some node does not support `level`; None when all do."""
    node_id = context.config.node_id
    own = supported_features(context.config.unstable_features).get(name, (0, 0))
    if reason := _outside(level, f"Local controller {node_id}", own):
        return reason
    for broker_id, broker in image.cluster.brokers.items():
        if reason := _outside(level, f"Broker {broker_id}", _range_of(name, broker.features)):
            return reason
    version = image.features.metadata_version
    if version is None or not version.controller_registration:
        return None
    for controller_id, controller in image.cluster.controllers.items():
        theirs = _range_of(name, controller.features)
        reason = _outside(level, f"Controller {controller_id}", theirs)
        if reason and controller_id != node_id:
            return reason
    for voter in context.control.voters or ():
        voter_id = voter.key.id
        if voter_id != node_id and voter_id not in image.cluster.controllers:
            return f"controller {voter_id} has not registered, and may not support this feature"
    return None


def _range_of(name: str, features: Iterable[VersionRange]) -> tuple[int, int]:
    return next(((item.min, item.max) for item in features if item.name == name), (0, 0))


def _outside(level: int, who: str, supported: tuple[int, int]) -> str | None:
    low, high = supported
    if low <= level <= high:
        return None
    if high == 0:
        return f"{who} does not support this feature."
    versions = f"{low}" if low == high else f"{low}-{high}"
    return f"{who} only supports versions {versions}"


def _refuse(name: str, level: int, reason: str) -> None:
    raise ApiError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Invalid update version {level} for feature {name}. {reason}",
    )
