"""TLS, logins and permissions between the members of one cluster, by the keys of Kafka's controllers."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import replace
from typing import Final

from quorate.config.node_config import NodeConfig
from quorate.config.unsupported import check_servable
from quorate.embed.node import EmbeddedNode
from quorate.metadata.image import ScramCredential, ScramKey
from quorate.security.jaas import JaasText, parse_jaas
from quorate.security.scram_keys import MECHANISMS, MIN_ITERATIONS, credential_record
from quorate.server.authentication import PeerSecurity
from quorate.server.credentials import Credentials
from quorate.server.driver import present
from quorate.server.node_security import NodeSecurity
from quorate.server.sasl import SaslListeners, check_sasl, peer_login

_USER: Final = "user_"
_SALT_BYTES: Final = 16


class MemberSecurity:
    """What the member's listener asks for, and what its connections need. Raises QuorateError."""

    def __init__(self, config: NodeConfig) -> None:
        check_servable(config)
        check_sasl(config)
        self.tls = NodeSecurity(config)
        self.peers: PeerSecurity = replace(self.tls.peers, login=peer_login(config))
        """What connections to other members need."""
        self.allowed = config.super_users if config.authorizer else None
        """Who may send requests, as `type:name`; None: all that are authenticated."""
        self._config = config
        self._scram = _credentials(config)

    def logins(self, node: EmbeddedNode) -> SaslListeners:
        """Who may log in at the member's listener; the caller closes it."""

        def now() -> tuple[int, int]:
            at = present()
            return at.monotonic_ms, at.wall_ms

        return SaslListeners(self._config, node, Credentials(node, self._scram, None), now)


def _credentials(config: NodeConfig) -> dict[ScramKey, ScramCredential]:
    """The credentials of SCRAM: a member keeps none in its log, so the JAAS text names passwords.

    It has the options `user_NAME="PASSWORD"`, as Kafka's PlainLoginModule.
    """
    found: dict[ScramKey, ScramCredential] = {}
    for listener in config.sasl.listeners.values():
        for name in set(listener.mechanisms) & set(MECHANISMS):
            mechanism = MECHANISMS[name]
            options = parse_jaas(JaasText(*listener.jaas[name]), name).options
            for option, password in options.items():
                if not option.startswith(_USER):
                    continue
                user = option.removeprefix(_USER)
                salt = secrets.token_bytes(_SALT_BYTES)
                salted = hashlib.pbkdf2_hmac(
                    mechanism.hash, password.encode(), salt, MIN_ITERATIONS
                )
                made = credential_record(mechanism, user, salt, salted, MIN_ITERATIONS)
                found[ScramKey(mechanism.type, user)] = ScramCredential(
                    salt, bytes(made.stored_key), bytes(made.server_key), MIN_ITERATIONS
                )
    return found
