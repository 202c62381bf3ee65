"""`quorate storage`: format and inspect log directories, as Kafka's kafka-storage does."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import click

from quorate.base.errors import QuorateError
from quorate.base.ids import Address, ReplicaKey, Uuid, uuid_to_text
from quorate.cli.columns import fold
from quorate.cli.options import CONTEXT, OrderedGroup, json_option
from quorate.cli.tools.feature_facts import feature_dependencies, name_and_level, version_mapping
from quorate.cli.tools.storage_check import check
from quorate.formats.versions import (
    DEFAULT,
    METADATA_VERSION,
    MINIMUM,
    parse_metadata_version,
)


class StorageToolError(QuorateError):
    """The command is refused; nothing was written."""


@click.group(
    cls=OrderedGroup,
    context_settings=CONTEXT,
    epilog="""\b
Examples:
  quorate storage random-uuid
  quorate storage format -c server.properties -t Auo5pIz_RXynyYRjkH2osA --standalone
  quorate storage info -c server.properties --json
  quorate storage check -c server.properties""",
)
def storage() -> None:
    """Format a node's log directories, or inspect them (Kafka's kafka-storage)."""


def _config_option(command: Any) -> Any:
    return click.option(
        "--config",
        "-c",
        "config_path",
        required=True,
        metavar="FILE",
        help="The node's properties file.",
    )(command)


@storage.command("random-uuid", context_settings=CONTEXT)
@json_option
def random_uuid(as_json: bool) -> None:
    """Print a random uuid for a cluster id or directory id."""
    # As Kafka's `Uuid.randomUuid`: version 4, and without a leading '-', which looks like an option.
    while True:
        raw = bytearray(os.urandom(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        text = uuid_to_text(Uuid(bytes(raw)))
        if not text.startswith("-"):
            click.echo(json.dumps({"uuid": text}, indent=2) if as_json else text)
            return


@storage.command(
    "format",
    context_settings=CONTEXT,
    epilog="""\b
Examples:
  A quorum of one controller, which can grow:
    quorate storage format -c server.properties -t $CLUSTER_ID --standalone
  The same voters on each of three controllers:
    quorate storage format -c server.properties -t $CLUSTER_ID -I \\
      1@a:9093:$DIR1,2@b:9093:$DIR2,3@c:9093:$DIR3
  A controller that joins later:
    quorate storage format -c server.properties -t $CLUSTER_ID --no-initial-controllers""",
)
@_config_option
@click.option("--cluster-id", "-t", required=True, metavar="UUID", help="The cluster id to use.")
@click.option(
    "--add-scram",
    "-S",
    multiple=True,
    metavar="CREDENTIAL",
    help="A SCRAM credential, e.g. 'SCRAM-SHA-256=[name=alice,password=alice-secret]' or "
    '\'SCRAM-SHA-512=[name=alice,iterations=8192,salt="N3E=",saltedpassword="YCE="]\'. '
    "May be repeated.",
)
@click.option(
    "--ignore-formatted",
    "-g",
    is_flag=True,
    help="Skip formatted directories instead of failing.",
)
@click.option(
    "--release-version",
    "-r",
    metavar="VERSION",
    help=f"Use the feature levels of this release; at least {MINIMUM}, default {DEFAULT}.",
)
@click.option(
    "--feature",
    "-f",
    "features",
    multiple=True,
    metavar="NAME=LEVEL",
    help="A feature's level, e.g. kraft.version=1. May be repeated.",
)
@click.option(
    "--standalone", "-s", is_flag=True, help="Create a dynamic quorum of this controller alone."
)
@click.option(
    "--no-initial-controllers",
    "-N",
    is_flag=True,
    help="Write no voter set: the node joins a dynamic quorum later.",
)
@click.option(
    "--initial-controllers",
    "-I",
    metavar="VOTERS",
    help="Create a dynamic quorum of id@host:port:directory-id,...; the same on every node.",
)
@click.option(
    "--controller-quorum-voters",
    metavar="VOTERS",
    help="The same as id-directory-id@host:port,..., as an early version of KIP-853 has it.",
)
@json_option
def format_(config_path: str, cluster_id: str, as_json: bool, **options: Any) -> None:
    """Format the log directories of a node."""
    from quorate.config.node_file import load_config
    from quorate.log_dirs import FormatRequest, NoDirectoriesError, formatter

    _check_exclusive(options)
    config = load_config(config_path)
    unstable = config.unstable_feature_versions_enable
    release = options["release_version"]
    request = FormatRequest(
        cluster_id=cluster_id,
        release_version=None if release is None else parse_metadata_version(release, unstable),
        feature_levels=dict(map(name_and_level, options["features"])),
        initial_controllers=_initial_controllers(config, options),
        scram=options["add_scram"],
        ignore_formatted=options["ignore_formatted"],
    )
    try:
        plan = formatter.plan(config, request)
    except NoDirectoriesError as error:
        if not as_json:
            _print_unreadable(error.unreadable)
        raise
    if as_json:
        formatter.write(plan)
        click.echo(json.dumps(_plan_facts(plan), indent=2))
        return
    _print_unreadable(plan.unreadable)
    if not plan.directories:
        click.echo("All of the log directories are already formatted.")
        return
    click.echo(f"Bootstrap metadata: {_bootstrap_text(plan)}")
    formatter.write(
        plan,
        lambda directory: click.echo(
            f"Formatting {directory.description} {directory.path} with {METADATA_VERSION} "
            f"{plan.metadata_version}."
        ),
    )


def _print_unreadable(paths: Sequence[str]) -> None:
    for path in paths:
        click.echo(f"I/O error trying to read log directory {path}. Ignoring...")


def _check_exclusive(options: dict[str, Any]) -> None:
    flags = (
        ("--standalone/-s", options["standalone"]),
        ("--no-initial-controllers/-N", options["no_initial_controllers"]),
        ("--initial-controllers/-I", options["initial_controllers"] is not None),
        ("--controller-quorum-voters", options["controller_quorum_voters"] is not None),
    )
    given = [name for name, present in flags if present]
    if len(given) > 1:
        raise click.UsageError(f"argument {given[1]}: not allowed with argument {given[0]}")


def _initial_controllers(config: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    """The initial voters that the options name. Raises StorageToolError if they contradict the file."""
    from quorate.config.dynamic_voters import DynamicVoter, parse_voters
    from quorate.log_dirs.meta_properties import new_directory_id

    text, standalone = options["initial_controllers"], options["standalone"]
    if options["controller_quorum_voters"] is not None:
        text = initial_controllers_text(options["controller_quorum_voters"])
    if config.static_voters and (text is not None or standalone):
        raise StorageToolError(
            "You cannot specify controller.quorum.voters and format the node with "
            "--initial-controllers or --standalone. If you want to use dynamic quorum, please "
            "remove controller.quorum.voters and specify controller.quorum.bootstrap.servers "
            "instead."
        )
    if standalone:
        if not config.is_controller:
            raise StorageToolError("You can only use --standalone on a controller.")
        listener = config.advertised_listeners[0]
        address = Address(listener.host or "localhost", listener.port)
        return (DynamicVoter(ReplicaKey(config.node_id, new_directory_id()), address),)
    if text is not None:
        return parse_voters(text)
    if config.is_controller and not config.static_voters and not options["no_initial_controllers"]:
        raise StorageToolError(
            "Because controller.quorum.voters is not set on this controller, you must specify one "
            "of the following: --standalone, --initial-controllers, or --no-initial-controllers."
        )
    return ()


def initial_controllers_text(voters: str) -> str:
    """Return `id@host:port:directory-id,...` for `id-directory-id@host:port,...`. Raises StorageToolError."""
    entries = []
    for entry in voters.split(","):
        key, at, address = entry.strip().partition("@")
        node_id, dash, directory_id = key.partition("-")
        if not (at and dash and directory_id):
            raise StorageToolError(
                f"--controller-quorum-voters: '{entry.strip()}' must be id-directory-id@host:port; "
                "'quorate storage random-uuid' makes a directory id"
            )
        entries.append(f"{node_id}@{address}:{directory_id}")
    return ",".join(entries)


def _plan_facts(plan: Any) -> dict[str, Any]:
    return {
        "clusterId": plan.cluster_id,
        "nodeId": plan.node_id,
        "metadataVersion": str(plan.metadata_version),
        "features": dict(plan.feature_levels),
        "voters": [str(voter) for voter in plan.voters],
        "formatted": [
            {
                "path": directory.path,
                "kind": directory.kind,
                "directoryId": uuid_to_text(directory.directory_id),
            }
            for directory in plan.directories
        ],
        "unreadable": list(plan.unreadable),
    }


def _bootstrap_text(plan: Any) -> str:
    """The records as Kafka's tool prints them, in Java's notation, but for the keys of credentials."""
    records = ", ".join(
        f"ApiMessageAndVersion({_java_text(record)} at version 0)" for record in plan.records
    )
    return (
        f"BootstrapMetadata(records=[{records}], metadataVersionLevel={plan.metadata_version:d}, "
        "source=format command)"
    )


def _java_text(record: Any) -> str:
    fields = ", ".join(
        f"{field.json_name}={_java_value(getattr(record, field.name))}"
        for field in type(record).schema.fields
    )
    return f"{type(record).__name__}({fields})"


def _java_value(value: object) -> str:
    if isinstance(value, bytes):  # only salts and keys of SCRAM credentials
        return "[hidden]"
    return f"'{value}'" if isinstance(value, str) else str(value)


@storage.command("info", context_settings=CONTEXT)
@_config_option
@json_option
def info(config_path: str, as_json: bool) -> int:
    """Show a node's log directories and their problems; the exit code is 1 if there are any."""
    from quorate.config.node_file import load_config

    found, metadata, problems = _inspect(load_config(config_path).directories)
    if as_json:
        facts = {"directories": found, "metadata": metadata, "problems": problems}
        click.echo(json.dumps(facts, indent=2))
        return 1 if problems else 0
    if found:
        _section("Found log directory:" if len(found) == 1 else "Found log directories:", found)
    if metadata is not None:
        shown = ", ".join(f"{key}={value}" for key, value in sorted(metadata.items()))
        click.echo("\n".join(fold([f"Found metadata: {{{shown}}}", ""])))
    if problems:
        _section("Found problem:" if len(problems) == 1 else "Found problems:", problems)
    return 1 if problems else 0


def _section(title: str, lines: Sequence[str]) -> None:
    click.echo("\n".join(fold([title, *(f"  {line}" for line in lines), ""])))


def _inspect(directories: Sequence[str]) -> tuple[list[str], dict[str, str] | None, list[str]]:
    """Returns (existing directories, facts of the first meta.properties, problems)."""
    from pathlib import Path

    from quorate.formats.errors import FormatError
    from quorate.formats.files import META_PROPERTIES
    from quorate.formats.meta_properties import (
        MetaProperties,
        decode_meta_properties,
        wrong_kind_message,
    )

    found, problems = [], []
    first: MetaProperties | None = None
    for directory in directories:
        if not os.path.isdir(directory):
            what = "is not a directory" if os.path.exists(directory) else "does not exist"
            problems.append(f"{directory} {what}")
            continue
        found.append(directory)
        path = Path(directory, META_PROPERTIES)
        if not path.exists():
            problems.append(f"{directory} is not formatted.")
            continue
        try:
            meta = decode_meta_properties(path.read_bytes(), str(path))
        except (FormatError, OSError) as error:
            problems.append(f"Error loading {path}: {str(error).removeprefix(f'{path}: ')}")
            continue
        first = first or meta
        if meta.member:
            problems.append(f"{wrong_kind_message(directory, meta)}.")
        if first.cluster_id != meta.cluster_id:
            problems.append("Mismatched cluster IDs between storage directories.")
        elif first.node_id != meta.node_id:
            problems.append("Mismatched node IDs between storage directories.")
    if first is not None and first.version == 0:
        problems.append(
            "The kafka configuration file appears to be for a cluster in KRaft mode, but the "
            "directories are formatted for legacy mode."
        )
    return found, None if first is None else _meta_facts(first), problems


def _meta_facts(meta: Any) -> dict[str, str]:
    directory_id = meta.directory_id
    facts = {
        "version": meta.version,
        "cluster.id": meta.cluster_id,
        "node.id" if meta.version else "broker.id": meta.node_id,
        "directory.id": None if directory_id is None else uuid_to_text(directory_id),
    }
    return {key: str(value) for key, value in facts.items() if value is not None}


storage.add_command(check)
storage.add_command(version_mapping)
storage.add_command(feature_dependencies)
