"""Controllers come and go: ControllerRegistration (KIP-919), UnregisterController (KIP-1312).

Rules and error texts: `ClusterControlManager.registerController`, `unregisterController`.
"""

from __future__ import annotations

from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import Uuid
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.result import ApiError, Result, WriteOperation
from quorate.formats.records import RegisterControllerRecord, UnregisterControllerRecord
from quorate.metadata.cluster import SECURITY_PROTOCOLS
from quorate.wire.messages import (
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    UnregisterControllerRequest,
    UnregisterControllerResponse,
)


# -- registration ------------------------------------------------------------------------------
def _register(
    head: HeadView, request: ControllerRegistrationRequest, context: Context
) -> Result[ControllerRegistrationResponse]:
    version = head.image.features.metadata_version
    if version is None or not version.controller_registration:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            "The current MetadataVersion is too old to support controller registrations.",
        )
    for end in request.listeners:
        if problem := listener_problem(end):  # Kafka answers UNKNOWN_SERVER_ERROR
            raise ApiError(ErrorCode.INVALID_REQUEST, problem)
    return Result([_record(request)], ControllerRegistrationResponse())


def _registration_failed(
    request: ControllerRegistrationRequest, error: ErrorCode, message: str | None
) -> ControllerRegistrationResponse:
    """Return the response with the code's own text, whatever the reason."""
    return ControllerRegistrationResponse(error_code=error, error_message=error.message)


CONTROLLER_REGISTRATION: Final = WriteOperation(
    "ControllerRegistration", _register, _registration_failed
)


def _record(request: ControllerRegistrationRequest) -> RegisterControllerRecord:
    return RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=Uuid(request.incarnation_id),
        zk_migration_ready=False,
        end_points=[
            RegisterControllerRecord.ControllerEndpoint(
                name=end.name,
                host=end.host,
                port=end.port,
                security_protocol=end.security_protocol,
            )
            for end in {one.name: one for one in request.listeners}.values()
        ],
        features=[
            RegisterControllerRecord.ControllerFeature(
                name=item.name,
                min_supported_version=item.min_supported_version,
                max_supported_version=item.max_supported_version,
            )
            for item in request.features
        ],
    )


def listener_problem(
    end: ControllerRegistrationRequest.Listener | BrokerRegistrationRequest.Listener,
) -> str | None:
    """Why a listener must not be registered.

    Once committed, a record with an unknown protocol ends every node, at each start; and
    DescribeCluster would send admin clients to an address that is none.
    """
    if end.security_protocol not in SECURITY_PROTOCOLS:
        return f"Unknown security protocol {end.security_protocol} in listener {end.name}"
    if end.port == 0:
        return f"Listener {end.name} has the port 0, which is no address"
    return None if end.host.strip() else f"Listener {end.name} has no host, which is no address"


# -- unregistration ----------------------------------------------------------------------------
def _unregister(
    head: HeadView, request: UnregisterControllerRequest, context: Context
) -> Result[UnregisterControllerResponse]:
    """Asks neither whether the controller is a voter nor whether it runs, as Kafka 4.4.0: one that
    runs registers again."""
    controller_id = request.controller_id
    if controller_id == context.config.node_id:
        text = "Controller cannot unregister itself while it is active."
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    version = head.image.features.metadata_version
    if version is None or not version.controller_unregistration:
        text = "The current MetadataVersion is too old to support controller unregistration."
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, text)
    if controller_id not in head.image.cluster.controllers:
        text = f"Controller ID {controller_id} is not currently registered."
        raise ApiError(ErrorCode.CONTROLLER_ID_NOT_REGISTERED, text)
    record = UnregisterControllerRecord(controller_id=controller_id)
    return Result([record], UnregisterControllerResponse())


def _unregistration_failed(
    request: UnregisterControllerRequest, error: ErrorCode, message: str | None
) -> UnregisterControllerResponse:
    return UnregisterControllerResponse(error_code=error, error_message=message)


UNREGISTER_CONTROLLER: Final = WriteOperation(
    "UnregisterController", _unregister, _unregistration_failed
)
