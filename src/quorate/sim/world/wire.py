"""Encodes and decodes messages with Kafka's codec, at versions that differ from node to node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quorate.node.raft_rpc_inbound import Asked, request_from_wire, response_to_wire
from quorate.node.raft_rpc_outbound import api_key_of, request_to_wire, response_from_wire
from quorate.raft.messages import ApiVersionsRequest, Request, Response
from quorate.sim.plan.plan import Plan
from quorate.sim.prng import Prng
from quorate.sim.world.message_text import describe_message
from quorate.sim.world.observable import LISTENER
from quorate.sim.world.observer import ViolationError
from quorate.sim.world.process import Process
from quorate.wire.header import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from quorate.wire.registry import APIS
from quorate.wire.schema import Message

_FETCH, _FETCH_SNAPSHOT, _VOTE, _BEGIN, _END = 1, 59, 52, 53, 54
_OLDEST: Final[Mapping[int, int]] = {_FETCH: 13}
"""The first Fetch version with the topic id of the metadata log."""
_WITH_DIRECTORY_IDS: Final[Mapping[int, int]] = {
    _FETCH: 17,
    _FETCH_SNAPSHOT: 1,
    _VOTE: 1,
    _BEGIN: 1,
    _END: 1,
}
"""The minimum versions that Kafka's feature levels guarantee at kraft.version 1."""
_LENGTH: Final = 4


class Wire:
    """The supported versions of each node, and the encoding of messages between them."""

    def __init__(self, plan: Plan) -> None:
        self._seed = plan.seed
        self._oldest = _OLDEST if plan.static and not plan.upgrades else _WITH_DIRECTORY_IDS
        self._newest: dict[tuple[int, int, int], int] = {}
        self._is_renewed = False

    def renew(self) -> None:
        """Upgrade all nodes to the newest versions."""
        self._is_renewed = True

    def version(self, one: Process, other: Process, request: Request) -> int:
        """The version that these two nodes use for this request."""
        key = api_key_of(request)
        return min(self._limit(one, key), self._limit(other, key))

    def _limit(self, process: Process, key: int) -> int:
        """The newest version of an API that a node supports in this incarnation."""
        if self._is_renewed:
            return APIS[key].max_version
        name = (process.id, process.turn, key)
        found = self._newest.get(name)
        if found is None:
            api, rng = APIS[key], Prng(self._seed, "version", *name)
            oldest = max(api.min_version, self._oldest.get(key, api.min_version))
            newest = api.max_version
            found = newest if rng.happens(0.6) else rng.between(oldest, newest)
            self._newest[name] = found
        return found

    def request(self, request: Request, version: int) -> Request:
        """The request as the receiver's core gets it.

        Raises UnsupportedFieldError where the version lacks a field, and ViolationError where our
        own decoder refuses the request.
        """
        if isinstance(request, ApiVersionsRequest):
            return request
        frame = encode_request(request_to_wire(request, version), version, 1, "simulated")
        decoded = decode_request(frame[_LENGTH:])
        assert decoded.message is not None
        incoming = request_from_wire(decoded.message, version)
        if isinstance(incoming, Message):
            raise ViolationError(
                "wire",
                f"{describe_message(request, whole=True)} in version {version} is answered with "
                f"{incoming}",
            )
        return incoming

    def response(self, request: Request, version: int, response: Response, data: bytes) -> Response:
        """The response as the sender's core gets it. Raises WireError for damaged records."""
        if isinstance(request, ApiVersionsRequest):
            return response
        key = api_key_of(request)
        message = response_to_wire(response, data, Asked(version, LISTENER))
        frame = encode_response(message, key, version, 1)
        _, decoded = decode_response(frame[_LENGTH:], key, version)
        return response_from_wire(decoded, LISTENER)
