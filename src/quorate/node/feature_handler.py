"""UpdateFeatures (KIP-584) on the active controller; the rules are `features`."""

from __future__ import annotations

from dataclasses import replace

from quorate.base.errors import ErrorCode
from quorate.formats.records import encode_record
from quorate.node import features
from quorate.node.calls import Call
from quorate.node.host import ControllerHost
from quorate.node.replica import Committed
from quorate.raft.ready import Refused
from quorate.wire.messages import UpdateFeaturesRequest, UpdateFeaturesResponse
from quorate.wire.schema import Message


def update_features(host: ControllerHost, call: Call) -> Message | None:
    """Decide on the levels as they will be, append, and answer when it is committed."""
    message = call.message
    assert isinstance(message, UpdateFeaturesRequest)
    if not host.is_active or host.image.features.metadata_version is None:
        return UpdateFeaturesResponse(
            error_code=ErrorCode.NOT_CONTROLLER,
            error_message="This node is not the active controller.",
        )
    control = host.control
    committed = host.image.features
    image = replace(host.image, features=host.features.over(committed))
    voter_ids = [voter.key.id for voter in control.voters or ()]
    try:
        found, upgrade = features.decide_update(
            message,
            image,
            control.kraft_version,
            host.node_id,
            voter_ids,
            host.unstable_features,
        )
    except features.UpdateRefused as refused:
        return _update_failed(refused.error, str(refused))
    if message.validate_only and upgrade is None:
        return _updated(message, call.request.version)
    configs = features.elr_records(found, host.image.configs, host.min_insync_replicas)
    values = [encode_record(record, 0) for record in (*configs, *found)]
    host.features.begin(committed, () if message.validate_only else found)

    def done(outcome: Committed | Refused) -> Message:
        host.features.settle()
        if isinstance(outcome, Refused):
            if outcome.in_doubt:  # it has not failed: it may be committed, or a part of it is
                return UpdateFeaturesResponse(
                    error_code=outcome.error, error_message=outcome.message
                )
            return _update_failed(outcome.error, outcome.message)
        return _updated(message, call.request.version)

    def upgraded(outcome: Committed | Refused) -> Message | None:
        if isinstance(outcome, Refused) or not values or message.validate_only:
            return done(outcome)
        host.submit(call, values, done)
        return None

    if upgrade is not None:
        host.upgrade_kraft_version(call, upgrade, message.validate_only, upgraded)
        return None
    # Without a record to write the answer still waits for what was decided on before.
    host.submit(call, values, done)
    return None


def _update_failed(error: ErrorCode, message: str) -> Message:
    return UpdateFeaturesResponse(
        error_code=error,
        error_message="The update failed for all features since the following feature had an "
        f"error: {message}",
    )


def _updated(message: UpdateFeaturesRequest, version: int) -> Message:
    results = []
    if version <= 1:
        results = [
            UpdateFeaturesResponse.UpdatableFeatureResult(
                feature=update.feature, error_message=None
            )
            for update in message.feature_updates
        ]
    return UpdateFeaturesResponse(error_message=None, results=results)
