"""Controllers whose listener has TLS or SASL, and clients that log in there."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from bench.clients import HOST, Framed, QuotaClient
from bench.fleet import Wire
from bench.load import Client
from bench.systems import IDS, Node, wait_for

from interop.kafka import Quorum
from quorate.base.errors import QuorateError
from quorate.client import Admin
from quorate.security.sasl.client import SaslClient
from quorate.security.sasl.scram import ScramClient
from quorate.security.tls.authority import Authority
from quorate.wire.header import decode_response, encode_request
from quorate.wire.schema import Message

USER, PASSWORD = "admin", "bench-password"
MECHANISM = "SCRAM-SHA-512"
_LOGINS_AT_ONCE = 32
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"

# Clients are machines of their own: here they derive the keys of the password once, not each.
hashlib.pbkdf2_hmac = lru_cache(maxsize=16)(hashlib.pbkdf2_hmac)  # type: ignore[assignment]


class SecureControllers:
    """Three controllers of one kind, with client certificates over TLS, SASL, both or neither."""

    def __init__(self, root: Path, kind: str = "quorate", protocol: str = "SASL_SSL") -> None:
        self.protocol = protocol
        now = datetime.now(UTC)
        root.mkdir(parents=True, exist_ok=True)
        authority = Authority.create(now, 1)
        self._ca, key, own = (root / name for name in ("ca.pem", "node.pem", "client.pem"))
        self._ca.write_bytes(authority.certificate)
        key.write_bytes(authority.issue("controller", (HOST, "localhost"), now, 1))
        own.write_bytes(authority.issue("client", (), now, 1))
        self._own = own
        trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self._ca)}
        users = f' username="{USER}" password="{PASSWORD}" user_{USER}="{PASSWORD}";'
        config: dict[str, Any] = {
            "listener.security.protocol.map": f"CONTROLLER:{protocol}",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(key),
            "listener.name.controller.ssl.client.auth": "required",
            **trust,
            "sasl.enabled.mechanisms": f"PLAIN,{MECHANISM}",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.controller.plain.sasl.jaas.config": _PLAIN + users,
            f"listener.name.controller.{MECHANISM.lower()}.sasl.jaas.config": f"{_SCRAM};",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": (
                f"User:{USER};User:CN=controller,O=Quorate trial;User:CN=client,O=Quorate trial;"
                "User:ANONYMOUS"
            ),
        }
        self.name = f"{kind}, {protocol}"
        self.quorum = Quorum(root / "quorum", dict.fromkeys(IDS, kind), config=config)
        self.nodes = self.quorum.nodes
        self._client = root / "client.properties"
        client = {
            "security.protocol": protocol,
            **trust,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(own),
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": f'{_SCRAM} username="{USER}" password="{PASSWORD}";',
        }
        self._client.write_text("".join(f"{key}={value}\n" for key, value in client.items()))

    def __enter__(self) -> SecureControllers:
        scram = f"{MECHANISM}=[name={USER},password={PASSWORD}]"
        self.quorum.format("--add-scram", scram)
        self.quorum.start()
        self.leader()
        return self

    def __exit__(self, *_: object) -> None:
        self.quorum.stop()

    def tls(self) -> ssl.SSLContext:
        """The context of a client."""
        context = ssl.create_default_context(cafile=self._ca)
        context.load_cert_chain(self._own)
        return context

    def leader_and_epoch(self) -> tuple[Node, int]:
        """The node that leads now, and in which epoch, as soon as one does."""

        def found() -> tuple[Node, int] | None:
            alive = ",".join(n.address for n in self.nodes.values() if n.answers)
            with Admin.open(bootstrap_controllers=alive, properties=self._client) as admin:
                try:
                    quorum = admin.describe_quorum()
                except QuorateError:
                    return None
            node = self.nodes.get(quorum.leader_id)
            return (node, quorum.leader_epoch) if node is not None and node.answers else None

        return wait_for(found, f"a leader of {self.name}", 60)

    def leader(self) -> Node:
        return self.leader_and_epoch()[0]

    async def protocol_to(self, port: int) -> Framed:
        """A connection that is logged in."""
        loop = asyncio.get_running_loop()
        tls = self.tls() if self.protocol.endswith("SSL") else None
        _, framed = await loop.create_connection(Framed, HOST, port, ssl=tls)
        if self.protocol.startswith("SASL"):
            await log_in(framed, SaslClient(ScramClient(MECHANISM, USER, PASSWORD)))
        return framed

    async def connect(self, outstanding: int) -> list[Client]:
        port = self.leader().port
        return [QuotaClient(await self.protocol_to(port)) for _ in range(outstanding)]

    def wires(self) -> Callable[[int], Awaitable[Wire]]:
        """Makes the connections of simulated brokers: their logins share the process of the client."""
        turns = asyncio.Semaphore(_LOGINS_AT_ONCE)

        async def connect(port: int) -> Wire:
            async with turns:
                return Wire(await self.protocol_to(port))

        return connect


async def log_in(framed: Framed, exchange: SaslClient) -> None:
    """Run the exchange. Raises SaslError, and OSError when the connection breaks."""
    request: Message | None = exchange.start()
    while request is not None:
        key = type(request).schema.key
        assert key is not None
        version = 1
        frame = await framed.ask(encode_request(request, version, 1, "bench"))
        request = exchange.take(decode_response(frame, key, version)[1])
