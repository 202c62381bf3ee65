"""`quorate log-dirs`: what is in the log directories of brokers, as Kafka's kafka-log-dirs shows it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from quorate.cli.flat_options import (
    FlatToolError,
    flat_command,
    given_options,
    open_tool,
    print_json,
    require,
)

if TYPE_CHECKING:
    from quorate.client.admin.log_dirs import LogDir


@flat_command(
    "log-dirs",
    """\
quorate log-dirs --bootstrap-server localhost:9092 --describe
quorate log-dirs --bootstrap-server localhost:9092 --describe --broker-list 1,2 --topic-list t --json""",
    "Client properties file.",
)
@click.option("--describe", is_flag=True, help="Describe the log directories.")
@click.option("--topic-list", default="", metavar="NAME,...", help="Only these topics.")
@click.option("--broker-list", default="", metavar="ID,...", help="Only these brokers.")
def log_dirs(ctx: click.Context, /, **options: Any) -> int:
    """Show the log directories of brokers (Kafka's kafka-log-dirs).

    A broker that fails does not hide the others. The exit code is then 1.
    """
    from quorate.client.errors import ClientError

    given = given_options(ctx)
    if "command-config" not in given and "bootstrap-controller" not in given:
        require(given, "bootstrap-server")
    require(given, "describe")
    topics = set(filter(None, options["topic_list"].split(",")))
    wanted = _broker_ids(options["broker_list"])
    with open_tool(options) as admin:
        live = sorted(admin.describe_cluster().nodes)
        unknown = [each for each in wanted if each not in live]
        if unknown and not admin.config.controllers:
            raise FlatToolError(
                f"ERROR: The given brokers do not exist from --broker-list: {_ids(unknown)}. Current "
                f"existent brokers: {_ids(live)}"
            )
        asked = wanted or live
        if not options["as_json"]:
            click.echo("Querying brokers for log directories information")
        outcome = admin.describe_log_dirs(asked)
    failed = {each: dirs for each, dirs in outcome.items() if isinstance(dirs, ClientError)}
    found = {each: dirs for each, dirs in outcome.items() if not isinstance(dirs, ClientError)}
    if failed and not found and not options["as_json"]:
        raise next(iter(failed.values()))
    for broker, error in failed.items():
        click.echo(f"Broker {broker}: {error}", err=True)
    if options["as_json"]:
        document = _document(found, topics, with_sizes=True)
        document["brokers"] += [
            {"broker": broker, "error": str(error), "logDirs": []}
            for broker, error in failed.items()
        ]
        print_json(document)
    else:
        click.echo(f"Received log directory information from brokers {_ids(list(found))}")
        click.echo(json.dumps(_document(found, topics, with_sizes=False), separators=(",", ":")))
    return 1 if failed else 0


def _broker_ids(text: str) -> list[int]:
    """The ids of --broker-list, ascending. Raises FlatToolError."""
    found = set()
    for entry in filter(None, text.split(",")):
        try:
            found.add(int(entry))
        except ValueError:
            raise FlatToolError(
                f"--broker-list: '{entry}' is not a broker id; the list must be like 0,1,2"
            ) from None
    return sorted(found)


def _ids(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids))


def _document(
    found: Mapping[int, Sequence[LogDir]], topics: Collection[str], *, with_sizes: bool
) -> dict[str, Any]:
    """Kafka's document, version 1; `with_sizes` adds those of the volumes (KIP-827, KIP-1066)."""
    return {
        "version": 1,
        "brokers": [
            {"broker": broker, "logDirs": [_log_dir(each, topics, with_sizes) for each in dirs]}
            for broker, dirs in found.items()
        ],
    }


def _log_dir(log_dir: LogDir, topics: Collection[str], with_sizes: bool) -> dict[str, Any]:
    from quorate.cli.java_names import exception_name

    facts: dict[str, Any] = {
        "logDir": log_dir.path,
        "error": None if log_dir.error is None else exception_name(log_dir.error.code),
        "partitions": [
            {
                "partition": str(partition),
                "size": replica.size_bytes,
                "offsetLag": replica.offset_lag,
                "isFuture": replica.is_future,
            }
            for partition, replica in sorted(log_dir.replicas.items())
            if not topics or partition.topic in topics
        ],
    }
    if with_sizes:
        facts |= {
            "totalBytes": log_dir.total_bytes,
            "usableBytes": log_dir.usable_bytes,
            "cordoned": log_dir.is_cordoned,
        }
    return facts
