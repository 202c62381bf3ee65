"""The output of a scenario: messages, responses and names in short form."""

from __future__ import annotations

import re
from typing import Final

from quorate.base.ids import uuid_to_text
from quorate.raft.messages import (
    FetchRequest,
    FetchResponse,
    Response,
    VoteRequest,
    VoteResponse,
)
from quorate.sim.scenario.names import directory
from quorate.sim.scenario.node import CoreMessage

_SHORT: Final = {
    f"-{uuid_to_text(directory(node, disk))}": "'" * disk for node in range(10) for disk in range(2)
}
_REPLICA_KEY: Final = re.compile(r"ReplicaKey\(id=(\d+), directoryId=\S+?\)")


def shorten(text: str) -> str:
    """Write n strokes instead of the directory id of a node's n-th disk."""
    for long, short in _SHORT.items():
        text = text.replace(long, short)
    return _REPLICA_KEY.sub(r"<\1>", text)


def message_text(message: CoreMessage) -> str:
    """Source, receiver, type, and the fields that decide elections and replication."""
    body = message.body
    text = str(message)
    if isinstance(body, VoteRequest):
        kind = "pre-vote" if body.pre_vote else "vote"
        return f"{text} {kind} epoch {body.epoch} log ({body.last_offset}, {body.last_epoch})"
    if isinstance(body, FetchRequest):
        return f"{text} epoch {body.epoch} at ({body.offset}, {body.last_fetched_epoch})"
    if isinstance(body, Response):
        return f"{text} {answer_text(body).split(' ', 1)[1]}"
    return text


def answer_text(answer: Response) -> str:
    """Type, error and result of a response."""
    text = f"{type(answer).__name__} {answer.error.name}"
    if isinstance(answer, VoteResponse) and answer.error == 0:
        text += " granted" if answer.granted else " refused"
    if isinstance(answer, FetchResponse):
        if answer.diverging is not None:
            text += f" diverging {tuple(answer.diverging)}"
        if answer.snapshot_id is not None:
            text += f" snapshot {tuple(answer.snapshot_id)}"
        text += f" hw {answer.high_watermark} batches {[b.base_offset for b in answer.batches]}"
    message = getattr(answer, "message", None)
    return f"{text}: {message}" if message else text
