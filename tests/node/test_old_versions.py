"""Responses in versions without a field that they set."""

from typing import Any

import pytest

from quorate.base.errors import ErrorCode
from quorate.node.old_versions import in_version
from quorate.wire.codec import decode, encode
from quorate.wire.messages import (
    CreateDelegationTokenResponse,
    DescribeDelegationTokenResponse,
    ElectLeadersResponse,
)

NAMES: dict[str, Any] = {
    "token_requester_principal_type": "User",
    "token_requester_principal_name": "bob",
}
RESPONSES = [
    (CreateDelegationTokenResponse(token_id="t", **NAMES), (1, 2, 3)),
    (
        DescribeDelegationTokenResponse(
            tokens=[DescribeDelegationTokenResponse.DescribedDelegationToken(**NAMES)]
        ),
        (1, 2, 3),
    ),
    (ElectLeadersResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED), (0, 1, 2)),
]


@pytest.mark.parametrize(("response", "versions"), RESPONSES)
def test_every_version_can_be_encoded_and_the_newest_says_all(response, versions):
    for version in versions:
        found = in_version(response, version)
        data = encode(found, version)
        assert decode(type(response), version, data) == found
    assert found == response
