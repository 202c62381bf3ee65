"""Who is there: SASL, SCRAM credentials, delegation tokens."""

from __future__ import annotations

from quorate.wire.schema import Message, Struct, array, binary, int8, int16, int32, int64, string


class SaslHandshakeRequest(Message, kind="request", key=17, versions=(0, 1), flexible=None):
    """Names the mechanism that the client wants."""

    mechanism: str = string()


class SaslHandshakeResponse(Message, kind="response", key=17, versions=(0, 1), flexible=None):
    """The mechanisms that the server offers."""

    error_code: int = int16()
    mechanisms: list[str] = array("string")


class SaslAuthenticateRequest(Message, kind="request", key=36, versions=(0, 2), flexible=2):
    """One token of the mechanism, from the client."""

    auth_bytes: bytes = binary()


class SaslAuthenticateResponse(Message, kind="response", key=36, versions=(0, 2), flexible=2):
    """One token of the mechanism, from the server."""

    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    auth_bytes: bytes = binary()
    session_lifetime_ms: int = int64(since=1, ignorable=True)


class DescribeUserScramCredentialsRequest(Message, kind="request", key=50, versions=(0, 0)):
    """Asks for the credentials of users; null: all."""

    class UserName(Struct):
        name: str = string()

    users: list[UserName] | None = array(UserName, nullable=0)


class DescribeUserScramCredentialsResponse(Message, kind="response", key=50, versions=(0, 0)):
    """Mechanisms and iterations, never secrets."""

    class DescribeUserScramCredentialsResult(Struct):
        class CredentialInfo(Struct):
            mechanism: int = int8()
            iterations: int = int32()

        user: str = string()
        error_code: int = int16()
        error_message: str | None = string(nullable=0)
        credential_infos: list[CredentialInfo] = array(CredentialInfo)

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    results: list[DescribeUserScramCredentialsResult] = array(DescribeUserScramCredentialsResult)


class AlterUserScramCredentialsRequest(Message, kind="request", key=51, versions=(0, 0)):
    """Sets and removes credentials (KIP-554)."""

    class ScramCredentialDeletion(Struct):
        name: str = string()
        mechanism: int = int8()

    class ScramCredentialUpsertion(Struct):
        name: str = string()
        mechanism: int = int8()
        iterations: int = int32()
        salt: bytes = binary()
        salted_password: bytes = binary()

    deletions: list[ScramCredentialDeletion] = array(ScramCredentialDeletion)
    upsertions: list[ScramCredentialUpsertion] = array(ScramCredentialUpsertion)


class AlterUserScramCredentialsResponse(Message, kind="response", key=51, versions=(0, 0)):
    """The outcome per user."""

    class AlterUserScramCredentialsResult(Struct):
        user: str = string()
        error_code: int = int16()
        error_message: str | None = string(nullable=0)

    throttle_time_ms: int = int32()
    results: list[AlterUserScramCredentialsResult] = array(AlterUserScramCredentialsResult)


class CreateDelegationTokenRequest(Message, kind="request", key=38, versions=(1, 3), flexible=2):
    """Asks for a token (KIP-48)."""

    class CreatableRenewers(Struct):
        principal_type: str = string()
        principal_name: str = string()

    owner_principal_type: str | None = string(since=3, nullable=0)
    owner_principal_name: str | None = string(since=3, nullable=0)
    renewers: list[CreatableRenewers] = array(CreatableRenewers)
    max_lifetime_ms: int = int64()


class CreateDelegationTokenResponse(Message, kind="response", key=38, versions=(1, 3), flexible=2):
    """The token and its times (ms since the epoch)."""

    error_code: int = int16()
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string(since=3)
    token_requester_principal_name: str = string(since=3)
    issue_timestamp_ms: int = int64()
    expiry_timestamp_ms: int = int64()
    max_timestamp_ms: int = int64()
    token_id: str = string()
    hmac: bytes = binary()
    throttle_time_ms: int = int32()


class RenewDelegationTokenRequest(Message, kind="request", key=39, versions=(1, 2), flexible=2):
    """Makes a token live longer."""

    hmac: bytes = binary()
    renew_period_ms: int = int64()


class RenewDelegationTokenResponse(Message, kind="response", key=39, versions=(1, 2), flexible=2):
    """When the token ends now (ms since the epoch)."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()


class ExpireDelegationTokenRequest(Message, kind="request", key=40, versions=(1, 2), flexible=2):
    """Lets a token end sooner."""

    hmac: bytes = binary()
    expiry_time_period_ms: int = int64()


class ExpireDelegationTokenResponse(Message, kind="response", key=40, versions=(1, 2), flexible=2):
    """When the token ends now (ms since the epoch)."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()


class DescribeDelegationTokenRequest(Message, kind="request", key=41, versions=(1, 3), flexible=2):
    """Asks for the tokens of owners; null: all."""

    class DescribeDelegationTokenOwner(Struct):
        principal_type: str = string()
        principal_name: str = string()

    owners: list[DescribeDelegationTokenOwner] | None = array(
        DescribeDelegationTokenOwner, nullable=0
    )


class DescribeDelegationTokenResponse(
    Message, kind="response", key=41, versions=(1, 3), flexible=2
):
    """The tokens with their times (ms since the epoch)."""

    class DescribedDelegationToken(Struct):
        class DescribedDelegationTokenRenewer(Struct):
            principal_type: str = string()
            principal_name: str = string()

        principal_type: str = string()
        principal_name: str = string()
        token_requester_principal_type: str = string(since=3)
        token_requester_principal_name: str = string(since=3)
        issue_timestamp: int = int64()
        expiry_timestamp: int = int64()
        max_timestamp: int = int64()
        token_id: str = string()
        hmac: bytes = binary()
        renewers: list[DescribedDelegationTokenRenewer] = array(DescribedDelegationTokenRenewer)

    error_code: int = int16()
    tokens: list[DescribedDelegationToken] = array(DescribedDelegationToken)
    throttle_time_ms: int = int32()
