"""The first start of a founder: has the cluster gone on with it before, on a disk that is lost?

A founder's directory id is computed from names, as every founder must know it, so a directory made
again looks like the one that it replaces (docs/decisions/0010). What tells them apart is the
entry of a founder in the voter set: UNPROVEN until it has followed or led for the first time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from quorate.base.errors import QuorateError
from quorate.base.ids import Address
from quorate.formats.snapshot import BOOTSTRAP_SNAPSHOT_ID
from quorate.raft.values import RaftConfig, Voter
from quorate.server.logs import LOG
from quorate.server.names import first_to_answer
from quorate.storage.api import Recovered
from quorate.wire.errors import WireError
from quorate.wire.frame import FrameReader
from quorate.wire.header import decode_response, encode_request
from quorate.wire.messages import DescribeClusterRequest, DescribeClusterResponse

CONTROLLERS: Final = 2
"""Endpoint type of DescribeCluster."""
UNPROVEN: Final = (1, 1)
"""The kraft.versions that a founder has in the voter set until it reports its own.

It does so as every voter whose entry is not what it should be: at once when it leads, else by
UpdateRaftVoter within a fetch timeout or two.
"""
_PATIENCE_S: Final = 2.0
_KEY: Final = 60
_VERSION: Final = 2
_CHUNK: Final = 65536


def is_unproven(voter: Voter) -> bool:
    """Has this founder never followed or led?"""
    return (voter.min_kraft_version, voter.max_kraft_version) == UNPROVEN


async def refuse_a_second_founding(config: RaftConfig, recovered: Recovered) -> None:
    """At the first start of a founder, ask the others whether it was there before.

    Takes 2 s at most, however many do not answer. Raises QuorateError where one knows this member
    better than a directory without a log and a vote does, or as none at all.
    """
    others = _others(config, recovered)
    answers = await asyncio.gather(*(_ask(voter.listeners[0].address) for voter in others))
    for voter, answer in zip(others, answers, strict=True):
        if answer is not None and answer.cluster_id == config.cluster_id:
            _judge(config.node_id, voter, answer)
    if silent := [v for v, answer in zip(others, answers, strict=True) if answer is None]:
        LOG.info(
            "First start of founder %d: %s could not be asked whether it was there before",
            config.node_id,
            ", ".join(f"{v.key.id} at {v.listeners[0].address}" for v in silent),
        )


def _others(config: RaftConfig, recovered: Recovered) -> Sequence[Voter]:
    """The other founders; none unless this is the first start of a founder."""
    log, election = recovered.log, recovered.election
    voted = election is not None and election.epoch > 0
    control = log.snapshot_control
    if voted or log.end_offset or log.snapshots != (BOOTSTRAP_SNAPSHOT_ID,) or control is None:
        return ()
    founders = {voter.key.id: voter for voter in control.voters or ()}
    own = founders.pop(config.node_id, None)
    return tuple(founders.values()) if own is not None and is_unproven(own) else ()


def _judge(node_id: int, other: Voter, answer: DescribeClusterResponse) -> None:
    known = next((node for node in answer.brokers if node.broker_id == node_id), None)
    if known is not None and known.is_fenced:
        return
    who = f"member {other.key.id} at {other.listeners[0].address}"
    what = "is not a member any more" if known is None else "has been a member before"
    raise QuorateError(
        f"Member {node_id} {what}, as {who} knows, and must not be founded again: it would have "
        "forgotten its vote and what it acknowledged. Bring its directory back; or remove it from "
        "the cluster (remove_member), make a directory without founders, start it with contacts "
        "and add it (add_member)"
    )


async def _ask(address: Address) -> DescribeClusterResponse | None:
    """None when there is no answer, or none that can be read."""
    try:
        async with asyncio.timeout(_PATIENCE_S):
            reader, writer = await _connect(address)
            try:
                return await _exchange(reader, writer)
            finally:
                writer.close()
    except (OSError, WireError):
        return None


async def _connect(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await first_to_answer(
        address.host, _PATIENCE_S, lambda ip: asyncio.open_connection(ip, address.port)
    )


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> DescribeClusterResponse | None:
    request = DescribeClusterRequest(endpoint_type=CONTROLLERS, include_fenced_brokers=True)
    writer.write(encode_request(request, _VERSION, 0, "quorate-founder"))
    frames = FrameReader()
    while data := await reader.read(_CHUNK):
        for frame in frames.feed(data):
            _, answer = decode_response(frame, _KEY, _VERSION)
            return answer if isinstance(answer, DescribeClusterResponse) else None
    return None
