"""AlterUserScramCredentials, DescribeUserScramCredentials (KIP-554).

Source: `ScramControlManager`, `ScramImage.describe`.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.controller.assignments import check_size
from quorate.controller.brokers import metadata_version
from quorate.controller.building import LOOKED_AT, Building, each, in_order, parts
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.result import PAUSE_EVERY, ApiError, Result, Steps, WriteOperation
from quorate.formats.records import RemoveUserScramCredentialRecord
from quorate.metadata.image import Image, ScramKey
from quorate.security.scram_keys import (
    MAX_ITERATIONS,
    MECHANISMS,
    MIN_ITERATIONS,
    credential_record,
)
from quorate.wire.messages import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from quorate.wire.schema import Message

_BY_TYPE: Final = {mechanism.type: mechanism for mechanism in MECHANISMS.values()}
_Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
_Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
_Altered = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
_Described = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult


def _alter(
    head: HeadView, request: AlterUserScramCredentialsRequest, context: Context
) -> Steps[AlterUserScramCredentialsResponse]:
    """Each user is decided alone. A user that is named twice is refused, also for two mechanisms; a
    mistake in what names it first comes before that."""
    image = head.image
    wanted: list[_Deletion | _Upsertion] = [*request.deletions, *request.upsertions]
    changes: dict[str, Message] = {}
    refused: dict[str, ApiError] = {}
    for number, item in enumerate(wanted, 1):
        if number % PAUSE_EVERY == 0:
            yield None
        if item.name in refused:
            continue
        try:
            if changes.pop(item.name, None) is not None:
                text = "A user credential cannot be altered twice in the same request"
                raise ApiError(ErrorCode.DUPLICATE_RESOURCE, text)
            changes[item.name] = _change(image, item)
        except ApiError as error:
            refused[item.name] = error
    records = list(changes.values())
    check_size(records)
    results = []
    for number, name in enumerate({item.name: None for item in wanted}, 1):
        if number % PAUSE_EVERY == 0:
            yield None
        results.append(_altered(name, refused.get(name)))
    return Result(records, AlterUserScramCredentialsResponse(results=results))


def _change(image: Image, item: _Deletion | _Upsertion) -> Message:
    """The record. Raises ApiError where the change is refused."""
    if not metadata_version(image).scram:
        text = "The current metadata.version does not support SCRAM"
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, text)
    if not item.name:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    mechanism = _BY_TYPE.get(item.mechanism)
    if mechanism is None:
        raise ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(item, _Deletion):
        if ScramKey(item.mechanism, item.name) not in image.scram:
            text = "Attempt to delete a user credential that does not exist"
            raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, text)
        return RemoveUserScramCredentialRecord(name=item.name, mechanism=item.mechanism)
    if item.iterations < MIN_ITERATIONS:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if item.iterations > MAX_ITERATIONS:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if not item.salted_password:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Salted password must not be empty")
    return credential_record(mechanism, item.name, item.salt, item.salted_password, item.iterations)


def _altered(name: str, refused: ApiError | None) -> _Altered:
    return _Altered(
        user=name,
        error_code=ErrorCode.NONE if refused is None else refused.error,
        error_message=None if refused is None else str(refused),
    )


def _failed(
    request: AlterUserScramCredentialsRequest, error: ErrorCode, message: str | None
) -> Building[AlterUserScramCredentialsResponse]:
    refused = ApiError(error, message or error.message or "")
    names = dict.fromkeys(item.name for item in request.deletions)
    yield None
    names |= dict.fromkeys(item.name for item in request.upsertions)
    results = yield from each(list(names), lambda name: _altered(name, refused))
    return AlterUserScramCredentialsResponse(results=results)


def _empty(
    request: AlterUserScramCredentialsRequest,
) -> AlterUserScramCredentialsResponse | None:
    if request.deletions or request.upsertions:
        return None
    return AlterUserScramCredentialsResponse()


ALTER_USER_SCRAM_CREDENTIALS: Final = WriteOperation(
    "AlterUserScramCredentials", _alter, _failed, _empty
)


def describe_scram(
    image: Image, request: DescribeUserScramCredentialsRequest
) -> Building[DescribeUserScramCredentialsResponse]:
    """Mechanisms and iterations of the users that the request names, or of all."""
    asked = Counter(user.name for user in request.users or ())
    if asked:
        names = list(asked)
    else:
        users = yield from in_order(key.user for key in image.scram)
        names = []
        for part in parts(users, LOOKED_AT):
            yield None
            for user in part:  # a user may have a credential of each mechanism
                if not names or user != names[-1]:
                    names.append(user)
    results = yield from each(names, lambda name: _describe(image, name, asked[name]))
    return DescribeUserScramCredentialsResponse(results=results)


def _describe(image: Image, name: str, count: int) -> _Described:
    if count > 1:
        return _Described(
            user=name,
            error_code=ErrorCode.DUPLICATE_RESOURCE,
            error_message="Cannot describe SCRAM credentials for the same user twice in a single "
            f"request: {name}",
        )
    infos = [
        _Described.CredentialInfo(mechanism=mechanism, iterations=found.iterations)
        for mechanism in sorted(_BY_TYPE)
        if (found := image.scram.get(ScramKey(mechanism, name))) is not None
    ]
    if not infos:
        return _Described(
            user=name,
            error_code=ErrorCode.RESOURCE_NOT_FOUND,
            error_message=f"Attempt to describe a user credential that does not exist: {name}",
        )
    return _Described(user=name, credential_infos=infos)
