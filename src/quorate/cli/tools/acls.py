"""`quorate acls`: list, add and remove access control entries, as Kafka's kafka-acls does."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.base.errors import QuorateError
from quorate.base.java_address import java_address
from quorate.cli.columns import fold
from quorate.cli.flat_options import (
    FlatToolError,
    flat_command,
    given_options,
    open_tool,
    print_json,
    reason_of,
    refuse_with,
)
from quorate.cli.tools.acl_entries import (
    ALLOW,
    OPERATIONS,
    PATTERN_TYPES,
    AclRules,
    entry_text,
    filter_text,
    principal_of,
    resource_text,
    rules_of,
)
from quorate.cli.tools.steps import Steps

if TYPE_CHECKING:
    from quorate.cli.tools.acl_entries import AclEntry, AclPatternFilter
    from quorate.client import Admin
    from quorate.client.admin.acls import AclBinding
    from quorate.client.results import RequestFailedError

_ONE_LIST: Final = "One of --bootstrap-server or --bootstrap-controller must be specified"


@flat_command(
    "acls",
    """\
quorate acls --bootstrap-server localhost:9092 --list --topic orders
quorate acls --bootstrap-controller localhost:9093 --add --allow-principal User:alice \\
  --operation read --topic orders- --resource-pattern-type prefixed
quorate acls --bootstrap-server localhost:9092 --add --allow-principal User:bob --producer --topic t
quorate acls --bootstrap-server localhost:9092 --remove --topic orders --force""",
    "Client properties file.",
)
@click.option("--list", "list_acls", is_flag=True, help="List the entries of the resources.")
@click.option("--add", is_flag=True, help="Add entries.")
@click.option("--remove", is_flag=True, help="Remove entries.")
@click.option("--topic", multiple=True, metavar="NAME", help="Topic; '*' is every topic.")
@click.option("--group", multiple=True, metavar="ID", help="Group; '*' is every group.")
@click.option("--cluster", is_flag=True, help="The cluster itself.")
@click.option(
    "--transactional-id", multiple=True, metavar="ID", help="Transactional id; '*' is every one."
)
@click.option("--delegation-token", multiple=True, metavar="ID", help="Token; '*' is every one.")
@click.option("--user-principal", multiple=True, metavar="PRINCIPAL", help="A user as a resource.")
@click.option(
    "--resource-pattern-type",
    type=click.Choice(list(PATTERN_TYPES), case_sensitive=False),
    default="literal",
    help="How names match: literal or prefixed; with --list and --remove also any or match. "
    "Default: literal.",
)
@click.option(
    "--operation",
    multiple=True,
    metavar="OPERATION",
    help=f"What is allowed or denied: {', '.join(OPERATIONS)}. Default: All.",
)
@click.option("--allow-principal", multiple=True, metavar="TYPE:NAME", help="Who is allowed.")
@click.option("--deny-principal", multiple=True, metavar="TYPE:NAME", help="Who is denied.")
@click.option("--allow-host", multiple=True, metavar="HOST", help="From where; default: all hosts.")
@click.option("--deny-host", multiple=True, metavar="HOST", help="From where; default: all hosts.")
@click.option("--principal", multiple=True, metavar="TYPE:NAME", help="With --list: whose entries.")
@click.option("--producer", is_flag=True, help="The entries that a producer needs.")
@click.option("--consumer", is_flag=True, help="The entries that a consumer needs.")
@click.option("--idempotent", is_flag=True, help="With --producer: idempotence.")
@click.option("--force", is_flag=True, help="Do not ask before removing.")
def acls(ctx: click.Context, /, **options: Any) -> int:
    """List, add and remove access control entries (Kafka's kafka-acls)."""
    given = given_options(ctx)
    check_options(given, options)
    try:
        rules = rules_of(given, options)
        with open_tool(options) as admin:
            if options["add"]:
                _add(admin, rules, options)
            elif options["remove"]:
                _remove(admin, rules, options)
            else:
                _list(admin, rules, options)
    except QuorateError as error:
        # Where Kafka's tool has any error after the options were checked.
        reason = reason_of(error)
        click.echo(f"Error while executing ACL command: {reason}", err=options["as_json"])
        return 1
    return 0


def check_options(given: Collection[str], options: Mapping[str, Any]) -> None:
    """Raise UsageError for options that do not fit (`AclCommandOptions.checkArgs`)."""
    if {"bootstrap-server", "bootstrap-controller"} <= set(given):
        raise click.UsageError(
            "Only one of --bootstrap-server or --bootstrap-controller must be specified"
        )
    if not {"bootstrap-server", "bootstrap-controller", "command-config"} & set(given):
        raise click.UsageError(_ONE_LIST)
    if len({"add", "remove", "list"} & set(given)) != 1:
        raise click.UsageError("Command must include exactly one action: --list, --add, --remove. ")
    refuse_with(
        given,
        "list",
        ("producer", "consumer", "allow-host", "allow-principal", "deny-host", "deny-principal"),
    )
    for role in ("producer", "consumer"):
        refuse_with(given, role, ("operation", "deny-principal", "deny-host"))
    if "principal" in given and "list" not in given:
        raise click.UsageError("The --principal option is only available if --list is set")
    if "producer" in given and "topic" not in given:
        raise click.UsageError("With --producer you must specify a --topic")
    if "idempotent" in given and "producer" not in given:
        raise click.UsageError("The --idempotent option is only available if --producer is set")
    if "consumer" in given and (
        not {"topic", "group"} <= set(given)
        or ("producer" not in given and {"cluster", "transactional-id"} & set(given))
    ):
        raise click.UsageError(
            "With --consumer you must specify a --topic and a --group and no --cluster or "
            "--transactional-id option should be specified."
        )
    if "add" in given and options["resource_pattern_type"] not in ("literal", "prefixed"):
        raise click.UsageError(
            f"A '--resource-pattern-type' value of '{options['resource_pattern_type'].upper()}' is not "
            "valid when adding acls."
        )


# -- actions -------------------------------------------------------------------------------------
def _add(admin: Admin, rules: AclRules, options: Mapping[str, Any]) -> None:
    """Add what is missing; a resource at a time, so each line says what is done."""
    if not all(rules.values()):
        raise click.UsageError(
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."
        )
    added = []
    wanted = {p: [p.binding(entry) for entry in entries] for p, entries in rules.items()}
    texts = [_binding_text(each) for bindings in wanted.values() for each in bindings]
    steps = Steps(texts, as_json=options["as_json"], verb="added")
    with steps.reported():
        for pattern, bindings in wanted.items():
            added += _add_missing(admin, pattern, bindings, steps, quiet=options["as_json"])
    if options["as_json"]:
        print_json({"added": list(map(_json, added))})


def _add_missing(
    admin: Admin,
    pattern: AclPatternFilter,
    bindings: Sequence[AclBinding],
    steps: Steps,
    *,
    quiet: bool,
) -> list[AclBinding]:
    """Add those of the entries of a resource that are not there; what was added."""
    existing = set(admin.describe_acls(pattern.all_entries()))
    missing = [binding for binding in bindings if binding not in existing]
    _warn_of_hosts(bindings)
    for binding in bindings:
        if binding in existing:
            steps.skip(_binding_text(binding))
            if not quiet:
                click.echo(f"Acl {_binding_text(binding)} already exists.")
    if not missing:
        return []
    if not quiet:
        _print_entries(f"Adding ACLs for resource `{resource_text(missing[0])}`: ", missing, " ")
    with steps.in_parts(_binding_text):
        outcome = admin.create_acls(missing)
    _note(steps, zip(map(_binding_text, missing), outcome, strict=True))
    return missing


def _note(
    steps: Steps, outcome: Iterable[tuple[str, tuple[AclBinding, ...] | RequestFailedError | None]]
) -> None:
    """Note the outcome of each entry or filter. Raises the first error."""
    from quorate.client.results import RequestFailedError

    errors = []
    for step, each in outcome:
        if isinstance(each, RequestFailedError):
            steps.refused(step, each.text)
            errors.append(each)
        else:
            steps.done(step)
    if errors:
        raise errors[0]


def _warn_of_hosts(bindings: Iterable[AclBinding]) -> None:
    """Kafka's tool writes the host as it is given; controllers compare it with Java's form."""
    short = {each.host for each in bindings if each.permission == ALLOW and ":" in each.host}
    for host in sorted(short):
        form = java_address(host)
        if "/" not in host and form != host.partition("%")[0]:
            click.echo(
                f"Warning: the entry for host {host} allows nothing: controllers compare {form}. "
                f"Add it with --allow-host {form}, and remove this one.",
                err=True,
            )


def _remove(admin: Admin, rules: AclRules, options: Mapping[str, Any]) -> None:
    removed: list[AclBinding] = []
    filters = {
        pattern: [pattern.filter(entry) for entry in entries] or [pattern.all_entries()]
        for pattern, entries in rules.items()
    }
    texts = [filter_text(each) for wanted in filters.values() for each in wanted]
    steps = Steps(texts, as_json=options["as_json"], verb="removed")
    with steps.reported():
        for pattern, wanted in filters.items():
            if not _confirmed(pattern, rules[pattern], options):
                for each in wanted:
                    steps.skip(filter_text(each))
                continue
            with steps.in_parts(filter_text):
                outcomes = admin.delete_acls(wanted)
            _note(steps, zip(map(filter_text, wanted), outcomes, strict=True))
            removed += [each for found in outcomes for each in _bindings(found)]
    if options["as_json"]:
        print_json({"removed": list(map(_json, dict.fromkeys(removed)))})


def _bindings(outcome: tuple[AclBinding, ...] | RequestFailedError) -> tuple[AclBinding, ...]:
    return outcome if isinstance(outcome, tuple) else ()


def _confirmed(
    pattern: AclPatternFilter, entries: Iterable[AclEntry], options: Mapping[str, Any]
) -> bool:
    if options["force"]:
        return True
    lines = [f"\t{entry_text(*entry)}" for entry in entries]
    if lines:
        question = "Are you sure you want to remove ACLs: \n " + "\n".join(lines) + "\n from"
    else:
        question = "Are you sure you want to delete all ACLs for"
    click.echo(f"{question} resource filter `{pattern}`? (y/n)", err=options["as_json"])
    answer = sys.stdin.readline()
    if not answer:
        raise FlatToolError(
            f"no entry of `{pattern}` was removed: the input ended without an answer; use --force"
        )
    return answer.strip().lower() == "y"


def _list(admin: Admin, rules: AclRules, options: Mapping[str, Any]) -> None:
    from quorate.client.admin.acls import AclFilter

    principals = [principal_of(text) for text in options["principal"]]
    filters = [pattern.all_entries() for pattern in rules] or [AclFilter()]
    found = dict.fromkeys(each for one in filters for each in admin.describe_acls(one))
    if options["as_json"]:
        shown = [each for each in found if not principals or each.principal in principals]
        print_json(list(map(_json, shown)))
        return
    if not principals:
        _print_resources(found)
    for principal in dict.fromkeys(principals):
        click.echo(f"ACLs for principal `{principal}`")
        _print_resources(each for each in found if each.principal == principal)


def _print_resources(bindings: Iterable[AclBinding]) -> None:
    by_resource: dict[str, list[AclBinding]] = {}
    for binding in bindings:
        by_resource.setdefault(resource_text(binding), []).append(binding)
    for resource, entries in by_resource.items():
        _print_entries(f"Current ACLs for resource `{resource}`:", entries)


def _print_entries(head: str, bindings: Iterable[AclBinding], indent: str = "") -> None:
    lines = [f"{indent}\t{entry_text(*each[3:])}" for each in bindings]
    lines[1:] = [line.removeprefix(indent) for line in lines[1:]]
    click.echo("\n".join(fold([head, *lines])) + "\n")


def _binding_text(binding: AclBinding) -> str:
    return f"(pattern={resource_text(binding)}, entry={entry_text(*binding[3:])})"


def _json(binding: AclBinding) -> dict[str, Any]:
    from quorate.cli.tools.acl_entries import names_of

    return names_of(binding)
