"""Responses in versions that lack a field, where Kafka leaves the field out by hand."""

from __future__ import annotations

from typing import Final

from quorate.base.errors import ErrorCode
from quorate.wire.messages import (
    CreateDelegationTokenResponse,
    DescribeDelegationTokenResponse,
    ElectLeadersResponse,
)
from quorate.wire.schema import Message

_TOKEN_REQUESTER_SINCE: Final = 3
"""The first version that says who asked for a delegation token (KIP-373)."""
_NO_REQUESTER: Final = {
    "token_requester_principal_type": "",
    "token_requester_principal_name": "",
}
_ELECTION_ERROR_SINCE: Final = 1
"""The first version of ElectLeaders with an error of the whole request."""


def in_version(response: Message, version: int) -> Message:
    """The response without what `version` cannot say.

    These fields are not ignorable: a response with a value in them could not be encoded. Source:
    `CreateDelegationTokenResponse.prepareResponse`, `ElectLeadersResponse`.
    """
    if isinstance(response, CreateDelegationTokenResponse) and version < _TOKEN_REQUESTER_SINCE:
        return response.replace(**_NO_REQUESTER)
    if isinstance(response, DescribeDelegationTokenResponse) and version < _TOKEN_REQUESTER_SINCE:
        return response.replace(tokens=[one.replace(**_NO_REQUESTER) for one in response.tokens])
    if isinstance(response, ElectLeadersResponse) and version < _ELECTION_ERROR_SINCE:
        return response.replace(error_code=ErrorCode.NONE)
    return response
