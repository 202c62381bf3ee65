"""DescribeClientQuotas: the quotas in the image that match a filter (KIP-546).

Source: `ClientQuotasImage.describe`. A controller of Kafka does not serve it.
"""

from __future__ import annotations

from typing import Final

from quorate.base.errors import ErrorCode
from quorate.controller.building import ROWS, Building
from quorate.controller.quotas import CLIENT_ID, IP, USER
from quorate.controller.result import ApiError
from quorate.metadata.image import Image, QuotaEntity
from quorate.wire.messages import DescribeClientQuotasRequest, DescribeClientQuotasResponse

_EXACT: Final = 0
_DEFAULT: Final = 1
_SPECIFIED: Final = 2
_Entry = DescribeClientQuotasResponse.EntryData
_Component = DescribeClientQuotasRequest.ComponentData


def describe_quotas(
    image: Image, request: DescribeClientQuotasRequest
) -> Building[DescribeClientQuotasResponse]:
    """The entities that match every component; with `strict`, those that have no other type."""
    try:
        exact, any_name = _filter(request.components)
    except ApiError as error:
        return DescribeClientQuotasResponse(
            error_code=error.error, error_message=str(error), entries=None
        )
    types = len(exact) + len(any_name)
    entries = []
    for number, (entity, values) in enumerate(image.client_quotas.items(), 1):
        if number % ROWS == 0:
            yield None
        if request.strict and len(entity) != types:
            continue
        if _matches(dict(entity), exact, any_name):
            entries.append(_entry(entity, dict(values)))
    return DescribeClientQuotasResponse(entries=entries)


def _filter(components: list[_Component]) -> tuple[dict[str, str | None], set[str]]:
    """The names by type (None is the default entity), and the types with any name.

    Raises ApiError for a filter that contradicts itself.
    """
    exact: dict[str, str | None] = {}
    any_name: set[str] = set()
    for component in components:
        kind, match = component.entity_type, component.match
        if not kind:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
        if kind in exact or kind in any_name:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"Entity type {kind} cannot appear more than once in the filter.",
            )
        if kind not in (IP, USER, CLIENT_ID):
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        _check_match(component.match_type, match)
        if component.match_type == _SPECIFIED:
            any_name.add(kind)
        else:
            exact[kind] = match
    asked = exact.keys() | any_name
    if IP in asked and len(asked) > 1:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component.",
        )
    return exact, any_name


def _check_match(match_type: int, match: str | None) -> None:
    if match_type == _EXACT:
        if match is None:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "Request specified MATCH_TYPE_EXACT, but set match string to null.",
            )
    elif match_type in (_DEFAULT, _SPECIFIED):
        if match is not None:
            name = "DEFAULT" if match_type == _DEFAULT else "SPECIFIED"
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"Request specified MATCH_TYPE_{name}, but also specified a match string.",
            )
    else:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown match type {match_type}")


def _matches(
    entity: dict[str, str | None], exact: dict[str, str | None], any_name: set[str]
) -> bool:
    named = all(kind in entity and entity[kind] == name for kind, name in exact.items())
    return named and any_name <= entity.keys()


def _entry(entity: QuotaEntity, values: dict[str, float]) -> _Entry:
    return _Entry(
        entity=[_Entry.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        values=[_Entry.ValueData(key=key, value=values[key]) for key in sorted(values)],
    )
