"""The clients' operations with their times and outcomes, written as lines of JSON."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

from quorate.sim.world.client_op import ClientOp, OpKind, OpOutcome


class ClientHistory:
    """Operations in the order of their invocation. Times are in us since it was created."""

    def __init__(self) -> None:
        self.ops: list[ClientOp] = []
        self._zero_ns = time.monotonic_ns()
        self._counts: Counter[int] = Counter()
        self._numbers = 0

    def now_us(self) -> int:
        return (time.monotonic_ns() - self._zero_ns) // 1000

    def invoke(self, client: int, kind: OpKind, key: int, expected: int | None = None) -> ClientOp:
        """An operation begins. The value of a put or a cas is a number that no other write has."""
        self._counts[client] += 1
        value = None
        if kind != "get":
            self._numbers += 1
            value = self._numbers
        op = ClientOp(client, self._counts[client], kind, key, value, expected, self.now_us())
        self.ops.append(op)
        return op

    def complete(self, op: ClientOp, outcome: OpOutcome, result: int | bool | None = None) -> None:
        op.answered_us, op.outcome, op.result = self.now_us(), outcome, result

    def outcomes(self) -> Mapping[str, int]:
        return dict(sorted(Counter(op.outcome for op in self.ops).items()))

    def write(self, path: Path) -> None:
        path.write_text("".join(json.dumps(asdict(op)) + "\n" for op in self.ops))


def longest_outage_us(ops: Iterable[ClientOp], until_us: int) -> int:
    """The longest time without an acknowledged write, from the first one to `until_us`."""
    times = sorted(
        op.answered_us
        for op in ops
        if op.kind != "get" and op.outcome == "ok" and op.answered_us <= until_us
    )
    if not times:
        return until_us
    return max(end - start for start, end in pairwise([*times, until_us]))
