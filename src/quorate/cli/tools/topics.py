"""`quorate topics`: list, describe, create, alter and delete topics, as Kafka's kafka-topics does."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.base.errors import QuorateError
from quorate.cli.flat_options import (
    FlatToolError,
    JsonFileError,
    flat_command,
    given_options,
    json_int,
    open_tool,
    print_json,
    reason_of,
    refuse_with,
    require,
)
from quorate.cli.options import INT32
from quorate.cli.partly_done import parts_reported
from quorate.cli.topic_filter import matching, topic_pattern, topic_starts

if TYPE_CHECKING:
    from quorate.client import Admin, RequestFailedError
    from quorate.client.admin.topics import TopicDescription

ACTIONS: Final = ("list", "create", "delete", "alter", "describe")
_CONFIGS: Final = " (To alter topic configurations, the kafka-configs tool can be used.)"
_REPORTS: Final = (
    "under-replicated-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
    "unavailable-partitions",
)
_DOTS: Final = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') "
    "could collide. To avoid issues it is best to use either, but not both."
)
_MAX_FACTOR: Final = (1 << 15) - 1


class TopicToolError(FlatToolError):
    """The cluster refused the command; Kafka's tool prints this on stdout."""


@flat_command(
    "topics",
    """\
quorate topics --bootstrap-server localhost:9092 --list
quorate topics --bootstrap-controller localhost:9093 --describe --topic 'orders.*' --json
quorate topics --bootstrap-server localhost:9092 --create --topic orders --partitions 6
quorate topics --bootstrap-server localhost:9092 --describe --under-replicated-partitions""",
    "Client properties file.",
)
@click.option("--list", "list_topics", is_flag=True, help="List all available topics.")
@click.option("--create", is_flag=True, help="Create a new topic.")
@click.option("--delete", is_flag=True, help="Delete the topics that match --topic.")
@click.option(
    "--alter", is_flag=True, help="Increase the number of partitions, or assign new ones."
)
@click.option("--describe", is_flag=True, help="Show details of the topics.")
@click.option(
    "--topic",
    multiple=True,
    metavar="NAME",
    help="The topic. A regular expression, except with --create. May be repeated.",
)
@click.option("--topic-id", metavar="ID", help="The id of the topic to describe.")
@click.option(
    "--config",
    multiple=True,
    metavar="NAME=VALUE",
    help="A config of the new topic. May be repeated.",
)
@click.option("--delete-config", multiple=True, metavar="NAME", help="No longer supported.")
@click.option("--partitions", type=INT32, metavar="COUNT", help="Partitions of the topic.")
@click.option("--replication-factor", type=INT32, metavar="COUNT", help="Replicas of a partition.")
@click.option(
    "--replica-assignment",
    metavar="ID:ID,ID:ID,...",
    help="The brokers of each partition, first the preferred leader.",
)
@click.option(
    "--under-replicated-partitions",
    is_flag=True,
    help="With --describe: partitions with replicas that are not in sync.",
)
@click.option(
    "--unavailable-partitions",
    is_flag=True,
    help="With --describe: partitions whose leader is not available.",
)
@click.option(
    "--under-min-isr-partitions",
    is_flag=True,
    help="With --describe: partitions with fewer replicas in sync than the minimum.",
)
@click.option(
    "--at-min-isr-partitions",
    is_flag=True,
    help="With --describe: partitions with just the minimum of replicas in sync.",
)
@click.option(
    "--topics-with-overrides", is_flag=True, help="With --describe: topics with own configs."
)
@click.option("--if-exists", is_flag=True, help="No error if the topic does not exist.")
@click.option("--if-not-exists", is_flag=True, help="No error if the topic exists.")
@click.option("--exclude-internal", is_flag=True, help="Leave out internal topics.")
@click.option(
    "--partition-size-limit-per-response",
    type=INT32,
    default=2000,
    metavar="COUNT",
    help="Most partitions of one response. Default: 2000.",
)
def topics(ctx: click.Context, /, **options: Any) -> int:
    """List, describe, create, alter and delete topics (Kafka's kafka-topics)."""
    given = given_options(ctx)
    action = check_options(given, options)
    with open_tool(options, "--bootstrap-server must be specified") as admin:
        try:
            with parts_reported(as_json=options["as_json"]):
                _PERFORM[action](admin, options)
        except QuorateError as error:
            # Where Kafka's tool has any error of its client.
            reason = reason_of(error)
            click.echo(f"Error while executing topic command : {reason}", err=options["as_json"])
            return 1
    return 0


def check_options(given: Collection[str], options: Mapping[str, Any]) -> str:
    """The action. Raises UsageError or FlatToolError (`TopicCommandOptions.checkArgs`)."""
    actions = [name for name in ACTIONS if name in given]
    if len(actions) != 1:
        raise click.UsageError(
            "Command must include exactly one action: --list, --describe, --create, --alter or "
            "--delete"
        )
    [action] = actions
    if "delete-config" in given:
        click.echo(
            "delete-config option is no longer supported and deprecated since version 4.0. The config "
            "will be fully removed in future releases.",
            err=True,
        )
    if action == "describe" and "if-exists" in given:
        if not {"topic", "topic-id"} & set(given):
            raise click.UsageError("--topic or --topic-id is required to describe a topic")
        if {"topic", "topic-id"} <= set(given):
            click.echo(
                "Only topic id will be used when both --topic and --topic-id are specified and "
                "topicId is not Uuid.ZERO_UUID",
                err=options["as_json"],
            )
    if action not in ("list", "describe"):
        require(given, "topic")
    if action == "alter":
        if "config" in given:
            raise click.UsageError(
                'Option combination "[bootstrap-server],[config]" can\'t be used with option '
                f'"[alter]"{_CONFIGS}'
            )
        require(given, "partitions")
    if action == "create" and len(options["topic"]) > 1:
        raise click.UsageError(
            "Found multiple arguments for option topic, but you asked for only one"
        )
    _refuse_combinations(given)
    return action


def _refuse_combinations(given: Collection[str]) -> None:
    """Refuse what `TopicCommandOptions.checkInvalidArgs` refuses."""

    def only_with(name: str, *actions: str, but_not: Sequence[str] = ()) -> None:
        refuse_with(given, name, [a for a in ACTIONS if a not in actions] + list(but_not))

    only_with("config", "alter", "create")
    only_with("partitions", "alter", "create")
    only_with("replication-factor", "create")
    only_with("replica-assignment", "alter", "create")
    if "create" in given:
        refuse_with(given, "replica-assignment", ("partitions", "replication-factor"))
    for report in _REPORTS:
        only_with(report, "describe", but_not=["topics-with-overrides"])
    only_with("topics-with-overrides", "describe", but_not=_REPORTS)
    only_with("if-exists", "alter", "delete", "describe")
    only_with("if-not-exists", "create")
    only_with("exclude-internal", "list", "describe")


# -- actions -------------------------------------------------------------------------------------
def _described(admin: Admin, options: Mapping[str, Any]) -> dict[str, TopicDescription]:
    """The topics that --topic and --exclude-internal choose, in order of their names."""
    from quorate.client.admin.topics import TopicDescription

    for text in options["topic"]:
        topic_pattern(text)  # a pattern that is invalid is refused before anything is asked
    page = options["partition_size_limit_per_response"]
    starts = topic_starts(options["topic"])
    found = dict(admin.describe_topics([each.text for each in starts if each.is_whole], page))
    for start in starts:
        if not start.is_whole:
            found |= admin.describe_topics(None, page, start.text)
    known = {name: each for name, each in found.items() if isinstance(each, TopicDescription)}
    return {
        name: known[name]
        for name in matching(sorted(known), options["topic"])
        if not (options["exclude_internal"] and known[name].is_internal)
    }


def _ensure_found(found: Collection[Any], options: Mapping[str, Any]) -> None:
    if not found and any(options["topic"]) and not options["if_exists"]:
        wanted = ",".join(options["topic"])
        raise TopicToolError(f"Topic '{wanted}' does not exist as expected")


def _list(admin: Admin, options: Mapping[str, Any]) -> None:
    names = list(_described(admin, options))
    if options["as_json"]:
        print_json(names)
    else:
        click.echo("\n".join(names))


def _describe(admin: Admin, options: Mapping[str, Any]) -> None:
    from quorate.base.ids import ZERO_UUID, uuid_from_text
    from quorate.cli.tools.topics_describe import describe

    text = options["topic_id"]
    topic_id = ZERO_UUID
    if text is not None:
        try:
            topic_id = uuid_from_text(text)
        except QuorateError as error:
            raise TopicToolError(str(error)) from None
    if topic_id != ZERO_UUID:
        every = _described(admin, {**options, "topic": ()})
        found = {name: each for name, each in every.items() if each.topic_id == topic_id}
        if not found and not options["if_exists"]:
            raise TopicToolError(f"TopicId '{text}' does not exist as expected")
    else:
        found = _described(admin, options)
        _ensure_found(found, options)
    describe(admin, list(found.values()), options)


def _create(admin: Admin, options: Mapping[str, Any]) -> None:
    from quorate.client.admin.topics import TopicCreation
    from quorate.client.results import RequestFailedError

    [name] = options["topic"]
    configs = parse_configs(options["config"])
    assignments = parse_assignment(options["replica_assignment"] or "")
    if "." in name or "_" in name:
        click.echo(_DOTS, err=options["as_json"])
    factor, partitions = options["replication_factor"], options["partitions"]
    if factor is not None and not 1 <= factor <= _MAX_FACTOR:
        raise TopicToolError(
            f"The replication factor must be between 1 and {_MAX_FACTOR} inclusive"
        )
    if partitions is not None and partitions < 1:
        raise TopicToolError("The partitions must be greater than 0")
    topic = TopicCreation(
        name,
        -1 if partitions is None else partitions,
        -1 if factor is None else factor,
        dict(enumerate(assignments)),
        configs,
    )
    outcome = admin.create_topics([topic])[name]
    if isinstance(outcome, RequestFailedError):
        if outcome.code.name == "TOPIC_ALREADY_EXISTS" and options["if_not_exists"]:
            if outcome.note:
                click.echo(f"Note: {outcome.note}", err=True)
            if options["as_json"]:
                print_json({"topic": name, "created": False})
            return
        raise TopicToolError(outcome.text)
    if options["as_json"]:
        from quorate.base.ids import uuid_to_text

        print_json(
            {
                "topic": name,
                "topicId": uuid_to_text(outcome.topic_id),
                "partitionCount": outcome.partitions,
                "replicationFactor": outcome.replication_factor,
            }
        )
    else:
        click.echo(f"Created topic {name}.")


def _alter(admin: Admin, options: Mapping[str, Any]) -> None:
    from quorate.client.admin.topics import NewPartitions

    assignments = parse_assignment(options["replica_assignment"] or "")
    found = _described(admin, options)
    _ensure_found(found, options)
    changes = {
        name: NewPartitions(
            options["partitions"], assignments[len(topic.partitions) :] if assignments else None
        )
        for name, topic in found.items()
    }
    _finish("Altered", admin.create_partitions(changes) if changes else {}, options)


def _delete(admin: Admin, options: Mapping[str, Any]) -> None:
    found = _described(admin, options)
    _ensure_found(found, options)
    _finish("Deleted", admin.delete_topics(found) if found else {}, options)


def _finish(
    what: str, outcome: Mapping[str, RequestFailedError | None], options: Mapping[str, Any]
) -> None:
    """Raise TopicToolError with the first error; of several topics say which are done."""
    failed = {name: error for name, error in outcome.items() if error is not None}
    done = [name for name in outcome if name not in failed]
    if options["as_json"]:
        print_json([{"topic": n, "error": e and e.text} for n, e in outcome.items()])
    if not failed:
        return
    if len(outcome) > 1:
        click.echo(f"{what}: {', '.join(done) or 'no topic'}", err=True)
        for name, error in failed.items():
            click.echo(f"Not {what.lower()}: {name}: {error.text}", err=True)
    raise TopicToolError(next(iter(failed.values())).text)


_PERFORM: Final = {
    "list": _list,
    "describe": _describe,
    "create": _create,
    "alter": _alter,
    "delete": _delete,
}


# -- values of options ---------------------------------------------------------------------------
def parse_configs(entries: Sequence[str]) -> dict[str, str | None]:
    """`NAME=VALUE` entries. Raises TopicToolError."""
    from quorate.config_definitions.java_text import split_parts

    found: dict[str, str | None] = {}
    for entry in entries:
        parts = split_parts([part.strip() for part in entry.split("=")])
        if len(parts) != 2:
            raise TopicToolError(
                "requirement failed: Invalid topic config: all configs to be added must be in the "
                'format "key=val".'
            )
        found[parts[0]] = parts[1]
    return found


def parse_assignment(text: str) -> list[list[int]]:
    """The brokers of each partition, of `1:2,2:3`. Raises TopicToolError."""
    from quorate.config_definitions.java_text import split_parts

    found: list[list[int]] = []
    for index, entry in enumerate(split_parts(text.split(",")) if text else ()):
        try:
            brokers = [json_int(int(each), entry) for each in split_parts(entry.split(":"))]
        except (ValueError, JsonFileError):
            raise TopicToolError(
                f"--replica-assignment: '{entry}' of partition {index} must be broker ids, 1:2:3"
            ) from None
        twice = dict.fromkeys(each for each in brokers if brokers.count(each) > 1)
        if twice:
            raise TopicToolError(
                "Partition replica lists may not contain duplicate entries: "
                + ",".join(map(str, twice))
            )
        if found and len(brokers) != len(found[0]):
            raise TopicToolError(f"Partition {index} has different replication factor: {brokers}")
        found.append(brokers)
    return found
