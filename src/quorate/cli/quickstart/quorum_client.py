"""Open the quorum of a data directory, and a client for it."""

from __future__ import annotations

from typing import Final

import click

from quorate.cli.quickstart.defaults import DEFAULT_CONTROLLERS
from quorate.cli.quickstart.supervisor import Supervisor
from quorate.client import Admin, ClientError, QuorumInfo
from quorate.client.admin.client import bootstrap_config

WATCHER_MS: Final = 2_000


def open_quorum(quorum: Supervisor, controllers: int | None, *, secure: bool = False) -> None:
    """Load or create the data directory and print which; `secure` gives a new one TLS and SASL."""
    if quorum.load_or_create(controllers or DEFAULT_CONTROLLERS, secure=secure):
        click.echo(f"Resuming {len(quorum.nodes)} controllers in {quorum.data}")
        if controllers not in (None, len(quorum.nodes)):
            click.echo(f"--controllers {controllers} is ignored: the quorum exists already")
    else:
        click.echo(f"Formatted and starting {len(quorum.nodes)} controllers in {quorum.data}")


def admin_of(quorum: Supervisor, timeout_ms: int) -> Admin:
    """A client of all controllers with short timeouts."""
    properties = quorum.secured.admin_file if quorum.secured else None
    return Admin(
        bootstrap_config(None, quorum.bootstrap, properties)._replace(
            client_id="quorate-quickstart",
            default_api_timeout_ms=timeout_ms,
            request_timeout_ms=WATCHER_MS,
            connect_timeout_ms=WATCHER_MS,
            retry_backoff_ms=10,
            unreachable_after_ms=500,
        )
    )


def describe_or_none(admin: Admin) -> QuorumInfo | None:
    """Describe the quorum; returns None without a leader."""
    try:
        return admin.describe_quorum()
    except ClientError:
        return None
