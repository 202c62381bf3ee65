"""The keys whose values name files or directories, or URLs of files."""

from __future__ import annotations

from typing import Final

from quorate.base.file_errors import is_file_name, shown
from quorate.base.file_url import path_of
from quorate.config.monitoring_settings import AUTHORIZER_LOG_DIR, CREDENTIALS_FILE
from quorate.config.settings import Settings

PATH_KEYS: Final = (
    *("log.dir", "log.dirs", "metadata.log.dir", "quorate.audit.dir"),
    *(AUTHORIZER_LOG_DIR, CREDENTIALS_FILE),
    *("ssl.keystore.location", "ssl.truststore.location"),
    *("sasl.oauthbearer.jwks.endpoint.url", "sasl.oauthbearer.token.endpoint.url"),
)


def check_paths(settings: Settings) -> None:
    """Refuse what no file can be named. Raises ConfigError.

    A key counts with the prefix of a listener or mechanism, too.
    """

    def check(key: str) -> None:
        value = settings.values[key]
        names_files = any(key == name or key.endswith(f".{name}") for name in PATH_KEYS)
        if names_files and not is_file_name(path_of(value) or value):
            settings.invalid(key, shown(value), "No file has such a name")

    settings.each(check, settings)
