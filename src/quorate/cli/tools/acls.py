"""`quorate acls`: list, add and remove access control entries, as Kafka's kafka-acls does."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.base.java_address import java_address
from quorate.cli.flat_options import (
    flat_command,
    given_options,
    open_tool,
    print_json,
    refuse_with,
)
from quorate.cli.tools.acl_entries import (
    ALLOW,
    OPERATIONS,
    PATTERN_TYPES,
    AclRules,
    entry_text,
    principal_of,
    resource_text,
    rules_of,
)

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
    from quorate.client.results import RequestFailedError

    given = given_options(ctx)
    check_options(given, options)
    rules = rules_of(given, options)
    try:
        with open_tool(options, _ONE_LIST) as admin:
            if options["add"]:
                _add(admin, rules, options)
            elif options["remove"]:
                _remove(admin, rules, options)
            else:
                _list(admin, rules, options)
    except RequestFailedError as error:
        click.echo(f"Error while executing ACL command: {error.reason}", err=options["as_json"])
        return 1
    return 0


def check_options(given: Collection[str], options: Mapping[str, Any]) -> None:
    """Raise UsageError for options that do not fit (`AclCommandOptions.checkArgs`)."""
    if {"bootstrap-server", "bootstrap-controller"} <= set(given):
        raise click.UsageError(
            "Only one of --bootstrap-server or --bootstrap-controller must be specified"
        )
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
    for pattern, entries in rules.items():
        existing = set(admin.describe_acls(pattern.all_entries()))
        wanted = [pattern.binding(entry) for entry in entries]
        missing = [binding for binding in wanted if binding not in existing]
        _warn_of_hosts(wanted)
        if not options["as_json"]:
            for binding in wanted:
                if binding in existing:
                    click.echo(f"Acl {_binding_text(binding)} already exists.")
            if missing:
                _print_entries(
                    f"Adding ACLs for resource `{resource_text(missing[0])}`: ", missing, " "
                )
        outcome = admin.create_acls(missing) if missing else ()
        pairs = list(zip(missing, outcome, strict=True))
        added += [binding for binding, error in pairs if error is None]
        _check("Added", added, [error for _, error in pairs if error is not None])
    if options["as_json"]:
        print_json({"added": list(map(_json, added))})


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


def _check(what: str, done: Sequence[AclBinding], errors: Sequence[RequestFailedError]) -> None:
    """Raise the first error; before that say what was done in spite of it."""
    if not errors:
        return
    for binding in done:
        click.echo(f"{what}: {_binding_text(binding)}", err=True)
    raise errors[0]


def _remove(admin: Admin, rules: AclRules, options: Mapping[str, Any]) -> None:
    from quorate.client.results import RequestFailedError

    removed: list[AclBinding] = []
    for pattern, entries in rules.items():
        if not _confirmed(pattern, entries, options):
            continue
        filters = [pattern.filter(entry) for entry in entries] or [pattern.all_entries()]
        outcomes = admin.delete_acls(filters)
        errors = [each for each in outcomes if isinstance(each, RequestFailedError)]
        for each in outcomes:
            removed += () if isinstance(each, RequestFailedError) else each
        _check("Removed", removed, errors)
    if options["as_json"]:
        print_json({"removed": list(map(_json, dict.fromkeys(removed)))})


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
    return sys.stdin.readline().strip().lower() == "y"


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
    lines = [f"\t{entry_text(*each[3:])}" for each in bindings]
    click.echo(f"{head}\n{indent}" + "\n".join(lines) + "\n")


def _binding_text(binding: AclBinding) -> str:
    return f"(pattern={resource_text(binding)}, entry={entry_text(*binding[3:])})"


def _json(binding: AclBinding) -> dict[str, Any]:
    from quorate.cli.tools.acl_entries import names_of

    return names_of(binding)
