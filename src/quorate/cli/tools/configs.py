"""`quorate configs`: describe and alter configs, quotas and SCRAM credentials, as kafka-configs does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.cli.flat_options import flat_command, given_options, open_tool, print_json
from quorate.cli.tools.config_entities import (
    TYPES,
    ConfigEntities,
    add_names,
    check_options,
    configs_to_add,
    configs_to_delete,
    entities_of,
)

if TYPE_CHECKING:
    from quorate.client import Admin

_NO_LIST: Final = "Either --bootstrap-server or --bootstrap-controller must be specified."


@flat_command(
    "configs",
    """\
quorate configs --bootstrap-server localhost:9092 --describe --topic orders --all
quorate configs --bootstrap-server localhost:9092 --alter --topic orders --add-config retention.ms=1000
quorate configs --bootstrap-controller localhost:9093 --describe --entity-type users --json
quorate configs --bootstrap-controller localhost:9093 --alter --broker-logger 1 --add-config root=DEBUG""",
    "Client properties file.",
)
@click.option("--describe", is_flag=True, help="Show what is set for the entities.")
@click.option("--alter", is_flag=True, help="Change the configs of an entity.")
@click.option(
    "--all", "all_configs", is_flag=True, help="With --describe: every config that is in force."
)
@click.option(
    "--entity-type", multiple=True, metavar="TYPE", help=f"Type of entity: {', '.join(TYPES)}."
)
@click.option(
    "--entity-name", multiple=True, callback=add_names, metavar="NAME", help="Name of the entity."
)
@click.option(
    "--entity-default", count=True, callback=add_names, help="The default entity of the type."
)
@click.option(
    "--add-config",
    metavar="NAME=VALUE,...",
    help="Configs to set. Brackets group values with commas: a=1,b=[2,3].",
)
@click.option("--add-config-file", metavar="FILE", help="Properties file with configs to set.")
@click.option("--delete-config", multiple=True, metavar="NAME,...", help="Configs to remove.")
@click.option("--topic", metavar="NAME", help="The topic's name.")
@click.option("--client", metavar="ID", help="The client's id.")
@click.option("--client-defaults", is_flag=True, help="The defaults of all clients.")
@click.option("--user", metavar="NAME", help="The user's principal name.")
@click.option("--user-defaults", is_flag=True, help="The defaults of all users.")
@click.option("--broker", metavar="ID", help="The broker's id.")
@click.option("--broker-defaults", is_flag=True, help="The defaults of all brokers.")
@click.option("--broker-logger", metavar="ID", help="The id of the node whose loggers are meant.")
@click.option("--ip", metavar="ADDRESS", help="The IP address.")
@click.option("--ip-defaults", is_flag=True, help="The defaults of all IP addresses.")
@click.option("--group", metavar="ID", help="The group's id.")
@click.option("--client-metrics", metavar="NAME", help="The name of the client metrics resource.")
def configs(ctx: click.Context, /, **options: Any) -> int:
    """Describe and change configs, quotas and SCRAM credentials (Kafka's kafka-configs)."""
    given = given_options(ctx)
    entities = entities_of(ctx, given, options)
    check_options(given, entities)
    from quorate.client.errors import UnsupportedVersionError
    from quorate.client.results import RequestFailedError

    with open_tool(options, _NO_LIST) as admin:
        try:
            if options["describe"]:
                from quorate.cli.tools.configs_describe import describe

                describe(admin, entities, options)
            else:
                _alter(admin, entities, options)
        except (RequestFailedError, UnsupportedVersionError) as error:
            if isinstance(error, RequestFailedError) and error.code.name != "UNSUPPORTED_VERSION":
                # Kafka prints the whole command line here, passwords too.
                click.echo(f"Error while executing config command: {error}", err=True)
            else:
                click.echo(error, err=True)
            return 1
    return 0


def _alter(admin: Admin, entities: ConfigEntities, options: Mapping[str, Any]) -> None:
    from quorate.cli.tools.configs_alter import alter

    add = configs_to_add(options["add_config"], options["add_config_file"])
    delete = configs_to_delete(options["delete_config"])
    alter(admin, entities, add, delete, quiet=options["as_json"])
    if options["as_json"]:
        print_json(
            {
                "entities": [
                    {"entityType": kind, "entityName": name or None}
                    for kind, name in zip(entities.types, entities.names, strict=True)
                ],
                "set": sorted(add),
                "deleted": delete,
            }
        )
