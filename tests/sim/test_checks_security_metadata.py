"""The checks of ACLs, credentials, tokens and producer ids: each rule broken once, on made records."""

from __future__ import annotations

from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import pytest

from quorate.base.errors import ErrorCode
from quorate.base.ids import Uuid
from quorate.formats.records import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from quorate.metadata.delta import ImageDelta
from quorate.metadata.image import Image
from quorate.sim.checks.security_answers import check_read, check_write
from quorate.sim.checks.security_metadata import SecurityMetadataCheck
from quorate.sim.checks.security_model import SecurityModel, derived, secret_of
from quorate.sim.world.controller import ControllerResponse
from quorate.sim.world.observer import ViolationError
from quorate.sim.world.security_requests import SecurityRequests, overdue
from quorate.wire.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    CreateAclsRequest,
    CreateAclsResponse,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from quorate.wire.schema import Message

pytestmark = pytest.mark.interpreted  # it hands stand-ins to the check

ID, OTHER = Uuid(b"one".ljust(16)), Uuid(b"two".ljust(16))
ADMIN, GUEST = "User:admin", "User:guest"
TOKEN = "token"
ISSUED = 1_000_000


def level(found: int = 25) -> FeatureLevelRecord:
    return FeatureLevelRecord(name="metadata.version", feature_level=found)


# -- records ------------------------------------------------------------------------------------
def entry(acl_id: Uuid = ID, name: str = "a", pattern: int = 3) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=2,
        resource_name=name,
        pattern_type=pattern,
        principal=GUEST,
        host="*",
        operation=3,
        permission_type=3,
    )


def credential(iterations: int = 4096, mechanism: int = 1) -> UserScramCredentialRecord:
    salt, stored_key, server_key, _ = derived(1, b"salt", b"password", iterations)
    return UserScramCredentialRecord(
        name="user",
        mechanism=mechanism,
        salt=salt,
        stored_key=stored_key,
        server_key=server_key,
        iterations=iterations,
    )


def token(expires_ms: int = ISSUED + 4_000, **changed: Any) -> DelegationTokenRecord:
    record = DelegationTokenRecord(
        owner=ADMIN,
        requester=ADMIN,
        renewers=[],
        issue_timestamp=ISSUED,
        max_timestamp=ISSUED + 15_000,
        expiration_timestamp=expires_ms,
        token_id=TOKEN,
    )
    for name, value in changed.items():
        setattr(record, name, value)
    return record


def block(end: int, epoch: int = 7) -> ProducerIdsRecord:
    return ProducerIdsRecord(broker_id=1, broker_epoch=epoch, next_producer_id=end)


ENTRY_GONE = RemoveAccessControlEntryRecord(id=ID)
OTHER_GONE = RemoveAccessControlEntryRecord(id=OTHER)
CREDENTIAL_GONE = RemoveUserScramCredentialRecord(name="user", mechanism=1)
TOKEN_GONE = RemoveDelegationTokenRecord(token_id=TOKEN)
BROKER = RegisterBrokerRecord(broker_id=1, broker_epoch=7)


def model(
    *records: Message, clock_ms: int = ISSUED, version: int = 25, removed: Collection[bytes] = ()
) -> SecurityModel:
    """From offset 0 on, after the level."""
    made = SecurityModel()
    made.clock_ms, made.removed = clock_ms, removed
    made.take("node 1", list(enumerate((level(version), *records))))
    return made


def test_records_that_keep_every_rule() -> None:
    made = model(
        *(entry(), entry(OTHER, "b"), ENTRY_GONE, credential(), CREDENTIAL_GONE),
        *(token(), token(ISSUED + 9_000), BROKER, block(1_000), block(2_000)),
        FeatureLevelRecord(name="kraft.version", feature_level=1),
    )
    state = made.at(100)
    assert (len(state.acls), len(state.credentials), state.next_producer_id) == (1, 0, 2_000)
    assert made.at(7).tokens[TOKEN].expires_ms == ISSUED + 4_000
    made.take("node 2", [(1, entry())])  # another node applies it, later
    made.clock_ms = ISSUED + 9_001
    made.take("node 2", [(12, TOKEN_GONE)])
    assert not made.at(13).tokens


@pytest.mark.parametrize(
    ("records", "check"),
    [
        ((entry(), ENTRY_GONE, entry(name="b")), "acls"),
        ((entry(), entry(OTHER)), "acls"),
        ((ENTRY_GONE,), "acls"),
        ((credential(4095),), "scram credentials"),
        ((credential(mechanism=3),), "scram credentials"),
        ((level(10), credential()), "scram credentials"),
        ((CREDENTIAL_GONE,), "scram credentials"),
        ((level(13), token()), "delegation tokens"),
        ((token(ISSUED + 15_001),), "delegation tokens"),
        ((token(), token(owner=GUEST)), "delegation tokens"),
        ((token(), token(max_timestamp=ISSUED + 20_000)), "delegation tokens"),
        ((TOKEN_GONE,), "delegation tokens"),
        ((token(), TOKEN_GONE), "delegation tokens"),
        ((token(ISSUED - 1), TOKEN_GONE, token()), "delegation tokens"),
        ((BROKER, block(1_001)), "producer ids"),
        ((BROKER, block(1_000), block(1_000)), "producer ids"),
        ((BROKER, block(1_000, epoch=6)), "producer ids"),
        ((block(1_000),), "producer ids"),
    ],
)
def test_records_that_break_a_rule(records: tuple[Message, ...], check: str) -> None:
    with pytest.raises(ViolationError) as found:
        model(*records)
    assert found.value.check == check


def test_a_token_that_a_client_removes_need_not_expire() -> None:
    assert not model(token(), TOKEN_GONE, removed={secret_of(TOKEN)}).at(3).tokens


# -- answers to writes --------------------------------------------------------------------------
_ENTRY = CreateAclsRequest.AclCreation(
    resource_type=2,
    resource_name="a",
    resource_pattern_type=3,
    principal=GUEST,
    host="*",
    operation=3,
    permission_type=3,
)
_CLUSTER = CreateAclsRequest.AclCreation(
    resource_type=4,
    resource_name="other",
    resource_pattern_type=3,
    principal=GUEST,
    host="*",
    operation=3,
    permission_type=3,
)
CREATE_ACLS = CreateAclsRequest(creations=[_ENTRY, _CLUSTER, _ENTRY])
ALTER = AlterUserScramCredentialsRequest
SET = ALTER.ScramCredentialUpsertion(
    name="user", mechanism=1, iterations=4096, salt=b"salt", salted_password=b"password"
)
WEAK = ALTER.ScramCredentialUpsertion(
    name="weak", mechanism=1, iterations=1, salt=b"salt", salted_password=b"password"
)
REMOVE = ALTER.ScramCredentialDeletion(name="user", mechanism=1)
RENEW = RenewDelegationTokenRequest(hmac=secret_of(TOKEN), renew_period_ms=2_000)
EXPIRE = ExpireDelegationTokenRequest(hmac=secret_of(TOKEN), expiry_time_period_ms=2_000)
END_TOKEN = ExpireDelegationTokenRequest(hmac=secret_of(TOKEN), expiry_time_period_ms=-1)
ALLOCATE = AllocateProducerIdsRequest(broker_id=1, broker_epoch=7)
CREATE_TOKEN = CreateDelegationTokenRequest(owner_principal_name="", max_lifetime_ms=-1)
FOR_GUEST = CreateDelegationTokenRequest(
    owner_principal_type="User", owner_principal_name="guest", max_lifetime_ms=3_000
)


def created(*codes: int) -> CreateAclsResponse:
    result = CreateAclsResponse.AclCreationResult
    return CreateAclsResponse(results=[result(error_code=code) for code in codes])


def wanted(name: str | None = "a", pattern: int = 3, **others: Any) -> DeleteAclsRequest:
    fields: dict[str, Any] = {
        "resource_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    given = DeleteAclsRequest.DeleteAclsFilter(
        resource_name_filter=name, pattern_type_filter=pattern, **fields | others
    )
    return DeleteAclsRequest(filters=[given])


def deleted(*names: str, pattern: int = 3) -> DeleteAclsResponse:
    result = DeleteAclsResponse.DeleteAclsFilterResult
    acls = [
        result.DeleteAclsMatchingAcl(
            resource_type=2,
            resource_name=name,
            pattern_type=pattern,
            principal=GUEST,
            host="*",
            operation=3,
            permission_type=3,
        )
        for name in names
    ]
    return DeleteAclsResponse(filter_results=[result(matching_acls=acls)])


def altered(**codes: int) -> AlterUserScramCredentialsResponse:
    result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    return AlterUserScramCredentialsResponse(
        results=[result(user=user, error_code=code) for user, code in codes.items()]
    )


def made_token(**changed: Any) -> CreateDelegationTokenResponse:
    response = CreateDelegationTokenResponse(
        issue_timestamp_ms=ISSUED,
        expiry_timestamp_ms=ISSUED + 4_000,
        max_timestamp_ms=ISSUED + 15_000,
        token_id=TOKEN,
        hmac=secret_of(TOKEN),
    )
    for name, value in changed.items():
        setattr(response, name, value)
    return response


def renewed(until_ms: int = ISSUED + 2_500, code: int = 0) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=until_ms)


def expired(until_ms: int = ISSUED + 2_500, code: int = 0) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=until_ms)


def allocated(start: int, size: int = 1_000, code: int = 0) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(
        producer_id_start=start, producer_id_len=size, error_code=code
    )


def answer(
    request: Message,
    response: Message,
    *records: Message,
    principal: str = ADMIN,
    clock_ms: int = ISSUED,
    version: int = 25,
) -> None:
    """The answer of a write whose records are the last of these."""
    removed = {secret_of(TOKEN)}
    found = model(*records, clock_ms=clock_ms, version=version, removed=removed)
    check_write(
        "node 1",
        ControllerResponse(-1, request, response, 1 + len(records), principal),
        found,
    )


EXPIRED = ErrorCode.DELEGATION_TOKEN_EXPIRED
NOT_FOUND = ErrorCode.DELEGATION_TOKEN_NOT_FOUND
MISMATCH = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
UNSUPPORTED = ErrorCode.UNSUPPORTED_VERSION
NOW_THEN = token(ISSUED + 2_500)
GUESTS = token(ISSUED + 3_000, owner=GUEST, max_timestamp=ISSUED + 3_000)


@pytest.mark.parametrize(
    ("request_", "response", "records"),
    [
        (CREATE_ACLS, created(0, 42, 0), (entry(),)),
        (CREATE_ACLS, created(0, 42, 0), (entry(), credential())),
        (wanted(), deleted("a"), (entry(), entry(OTHER, "b"), ENTRY_GONE)),
        (wanted("ab", 2), deleted("a", pattern=4), (entry(pattern=4), ENTRY_GONE)),
        (wanted("x", 2), deleted("*"), (entry(name="*"), ENTRY_GONE)),
        (wanted(None, 2), deleted("a"), (entry(), ENTRY_GONE)),
        (wanted("a", 4), deleted(), (entry(),)),
        (wanted(principal_filter=ADMIN), deleted(), (entry(),)),
        (ALTER(upsertions=[SET, WEAK]), altered(user=0, weak=93), (credential(),)),
        (ALTER(deletions=[REMOVE]), altered(user=0), (credential(), CREDENTIAL_GONE)),
        (ALTER(deletions=[REMOVE]), altered(user=91), ()),
        (ALTER(upsertions=[SET, SET]), altered(user=92), ()),
        (CREATE_TOKEN, made_token(), (token(),)),
        (
            FOR_GUEST,
            made_token(max_timestamp_ms=ISSUED + 3_000, expiry_timestamp_ms=ISSUED + 3_000),
            (GUESTS,),
        ),
        (RENEW, renewed(), (token(), NOW_THEN)),
        (RENEW, renewed(0, NOT_FOUND), ()),
        (EXPIRE, expired(), (token(), NOW_THEN)),
        (END_TOKEN, expired(ISSUED), (token(), TOKEN_GONE)),
        (ALLOCATE, allocated(0), (BROKER, block(1_000))),
        (ALLOCATE, allocated(1_000), (BROKER, block(1_000), block(2_000))),
        (AlterClientQuotasRequest(), AlterClientQuotasResponse(), ()),
    ],
)
def test_answers_that_fit(
    request_: Message, response: Message, records: tuple[Message, ...]
) -> None:
    answer(request_, response, *records)


@pytest.mark.parametrize(
    ("request_", "response", "records", "check"),
    [
        (CREATE_ACLS, created(0, 42), (entry(),), "acls"),
        (CREATE_ACLS, created(0, 0, 0), (entry(),), "acls"),
        (CREATE_ACLS, created(42, 42, 0), (entry(),), "acls"),
        (CREATE_ACLS, created(0, 42, 0), (), "acls"),
        (CREATE_ACLS, created(0, 42, 0), (entry(), ENTRY_GONE), "acls"),
        (wanted(), deleted("a"), (entry(),), "acls"),
        (wanted(), deleted("a"), (entry(), entry(OTHER, "b"), OTHER_GONE), "acls"),
        (wanted(), deleted(), (entry(),), "acls"),
        (wanted("ab", 2), deleted(), (entry(pattern=4),), "acls"),
        (ALTER(upsertions=[SET]), altered(user=0), (), "scram credentials"),
        (ALTER(upsertions=[SET]), altered(user=0), (credential(8192),), "scram credentials"),
        (ALTER(upsertions=[SET]), altered(user=35), (), "scram credentials"),
        (ALTER(upsertions=[SET]), altered(other=0), (credential(),), "scram credentials"),
        (ALTER(upsertions=[SET, SET]), altered(user=0), (credential(),), "scram credentials"),
        (ALTER(deletions=[REMOVE]), altered(user=0), (credential(),), "scram credentials"),
        (ALTER(deletions=[REMOVE]), altered(user=91), (credential(),), "scram credentials"),
        (CREATE_TOKEN, made_token(error_code=UNSUPPORTED), (), "delegation tokens"),
        (CREATE_TOKEN, made_token(), (), "delegation tokens"),
        (CREATE_TOKEN, made_token(hmac=b"other"), (token(),), "delegation tokens"),
        (CREATE_TOKEN, made_token(token_id="other"), (token(),), "delegation tokens"),
        (CREATE_TOKEN, made_token(), (token(owner=GUEST),), "delegation tokens"),
        (FOR_GUEST, made_token(), (token(),), "delegation tokens"),
        (RENEW, renewed(), (token(),), "delegation tokens"),
        (RENEW, renewed(ISSUED + 2_501), (token(), NOW_THEN), "delegation tokens"),
        (RENEW, renewed(), (token(ISSUED + 100), NOW_THEN), "delegation tokens"),
        (RENEW, renewed(), (), "delegation tokens"),
        (RENEW, renewed(0, NOT_FOUND), (token(),), "delegation tokens"),
        (RENEW, renewed(0, EXPIRED), (token(),), "delegation tokens"),
        (EXPIRE, expired(), (token(ISSUED + 100), NOW_THEN), "delegation tokens"),
        (END_TOKEN, expired(), (token(), NOW_THEN), "delegation tokens"),
        (END_TOKEN, expired(0, EXPIRED), (token(ISSUED - 1),), "delegation tokens"),
        (ALLOCATE, allocated(0), (BROKER,), "producer ids"),
        (ALLOCATE, allocated(1_000), (BROKER, block(1_000)), "producer ids"),
        (ALLOCATE, allocated(0, 999), (BROKER, block(1_000)), "producer ids"),
    ],
)
def test_answers_that_break_a_rule(
    request_: Message, response: Message, records: tuple[Message, ...], check: str
) -> None:
    with pytest.raises(ViolationError) as found:
        answer(request_, response, *records)
    assert found.value.check == check


def test_who_may_renew_a_token() -> None:
    answer(RENEW, renewed(0, MISMATCH), token(), principal=GUEST)
    answer(RENEW, renewed(), token(renewers=[GUEST]), token(ISSUED + 2_500, renewers=[GUEST]))
    with pytest.raises(ViolationError):
        answer(RENEW, renewed(), token(), NOW_THEN, principal=GUEST)
    with pytest.raises(ViolationError):
        answer(RENEW, renewed(0, MISMATCH), token())


def test_levels_without_tokens_and_credentials() -> None:
    answer(CREATE_TOKEN, made_token(error_code=UNSUPPORTED), version=13)
    answer(RENEW, renewed(0, UNSUPPORTED), version=13)
    answer(ALTER(upsertions=[SET]), altered(user=UNSUPPORTED), version=10)
    with pytest.raises(ViolationError):
        answer(RENEW, renewed(0, NOT_FOUND), version=13)
    with pytest.raises(ViolationError):
        answer(CREATE_TOKEN, made_token(), version=13)


def test_a_token_that_has_expired() -> None:
    answer(RENEW, renewed(0, EXPIRED), token(ISSUED - 1))


@pytest.mark.parametrize(
    ("request_", "response"),
    [
        (CREATE_ACLS, created(0)),
        (wanted(), deleted()),
        (ALTER(upsertions=[SET]), altered(user=0)),
        (CREATE_TOKEN, made_token()),
        (ALLOCATE, allocated(0)),
    ],
)
def test_a_write_is_acknowledged_at_an_offset(request_: Message, response: Message) -> None:
    with pytest.raises(ViolationError) as found:
        check_write("node 1", ControllerResponse(-1, request_, response, None), model())
    assert found.value.check == "answered when committed"
    check_write("node 1", ControllerResponse(-1, request_, response, -1), model())


def test_a_write_that_is_refused_as_a_whole_has_no_offset() -> None:
    refused = allocated(0, code=ErrorCode.NOT_CONTROLLER)
    check_write("node 1", ControllerResponse(-1, ALLOCATE, refused, None), model())


# -- answers to reads ---------------------------------------------------------------------------
def described_acls(*names: str) -> DescribeAclsResponse:
    resource = DescribeAclsResponse.DescribeAclsResource
    acl = resource.AclDescription(principal=GUEST, host="*", operation=3, permission_type=3)
    return DescribeAclsResponse(
        resources=[
            resource(resource_type=2, resource_name=name, pattern_type=3, acls=[acl])
            for name in names
        ]
    )


def described_user(iterations: int) -> DescribeUserScramCredentialsResponse:
    result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
    info = result.CredentialInfo(mechanism=1, iterations=iterations)
    return DescribeUserScramCredentialsResponse(
        results=[result(user="user", credential_infos=[info])]
    )


def described_token(expires_ms: int) -> DescribeDelegationTokenResponse:
    each = DescribeDelegationTokenResponse.DescribedDelegationToken(
        principal_type="User",
        principal_name="admin",
        token_requester_principal_type="User",
        token_requester_principal_name="admin",
        issue_timestamp=ISSUED,
        expiry_timestamp=expires_ms,
        max_timestamp=ISSUED + 15_000,
        token_id=TOKEN,
        hmac=secret_of(TOKEN),
    )
    return DescribeDelegationTokenResponse(tokens=[each])


@pytest.mark.parametrize(
    ("request_", "right", "wrong"),
    [
        (DescribeAclsRequest(), described_acls("a"), described_acls("a", "b")),
        (DescribeAclsRequest(), described_acls("a"), described_acls()),
        (DescribeUserScramCredentialsRequest(), described_user(4096), described_user(8192)),
        (
            DescribeDelegationTokenRequest(),
            described_token(ISSUED + 4_000),
            described_token(ISSUED + 5_000),
        ),
    ],
)
def test_a_read_shows_what_an_image_had(request_: Message, right: Message, wrong: Message) -> None:
    found = model(entry(), credential(), token(), entry(OTHER, "c"))
    shown = [found.at(5), found.at(4)]
    check_read("node 1", ControllerResponse(-1, request_, right, None), shown)
    with pytest.raises(ViolationError) as refused:
        check_read("node 1", ControllerResponse(-1, request_, wrong, None), shown)
    assert refused.value.check == "reads are committed"


# -- images -------------------------------------------------------------------------------------
def step(check: SecurityMetadataCheck, image: Image, offset: int, *records: Message) -> None:
    """A node applies these up to `offset` (inclusive), and has the image."""
    first = offset + 1 - len(records)
    applied = [(first + number, record) for number, record in enumerate(records)]
    node = SimpleNamespace(image=image, image_offset=offset, now=SimpleNamespace(wall_ms=ISSUED))
    controller = SimpleNamespace(node=node, records=applied)
    process = SimpleNamespace(id=1, incarnation=1, controller=controller)
    check.node_stepped(process, None, ())  # type: ignore[arg-type]


def image_of(*records: Message) -> Image:
    delta = ImageDelta(Image())
    for record in records:
        delta.replay(record)
    return delta.apply()


ALL = (level(), entry(), entry(OTHER, "b", 4), credential(), token(), BROKER, block(1_000))


def test_images_that_say_what_the_records_say() -> None:
    check = SecurityMetadataCheck()
    check.began(SimpleNamespace(security=SecurityRequests()))  # type: ignore[arg-type]
    step(check, image_of(*ALL), 6, *ALL)
    step(check, image_of(*ALL[:3]), 2)
    step(check, image_of(*ALL[:3]), 2)


@pytest.mark.parametrize("missing", [1, 2, 3, 4, 6])
def test_an_image_without_the_effect_of_a_record(missing: int) -> None:
    check = SecurityMetadataCheck()
    kept = [record for at, record in enumerate(ALL) if at != missing]
    with pytest.raises(ViolationError) as found:
        step(check, image_of(*kept), 6, *ALL)
    assert found.value.check == "images equal records"


def test_an_image_that_does_not_follow_a_later_record() -> None:
    check = SecurityMetadataCheck()
    image = image_of(*ALL[:2])
    step(check, image, 1, *ALL[:2])
    with pytest.raises(ViolationError):
        step(check, image, 2, ALL[2])


def test_a_token_is_overdue_from_its_expiry_on() -> None:
    image = image_of(*ALL)
    assert overdue(image, ISSUED + 4_000) is None
    assert "has expired" in str(overdue(image, ISSUED + 4_001))
