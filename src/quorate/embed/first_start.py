"""The first start of a founder: detect that it has run before, on a disk that is lost.

Several founders must know each other's directory ids, so the ids are derived from names. A directory that
is created again therefore looks like the lost one (docs/decisions/0010). If it started, the member would
vote again in an epoch and miss records that it acknowledged. The founder's entry in the voter set shows
which: it is UNCONFIRMED until the founder has followed or led for the first time. A leader knows earlier:
by the founder's vote, or by its Fetch.

A lone founder has a random id. Created again, it would lead a quorum of its own beside the living one.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from quorate.base.errors import QuorateError
from quorate.base.ids import Address
from quorate.formats.snapshot import BOOTSTRAP_SNAPSHOT_ID
from quorate.raft.inputs import SendFailure
from quorate.raft.values import ElectionState, RaftConfig, Voter
from quorate.server.authentication import OPEN_PEER, PeerSecurity
from quorate.server.logs import LOG, RateLimitedLog
from quorate.server.own_endpoints import OwnEndpoints
from quorate.server.peer_connection import PeerRequest
from quorate.server.peers import Peer
from quorate.storage.api import Recovered
from quorate.wire.messages import DescribeClusterRequest, DescribeClusterResponse
from quorate.wire.schema import Message

T = TypeVar("T")

CONTROLLERS: Final = 2
"""Endpoint type of controllers in DescribeCluster (KIP-919)."""
UNCONFIRMED: Final = (1, 1)
"""The kraft.version range of a founder in the voter set, until it reports its real range.

Every voter corrects its entry (KIP-853): a leader at once, a follower with UpdateRaftVoter within one or
two fetch timeouts.
"""
_SILENCE: Final[Mapping[SendFailure, tuple[str, str]]] = {
    SendFailure.DISCONNECTED: ("there is no connection to it, or it closed it", "start it"),
    SendFailure.TIMED_OUT: ("it did not answer in time", "start it, or let packets through to it"),
    SendFailure.UNSUPPORTED_VERSION: ("it does not know DescribeCluster", "correct its address"),
}
"""What became of the question without an answer, and what to do."""
_FIRST_EPOCHS: Final = 1 << 20
_PATIENCE_S: Final = 2.0
_KEY: Final = 60
_MAX_LINES: Final = 10


def is_unconfirmed(voter: Voter) -> bool:
    """Whether this founder has never followed or led."""
    return (voter.min_kraft_version, voter.max_kraft_version) == UNCONFIRMED


async def checked_first_start(
    config: RaftConfig, recovered: Recovered, own: OwnEndpoints, security: PeerSecurity = OPEN_PEER
) -> Recovered:
    """Ask the contacts and other founders whether a founder ran before, at its first start.

    Returns what to start with: `recovered`, with a random epoch for a lone founder.

    1. Only a directory with the initial snapshot, an empty log and no vote is asked about.
    2. All contacts and other founders are asked at once, for 2 s at most: a new cluster must be able
       to start while others are down. The contacts are heard first: a founder that was alone knows
       of the living quorum only by them. A contact that is this member itself is not asked.
    3. One that lists this member as confirmed proves that it ran before. One that does not list it, or
       has its address under another id, proves that a quorum of this name lives without it.
    4. Those that do not answer or refuse to, members of other clusters, and those that know no member
       at all, prove nothing; they are logged.
    5. A lone founder has contacts because others have joined it. Where none of them proves anything,
       it may have been founded before, and nobody can say.

    Raises QuorateError when the member must not be founded.
    """
    others = _others(config, recovered)
    if others is None:
        return recovered
    known = {Address(*server): f"contact {Address(*server)}" for server in config.bootstrap_servers}
    for voter in others:
        address = voter.listeners[0].address
        known[address] = f"member {voter.key.id} at {address}"
    heard = await asyncio.gather(*(_hear(address, own, security) for address in known))
    asked = [
        (who, answer)
        for who, (is_own, answer) in zip(known.values(), heard, strict=True)
        if not is_own
    ]
    useless = {
        who: problem
        for who, answer in asked
        if (problem := _useless(answer, config.cluster_id)) is not None
    }
    if useless and not others and len(useless) == len(asked):
        raise QuorateError(_nobody_can_say(config.node_id, useless))
    for who, answer in asked:
        if who not in useless and not isinstance(answer, SendFailure):
            await _check_description(config.node_id, own, who, answer)
    if useless:
        LOG.info(
            "First start of founder %d: nobody says whether it has run before at %s",
            config.node_id,
            "; ".join(f"{who} ({what})" for who, (what, _) in useless.items()),
        )
    if others:
        return recovered
    # Its records are then of other epochs than those of any other founding (`foreign_quorum`).
    return replace(recovered, election=ElectionState(secrets.randbelow(_FIRST_EPOCHS)))


def _others(config: RaftConfig, recovered: Recovered) -> Sequence[Voter] | None:
    """The other founders; None unless this is the first start of a founder."""
    log, election = recovered.log, recovered.election
    voted = election is not None and election.epoch > 0
    control = log.snapshot_control
    if voted or log.end_offset or log.snapshots != (BOOTSTRAP_SNAPSHOT_ID,) or control is None:
        return None
    founders = {voter.key.id: voter for voter in control.voters or ()}
    own = founders.pop(config.node_id, None)
    # unreached: `create` writes the own entry, and the first start confirms it
    return tuple(founders.values()) if own is not None and is_unconfirmed(own) else None


async def _check_description(
    node_id: int, own: OwnEndpoints, who: str, answer: DescribeClusterResponse
) -> None:
    known = next((node for node in answer.brokers if node.broker_id == node_id), None)
    others = [node for node in answer.brokers if node.broker_id != node_id]
    places = [Address(node.host, node.port) for node in others]
    same = await asyncio.gather(*(_within_patience(own.include(p), False) for p in places))
    there = [node for node, is_own in zip(others, same, strict=True) if is_own]
    if there:
        what = f"has the address of member {there[0].broker_id}"
    elif known is None:
        what = "is not in the cluster, or was removed from it"
    elif known.is_fenced:
        return
    else:
        what = "has run before"
    raise QuorateError(
        f"Member {node_id} {what}, according to {who}, and must not be founded again: it would have "
        "lost its vote and the entries that it acknowledged. Restore its directory; or remove it from "
        "the cluster (remove_member), create a directory without founders, start it with contacts "
        "and add it (add_member)"
    )


def _useless(
    answer: DescribeClusterResponse | SendFailure, cluster_id: str
) -> tuple[str, str] | None:
    """What was answered and what to do about it, where the answer does not say who is a member."""
    if isinstance(answer, SendFailure):
        return _SILENCE[answer]
    if answer.error_code:
        error = f"error {answer.error_code}, {answer.error_message or 'without a text'}"
        return f"it refuses to answer: {error}", "correct its address, or allow this member to ask"
    if answer.cluster_id != cluster_id:
        other = f"it belongs to another cluster, {answer.cluster_id}, and this one is {cluster_id}"
        return other, "correct its address"
    if not answer.brokers:
        return "it knows no member yet", "name one that has been in the cluster"
    return None


def _nobody_can_say(node_id: int, useless: Mapping[str, tuple[str, str]]) -> str:
    each = "".join(f"\n  {who}: {what}; {advice}" for who, (what, advice) in useless.items())
    return (
        f"Founder {node_id} is alone, and no contact can say whether it has run before:{each}\n"
        "If the cluster is new, leave out the contacts"
    )


async def _hear(
    address: Address, own: OwnEndpoints, security: PeerSecurity
) -> tuple[bool, DescribeClusterResponse | SendFailure]:
    """Whether the address is this member's own, and if it is not, what is answered there."""

    async def hear() -> tuple[bool, DescribeClusterResponse | SendFailure]:
        if await own.include(address):
            return True, SendFailure.DISCONNECTED
        return False, await _ask(address, security)

    return await _within_patience(hear(), (False, SendFailure.TIMED_OUT))


async def _within_patience(work: Awaitable[T], otherwise: T) -> T:
    try:
        async with asyncio.timeout(_PATIENCE_S):
            return await work
    except TimeoutError:
        return otherwise


async def _ask(
    address: Address, security: PeerSecurity = OPEN_PEER
) -> DescribeClusterResponse | SendFailure:
    """Send DescribeCluster to a founder; or why there is no valid response."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[DescribeClusterResponse | SendFailure] = loop.create_future()

    def answered(message: Message) -> None:
        if not answer.done():  # unreached: a request has one outcome
            # unreached: the codec of the request decodes the response
            valid = message if isinstance(message, DescribeClusterResponse) else None
            answer.set_result(valid or SendFailure.UNSUPPORTED_VERSION)

    def failed(failure: SendFailure) -> None:
        if not answer.done():  # unreached: a request has one outcome
            answer.set_result(failure)

    def build(version: int) -> Message:
        return DescribeClusterRequest(endpoint_type=CONTROLLERS, include_fenced_brokers=version > 1)

    log = RateLimitedLog(loop, _MAX_LINES)
    peer = Peer(loop, address, "quorate-founder", lambda: None, log, set(), _PATIENCE_S)
    peer.security = security
    peer.send(PeerRequest(_KEY, build, answered, failed, round(_PATIENCE_S * 1000)))
    try:
        return await answer
    finally:
        peer.close()
