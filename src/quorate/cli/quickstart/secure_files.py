"""The certificates, passwords and client files of a quickstart with TLS and SASL."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from quorate.base.errors import QuorateError
from quorate.cli.quickstart.properties_text import properties_text
from quorate.log_dirs.meta_properties import write_durably
from quorate.security.jaas import SCRAM_MODULE
from quorate.security.tls.authority import Authority
from quorate.server.ports import LOOPBACK

CONTROLLER: Final = "controller"
ADMIN: Final = "admin"
USER: Final = "alice"
REFUSED_LOGIN: Final = "wrong-password"
NO_CERTIFICATE: Final = "no-certificate"
MECHANISM: Final = "SCRAM-SHA-512"
_USERS: Final = (CONTROLLER, ADMIN, USER)
_DAYS: Final = 365
_PRIVATE: Final = 0o600
_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class SecureFiles:
    """The directory with what secures one quorum. `prepare` makes what is missing."""

    def __init__(self, directory: Path, listener: str) -> None:
        self.directory = directory
        self._listener = listener.lower()
        self._passwords: Mapping[str, str] = {}

    @property
    def authority_file(self) -> Path:
        """The certificate of the authority, which every side trusts."""
        return self.directory / "ca.pem"

    def prepare(self) -> None:
        """Make the authority, the passwords and the users' certificates, unless they exist.

        Raises OSError, and QuorateError for a damaged file of passwords.
        """
        self.directory.mkdir(mode=0o700, exist_ok=True)
        self._passwords = self._load_passwords()
        for user in (ADMIN, USER):
            self._issue(user, ())

    def node_properties(self, node_id: int) -> dict[str, str]:
        """The security section of a controller's properties file; issues its certificate."""
        name = f"{CONTROLLER}-{node_id}"
        self._issue(name, ("localhost", LOOPBACK))
        prefix = f"listener.name.{self._listener}."
        return {
            "listener.security.protocol.map": f"{self._listener.upper()}:SASL_SSL",
            f"{prefix}ssl.client.auth": "required",
            **self._trust(),
            **self._key(name),
            "sasl.enabled.mechanisms": MECHANISM,
            "sasl.mechanism.controller.protocol": MECHANISM,
            f"{prefix}{MECHANISM.lower()}.sasl.jaas.config": _jaas(
                CONTROLLER, self._passwords[CONTROLLER]
            ),
            "authorizer.class.name": _AUTHORIZER,
            "super.users": f"User:{CONTROLLER};User:{ADMIN}",
        }

    def format_words(self) -> list[str]:
        """The words of `storage format` that create the users; they have passwords."""
        users = self._passwords.items()
        return [
            word
            for name, password in users
            for word in ("--add-scram", f"{MECHANISM}=[name={name},password={password}]")
        ]

    @property
    def admin_file(self) -> Path:
        """The administrator's file for --command-config."""
        return self.client_file(ADMIN)

    def client_file(self, name: str) -> Path:
        """The file for --command-config: of a user, REFUSED_LOGIN or NO_CERTIFICATE."""
        return self.directory / f"{name}.properties"

    def write_client_files(self, bootstrap: str) -> None:
        """Write them with today's paths and addresses. Raises OSError."""
        for user in (ADMIN, USER):
            self._write_client(user, bootstrap, user, self._passwords[user], self._key(user))
        wrong = secrets.token_urlsafe(18)
        self._write_client(REFUSED_LOGIN, bootstrap, ADMIN, wrong, self._key(ADMIN))
        self._write_client(NO_CERTIFICATE, bootstrap, ADMIN, self._passwords[ADMIN], {})

    def _write_client(
        self, name: str, bootstrap: str, user: str, password: str, key: Mapping[str, str]
    ) -> None:
        lines = {
            "bootstrap.controllers": bootstrap,
            "security.protocol": "SASL_SSL",
            **self._trust(),
            **key,
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": _jaas(user, password),
        }
        write_durably(self.client_file(name), properties_text(lines), _PRIVATE)

    def _trust(self) -> dict[str, str]:
        return {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority_file),
        }

    def _key(self, name: str) -> dict[str, str]:
        return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self._pem(name))}

    def _pem(self, name: str) -> Path:
        return self.directory / f"{name}.pem"

    def _issue(self, name: str, hosts: tuple[str, ...]) -> None:
        if not self._pem(name).exists():
            issued = self._authority().issue(name, hosts, datetime.now(UTC), _DAYS)
            write_durably(self._pem(name), issued, _PRIVATE)

    def _authority(self) -> Authority:
        key_file = self.directory / "ca-key.pem"
        # The key is written last: a killed run leaves both files or is repeated.
        if key_file.exists():
            return Authority(key_file.read_bytes(), self.authority_file.read_bytes())
        made = Authority.create(datetime.now(UTC), _DAYS)
        write_durably(self.authority_file, made.certificate)
        write_durably(key_file, made.private_key, _PRIVATE)
        return made

    def _load_passwords(self) -> Mapping[str, str]:
        path = self.directory / "passwords.json"
        if not path.exists():
            made = {user: secrets.token_urlsafe(18) for user in _USERS}
            write_durably(path, (json.dumps(made, indent=2) + "\n").encode(), _PRIVATE)
            return made
        try:
            found = json.loads(path.read_bytes())
            return {user: str(found[user]) for user in _USERS}
        except (ValueError, KeyError, TypeError):
            raise QuorateError(
                f"{path} is invalid; name an empty directory with --data, or move this one away"
            ) from None


def _jaas(user: str, password: str) -> str:
    return f'{SCRAM_MODULE} required username="{user}" password="{password}";'
