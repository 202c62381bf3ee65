"""The two controllers of a seed, with the same keys, each alone in its quorum."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any, Final

from differential import channel
from differential.side import Side
from differential.tokens import SECRET_KEY
from interop.kafka import Quorum, new_uuid
from interop.process import HOST, free_port

_LIFETIMES: Final = {
    "delegation.token.max.lifetime.ms": (None, None, 20 * 60_000, 2**63 - 1, 1),
    "delegation.token.expiry.time.ms": (None, None, 10 * 60_000, 1),
}
_SWEEP_KEY: Final = "delegation.token.expiry.check.interval.ms"
RELEASES: Final = ("4.3", "4.3", "4.3", "4.2", "4.1", "4.0", "3.9", "3.7", "3.5", "3.4", "3.3")


def settings(rng: Random) -> tuple[dict[str, Any], list[str]]:
    """Keys of both controllers, and the arguments of their format."""
    keys: dict[str, Any] = {
        "broker.session.timeout.ms": 100_000_000,
        "auto.leader.rebalance.enable": "false",
        "unclean.leader.election.interval.ms": 100_000_000,
        "metadata.max.idle.interval.ms": 0,
        "metadata.log.max.record.bytes.between.snapshots": 1 << 30,
        "metadata.log.max.snapshot.interval.ms": 0,
        "controller.quorum.append.linger.ms": 0,
        "default.replication.factor": rng.choice((1, 2, 3)),
        "num.partitions": rng.choice((1, 3)),
        "min.insync.replicas": rng.choice((1, 1, 2)),
        "unclean.leader.election.enable": rng.choice(("false", "false", "true")),
        "delete.topic.enable": rng.choice(("true",) * 7 + ("false",)),
    }
    keys |= channel.keys() | _token_keys(rng)
    if rng.random() < 0.8:
        keys["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        keys["super.users"] = "User:ANONYMOUS;User:admin"
        keys["allow.everyone.if.no.acl.found"] = rng.choice(("true", "false"))
    release = rng.choice(RELEASES)
    arguments = ["--release-version", release]
    return keys, arguments


def _token_keys(rng: Random) -> dict[str, Any]:
    """Keys of delegation tokens. The default lifetimes are days."""
    keys: dict[str, Any] = {}
    chance = rng.random()
    if chance < 0.95:
        keys["delegation.token.secret.key"] = "" if chance < 0.05 else SECRET_KEY
    for name, values in _LIFETIMES.items():
        value = rng.choice(values)
        if value is not None:
            keys[name] = value
    if rng.random() < 0.3:
        keys[_SWEEP_KEY] = 50
    return keys


class Pair:
    """Both controllers of a seed. Use as a context."""

    def __init__(self, root: Path, seed: int) -> None:
        self.rng = Random(seed)
        keys, self._arguments = settings(self.rng)
        cluster_id = new_uuid()
        self._quorums = []
        for kind in ("java", "quorate"):
            quorum = Quorum(root / kind, {1: kind}, static=True, config=keys)
            quorum.cluster_id = cluster_id
            self._quorums.append(quorum)
        self.java, self.quorate = (
            _side(quorum, sweeps=_SWEEP_KEY in keys) for quorum in self._quorums
        )
        self.sides = (self.java, self.quorate)
        self.may_delete = keys["delete.topic.enable"] == "true"
        """Else what a controller placed at random would stay."""
        self.is_authorized = "authorizer.class.name" in keys
        self.description = f"{' '.join(self._arguments)} {keys}"

    def __enter__(self) -> Pair:
        try:
            for quorum in self._quorums:
                quorum.format(*self._arguments)
                quorum.start()
            for side in self.sides:
                side.wait_until_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for side in self.sides:
            side.close()
        for quorum in self._quorums:
            quorum.stop()


def _side(quorum: Quorum, *, sweeps: bool) -> Side:
    node, login_port = quorum.nodes[1], free_port()
    node.config["listeners"] = (
        f"CONTROLLER://{node.address},{channel.LISTENER}://{HOST}:{login_port}"
    )
    return Side(node, quorum.cluster_id, login_port, sweeps=sweeps)
