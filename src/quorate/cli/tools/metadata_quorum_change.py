"""`quorate metadata-quorum add-controller` and `remove-controller`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from quorate.base.errors import ErrorCode, QuorateError
from quorate.base.ids import Listener, ReplicaKey, uuid_from_text, uuid_to_text
from quorate.base.sentences import sentence
from quorate.cli.flat_options import print_json
from quorate.cli.options import CONTEXT, INT32, ToolCommand, json_option, open_admin
from quorate.cli.tools.metadata_quorum_describe import QuorumToolError, endpoint_text

if TYPE_CHECKING:
    from quorate.client import Admin
    from quorate.client.errors import ClientError
    from quorate.config.settings import Settings


@click.command("add-controller", cls=ToolCommand, context_settings=CONTEXT)
@click.option("--dry-run", is_flag=True, help="Print the change without making it.")
@click.option(
    "--config", metavar="FILE", help="The new controller's file, in place of --command-config."
)
@json_option
@click.pass_obj
def add_controller(
    options: dict[str, Any], dry_run: bool, config: str | None, as_json: bool
) -> None:
    """Make the controller of the --command-config file a voter."""
    if config is not None:
        if options["command_config"] is not None:
            raise QuorumToolError("--config and --command-config cannot be specified together.")
        options = {**options, "command_config": config}
    admin, settings = open_admin(options)
    if settings is None:
        raise QuorumToolError(
            "You must supply the configuration file of the controller you are adding when using "
            "add-controller."
        )
    with admin:
        key, listeners = _controller_of(settings)
        if not dry_run:
            admin.add_voter(key, listeners)
    verb = "DRY RUN of adding" if dry_run else "Added"
    if as_json:
        shown = {**_json(key), "endpoints": list(map(endpoint_text, listeners))}
        print_json({**shown, "added": not dry_run, "dryRun": dry_run})
        return
    endpoints = ", ".join(map(endpoint_text, listeners))
    click.echo(
        f"{verb} controller {key.id} with directory id {uuid_to_text(key.directory_id)} and "
        f"endpoints: {endpoints}"
    )


def _json(key: ReplicaKey) -> dict[str, Any]:
    return {"id": key.id, "directoryId": uuid_to_text(key.directory_id)}


def _controller_of(settings: Settings) -> tuple[ReplicaKey, list[Listener]]:
    """The key and listeners of the controller of a properties file. Raises QuorumToolError."""
    hint = "Is this a valid controller configuration file?"
    if "node.id" not in settings:
        raise QuorumToolError(f"node.id not found in configuration file. {hint}")
    node_id = settings.integer("node.id", None)
    assert node_id is not None
    if node_id < 0:
        raise QuorumToolError(f"node.id was negative in configuration file. {hint}")
    if "controller" not in (settings.text("process.roles") or ""):
        raise QuorumToolError(
            f"process.roles did not contain 'controller' in configuration file. {hint}"
        )
    directory = settings.text("metadata.log.dir") or (settings.items("log.dirs") or ("",))[0]
    if not directory:
        raise QuorumToolError(f"Neither metadata.log.dir nor log.dirs were found. {hint}")
    return ReplicaKey(node_id, _directory_id(directory)), _listeners_of(settings, hint)


def _directory_id(directory: str) -> Any:
    from quorate.log_dirs.meta_properties import load_ensemble

    ensemble = load_ensemble([directory])
    if directory not in ensemble.found:
        why = ensemble.failed.get(directory)
        raise QuorumToolError(
            f"Unable to read meta.properties from {directory}" + (f" ({why})" if why else "")
        )
    directory_id = ensemble.found[directory].directory_id
    if directory_id is None:
        raise QuorumToolError(f"No directory id found in {directory}")
    return directory_id


def _listeners_of(settings: Settings, hint: str) -> list[Listener]:
    from quorate.config import listeners as addresses

    known = {}
    for key in (addresses.LISTENERS, addresses.ADVERTISED):
        found = addresses.listeners(settings, key, None, distinct_ports=False)
        known.update({listener.name: listener for listener in found or ()})
    names = settings.items(addresses.CONTROLLER_NAMES)
    if names is None:
        raise QuorumToolError(f"{addresses.CONTROLLER_NAMES} was not found. {hint}")
    chosen = []
    for name in names:
        listener = known.get(name.upper())
        if listener is None:
            raise QuorumToolError(
                f"Cannot find information about controller listener name: {name.upper()}"
            )
        chosen.append(Listener(listener.name, listener.host or "localhost", listener.port))
    return chosen


@click.command("remove-controller", cls=ToolCommand, context_settings=CONTEXT)
@click.option("--controller-id", "-i", type=INT32, required=True, help="The controller's node id.")
@click.option(
    "--controller-directory-id",
    "--controller-uuid",
    "-d",
    required=True,
    metavar="UUID",
    help="Its directory id.",
)
@click.option("--dry-run", is_flag=True, help="Print the change without making it.")
@click.option(
    "--unregister",
    is_flag=True,
    help="Also remove its registration; stop it first, or it registers again.",
)
@json_option
@click.pass_obj
def remove_controller(
    options: dict[str, Any],
    controller_id: int,
    controller_directory_id: str,
    dry_run: bool,
    unregister: bool,
    as_json: bool,
) -> None:
    """Make a voter an observer."""
    with open_admin(options)[0] as admin:
        if controller_id < 0:
            raise QuorumToolError(f"Invalid negative --controller-id: {controller_id}")
        try:
            key = ReplicaKey(controller_id, uuid_from_text(controller_directory_id))
        except QuorateError as error:
            raise QuorumToolError(f"Failed to parse --controller-directory-id: {error}") from None
        done = {"removed": not dry_run, "unregistered": unregister and not dry_run}
        if not dry_run:
            _remove(admin, key, unregister)
        # Kafka 4.3 has two spaces after the verb, 4.4 one (decision 13).
        verb = "DRY RUN of removing" if dry_run else "Removed"
        if not as_json:
            click.echo(
                f"{verb}{' ' if unregister else '  '}KRaft controller {key.id} with directory id "
                f"{uuid_to_text(key.directory_id)}"
            )
        if unregister:
            if not dry_run:
                try:
                    _unregister(admin, key.id)
                except QuorumToolError:
                    if as_json:
                        print_json({**_json(key), **done, "unregistered": False, "dryRun": False})
                    raise
            verb = "DRY RUN of unregistering" if dry_run else "Unregistered"
            if not as_json:
                click.echo(f"{verb} KRaft controller {key.id}")
        if as_json:
            print_json({**_json(key), **done, "dryRun": dry_run})


def _remove(admin: Admin, key: ReplicaKey, unregister: bool) -> None:
    """Remove the voter. Raises QuorumToolError, or a ClientError, where it cannot be removed."""
    from quorate.client.errors import ClientError

    try:
        admin.remove_voter(key)
    except ClientError as error:
        code, reason = _refusal(error)
        may_help = code in (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.VOTER_NOT_FOUND)
        if not unregister or not may_help:
            raise
        raise QuorumToolError(
            f"Failed to remove KRaft voter {key.id}: {sentence(reason)} {_how_to_unregister(key.id)}"
        ) from None


def _unregister(admin: Admin, controller_id: int) -> None:
    """Unregister the removed voter. Raises QuorumToolError; the voter stays removed."""
    from quorate.client.errors import ClientError

    try:
        admin.unregister_controller(controller_id)
    except ClientError as error:
        _, reason = _refusal(error)
        raise QuorumToolError(
            f"Failed to unregister controller {controller_id}: {sentence(reason)} "
            f"{_how_to_unregister(controller_id)}"
        ) from None


def _refusal(error: ClientError) -> tuple[ErrorCode | None, str]:
    """The error code, None where the cluster gave none, and the reason."""
    from quorate.client.errors import UnsupportedVersionError
    from quorate.client.results import RequestFailedError

    if isinstance(error, RequestFailedError):
        return error.code, error.text
    unsupported = isinstance(error, UnsupportedVersionError)
    return ErrorCode.UNSUPPORTED_VERSION if unsupported else None, str(error)


def _how_to_unregister(controller_id: int) -> str:
    return (
        "To unregister the controller from the cluster, run "
        f"`kafka-cluster.sh unregister-controller --id {controller_id}`."
    )
