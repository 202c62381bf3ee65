"""`quorate metadata-shell` on the controllers of a running quorum."""

from __future__ import annotations

import click

from quorate.client.config import client_config
from quorate.client.errors import LoginError
from quorate.client.leader import Controllers, LeaderError
from quorate.shell.commands import ShellState
from quorate.shell.following import QuorumFollower
from quorate.shell.image_tree import root
from quorate.shell.loading import LoadError


def running_quorum(controllers: str | None, config: str | None, timeout: float) -> Controllers:
    """The quorum that the options name. Raises UsageError, BootstrapError, ConfigError."""
    settings = None
    if config is not None:
        from quorate.config.properties_file import read_settings

        settings = read_settings(config)
    found = client_config(settings, controllers=controllers)
    if not found.controllers:
        raise click.UsageError(
            f"{config} names bootstrap.servers, but brokers do not serve the metadata log: give "
            "--controllers HOST:PORT,... or bootstrap.controllers"
        )
    wait_ms = max(round(timeout * 1000), 1)
    return Controllers(found.bootstrap, timeout_ms=wait_ms, security=found.security)


def read_on(follower: QuorumFollower, state: ShellState) -> None:
    """Show the newest committed state; where nobody answers, say so and keep the last one."""
    before = follower.position
    try:
        view = follower.catch_up()
    except (LeaderError, LoginError, LoadError) as error:
        click.echo(f"{error}\nThe last known state is shown. {follower.position}.", err=True)
        return
    if follower.position != before:
        state.root = root(view)
        click.echo(f"{follower.position}.", err=True)
