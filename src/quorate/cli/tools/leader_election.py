"""`quorate leader-election`: elect partition leaders, as Kafka's kafka-leader-election does."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.cli.columns import fold
from quorate.cli.flat_options import (
    FlatToolError,
    JsonFileError,
    flat_command,
    given_options,
    json_int,
    open_tool,
    print_json,
    read_json_file,
    reason_of,
    refuse_with,
)
from quorate.cli.options import INT32
from quorate.cli.partly_done import parts_reported

if TYPE_CHECKING:
    from quorate.client.admin.reassignments import PartitionName
    from quorate.client.errors import ClientError
    from quorate.client.results import RequestFailedError

_TIMEOUT_S: Final = 30
"""Of Kafka's tool, where its properties file sets none."""
_WHICH: Final = ("topic", "all-topic-partitions", "path-to-json-file")


@flat_command(
    "leader-election",
    """\
quorate leader-election --bootstrap-server localhost:9092 --election-type preferred --all-topic-partitions
quorate leader-election --bootstrap-controller localhost:9093 --election-type unclean --topic t \\
  --partition 0""",
    "Client properties file.",
)
@click.option(
    "--admin.config", "admin_config", metavar="FILE", help="Deprecated: --command-config."
)
@click.option(
    "--election-type",
    type=click.Choice(["preferred", "unclean"], case_sensitive=False),
    help="Elect the first replica, or any replica where there is no leader.",
)
@click.option("--topic", metavar="NAME", help="The topic; with --partition.")
@click.option("--partition", type=INT32, metavar="INDEX", help="The partition of --topic.")
@click.option("--all-topic-partitions", is_flag=True, help="All partitions that need it.")
@click.option(
    "--path-to-json-file",
    metavar="FILE",
    help='Partitions as {"partitions": [{"topic": "t", "partition": 1}]}.',
)
def leader_election(ctx: click.Context, /, **options: Any) -> int:
    """Elect partition leaders (Kafka's kafka-leader-election)."""
    from quorate.client.admin.elections import ElectionType
    from quorate.client.errors import ClientError

    given = given_options(ctx)
    check_options(given)
    partitions = _partitions(options)
    if options["admin_config"] is not None:
        click.echo(
            "Option --admin.config has been deprecated and will be removed in a future version. Use "
            "--command-config instead.",
            err=options["as_json"],
        )
        options["command_config"] = options["admin_config"]
    if options["timeout"] is None and options["command_config"] is None:
        options["timeout"] = _TIMEOUT_S
    kind = ElectionType[options["election_type"].upper()]
    with open_tool(options) as admin:
        try:
            with parts_reported(as_json=options["as_json"]):
                outcome = admin.elect_leaders(kind, partitions)
        except ClientError as error:
            message = _known_failure(error)
            if message is None:
                raise
            click.echo(message, err=options["as_json"])
            raise FlatToolError(f"{message}: {reason_of(error)}") from None
    if options["as_json"]:
        print_json([_json(each, error) for each, error in outcome.items()])
    return _report(kind.name, outcome, quiet=options["as_json"])


def _known_failure(error: ClientError) -> str | None:
    """What Kafka's tool prints on stdout besides the error; None for an error of another kind."""
    from quorate.client import NotLoadedError
    from quorate.client.errors import ConnectError, NoResponseError, SilentNodeError
    from quorate.client.results import RequestFailedError

    if isinstance(error, RequestFailedError):
        denied = error.code.name == "CLUSTER_AUTHORIZATION_FAILED"
        return "Not authorized to perform leader election" if denied else None
    late = isinstance(error, ConnectError | NoResponseError | SilentNodeError | NotLoadedError)
    return "Timeout waiting for election results" if late else None


def check_options(given: Collection[str]) -> None:
    """Raise FlatToolError for options that do not fit (`LeaderElectionCommandOptions.validate`)."""
    missing = (
        []
        if {"bootstrap-server", "bootstrap-controller", "command-config"} & set(given)
        else ["bootstrap-server"]
    )
    if "election-type" not in given:
        missing.append("election-type")
    if missing:
        raise FlatToolError(f"Missing required option(s): {', '.join(missing)}")
    refuse_with(given, "admin.config", ("command-config",))
    if sum(name in given for name in _WHICH) != 1:
        raise FlatToolError(
            f"One and only one of the following options is required: {', '.join(_WHICH)}"
        )
    if "topic" in given and "partition" not in given:
        raise FlatToolError("Missing required option(s): partition")
    if "partition" in given and "topic" not in given:
        raise FlatToolError("Option partition is only allowed if topic is used")


def _partitions(options: Mapping[str, Any]) -> list[PartitionName] | None:
    from quorate.client.admin.reassignments import PartitionName

    if options["path_to_json_file"] is not None:
        return partitions_of_file(options["path_to_json_file"])
    if options["all_topic_partitions"]:
        return None
    return [PartitionName(options["topic"], options["partition"])]


def partitions_of_file(path: str) -> list[PartitionName]:
    """The partitions that a JSON file lists. Raises JsonFileError."""
    from quorate.client.admin.reassignments import PartitionName

    data = read_json_file(path)
    if not isinstance(data, dict) or not isinstance(data.get("partitions"), list):
        raise JsonFileError(f'{path}: Replica election data is missing "partitions" field')
    found = []
    for number, entry in enumerate(data["partitions"]):
        match entry:
            case {"topic": str(topic), "partition": index}:
                place = f'{path}: partitions[{number}]: "partition"'
                found.append(PartitionName(topic, json_int(index, place)))
            case _:
                raise JsonFileError(
                    f'{path}: partitions[{number}] must be {{"topic": "NAME", "partition": INDEX}}'
                )
    twice = [each for n, each in enumerate(found) if each in found[:n]]
    if twice:
        shown = ", ".join(map(str, dict.fromkeys(twice)))
        raise JsonFileError(
            f"{path}: Replica election data contains duplicate partitions: [{shown}]"
        )
    return found


def _report(
    kind: str, outcome: Mapping[PartitionName, RequestFailedError | None], *, quiet: bool
) -> int:
    """Print what was elected. Raises FlatToolError if an election failed."""
    from quorate.cli.java_names import exception_name

    done = [str(each) for each, error in outcome.items() if error is None]
    failed = {each: error for each, error in outcome.items() if error is not None}
    noop = [each for each, error in failed.items() if error.code.name == "ELECTION_NOT_NEEDED"]
    for each in noop:
        del failed[each]
    if not quiet:
        lines = []
        if done:
            lines.append(
                f"Successfully completed leader election ({kind}) for partitions {', '.join(done)}"
            )
        if noop:
            shown = ", ".join(map(str, noop))
            lines.append(f"Valid replica already elected for partitions {shown}")
        for each, error in failed.items():
            lines.append(
                f"Error completing leader election ({kind}) for partition: {each}: "
                f"{exception_name(error.code)}: {error.text}"
            )
        for line in fold(lines):
            click.echo(line)
    if failed:
        raise FlatToolError(f"{len(failed)} replica(s) could not be elected")
    return 0


def _json(partition: PartitionName, error: RequestFailedError | None) -> dict[str, Any]:
    noop = error is not None and error.code.name == "ELECTION_NOT_NEEDED"
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "result": "elected" if error is None else "not needed" if noop else "failed",
        "error": None if error is None or noop else error.text,
    }
