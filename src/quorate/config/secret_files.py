"""Files that hold secrets and that other users of the machine can read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from typing import Final

from quorate.base.file_url import path_of
from quorate.config.monitoring_settings import CREDENTIALS_FILE
from quorate.config.providers import files_of

KEY_STORE: Final = "ssl.keystore.location"
_TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105 - a key
_SECRETS: Final = (
    "ssl.keystore.key",
    "ssl.keystore.password",
    "ssl.key.password",
    "sasl.jaas.config",
    "delegation.token.secret.key",
)


def open_secrets(raw: Mapping[str, str], values: Mapping[str, str], source: str) -> Iterator[str]:
    """A warning for each file with secrets that its group or everybody can read.

    `raw`: the keys of the file `source` as they stand there; `values`: with references replaced.
    A file that cannot be looked at is left to its reader, who reports it.
    """
    for path, what in _files(raw, values, source).items():
        try:
            mode = stat.S_IMODE(os.stat(path).st_mode)
        except (OSError, ValueError):
            continue
        who = "everybody" if mode & stat.S_IROTH else "its group"
        if mode & (stat.S_IRGRP | stat.S_IROTH):
            yield (
                f"{path} holds {what}, and {who} can read it (mode {mode:04o}): let only the "
                f"node's user read it, for example with chmod 600 {path}"
            )


def _files(raw: Mapping[str, str], values: Mapping[str, str], source: str) -> dict[str, str]:
    """Path -> what is secret in it."""
    found = dict.fromkeys(files_of(raw), "values for config providers")
    found |= {
        path: f"the private key of {key}"
        for key, path in values.items()
        if path and _is(key, KEY_STORE)
    }
    if users := values.get(CREDENTIALS_FILE):
        found[users] = f"the passwords of {CREDENTIALS_FILE}"
    for key, url in values.items():
        if _is(key, _TOKEN_URL) and (token := path_of(url)):
            found[token] = f"the token of {key}"
    inline = [key for key, text in raw.items() if _is_secret(key, text) and values.get(key) == text]
    if inline:
        found[source] = ", ".join(inline)
    return found


def _is(key: str, name: str) -> bool:
    """Whether the key is `name`, or `name` with the prefix of a listener or mechanism."""
    return key == name or key.endswith(f".{name}")


def _is_secret(key: str, text: str) -> bool:
    """A JAAS text without options names only a module."""
    if not any(_is(key, name) for name in _SECRETS):
        return False
    return "=" in text if _is(key, "sasl.jaas.config") else bool(text)
