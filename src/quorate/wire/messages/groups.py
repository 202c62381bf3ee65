"""Groups of consumers (KIP-518, KIP-848)."""

from __future__ import annotations

from quorate.wire.schema import Message, Struct, array, int16, int32, string


class ListGroupsRequest(Message, kind="request", key=16, versions=(0, 5), flexible=3):
    """Asks a broker for the groups that it coordinates; an empty filter: all."""

    states_filter: list[str] = array("string", since=4)
    types_filter: list[str] = array("string", since=5)


class ListGroupsResponse(Message, kind="response", key=16, versions=(0, 5), flexible=3):
    """The groups."""

    class ListedGroup(Struct):
        group_id: str = string()
        protocol_type: str = string()
        group_state: str = string(since=4, ignorable=True)
        group_type: str = string(since=5, ignorable=True)

    throttle_time_ms: int = int32(since=1, ignorable=True)
    error_code: int = int16()
    groups: list[ListedGroup] = array(ListedGroup)
