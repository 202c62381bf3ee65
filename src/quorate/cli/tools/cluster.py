"""`quorate cluster`: the cluster's id, its nodes and their registrations, as Kafka's kafka-cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.cli.columns import fit, fold, table_lines
from quorate.cli.flat_options import FlatToolError, print_json
from quorate.cli.options import (
    CONTEXT,
    INT32,
    MAX_SECONDS,
    NumberRange,
    OrderedGroup,
    bootstrap_options,
    json_option,
    note_wait,
    open_admin,
    timeout_option,
)

if TYPE_CHECKING:
    from quorate.client import Admin, ClusterDescription
    from quorate.client.admin.cluster import ApiRange, NodeVersions
    from quorate.metadata.image import Image

_NO_FENCED = "The option --include-fenced-brokers is only supported with --bootstrap-server option"


@click.group(
    cls=OrderedGroup,
    context_settings=CONTEXT,
    epilog="""\b
Examples:
  quorate cluster cluster-id --bootstrap-server localhost:9092
  quorate cluster list-endpoints --bootstrap-controller localhost:9093 --json
  quorate cluster registrations --bootstrap-server localhost:9092
  quorate cluster problems --bootstrap-controller localhost:9093
  quorate cluster events --since 1h --failed controller1:9464 controller2:9464 controller3:9464
  quorate cluster unregister --bootstrap-controller localhost:9093 --id 3
  quorate cluster api-versions --bootstrap-controller localhost:9093""",
)
def cluster() -> None:
    """Show the cluster's id, nodes and APIs; remove registrations (Kafka's kafka-cluster)."""


def _connected(command: Any) -> Any:
    """Add the options of a connection, `--timeout` and `--json`."""
    for decorate in (
        json_option,
        timeout_option,
        click.option("--config", metavar="FILE", help="Deprecated: --command-config."),
        click.option("--command-config", "-c", metavar="FILE", help="Client properties file."),
    ):
        command = decorate(command)
    return bootstrap_options(command, "-b", "-C")


def _open(options: dict[str, Any], on_wait: Callable[[str], None] = note_wait) -> Admin:
    """Open a client. Raises UsageError or FlatToolError for contradictory options."""
    if options["config"] is not None:
        if options["command_config"] is not None:
            raise click.UsageError("--config and --command-config cannot be specified together.")
        click.echo(
            "Option --config has been deprecated and will be removed in a future version. Use "
            "--command-config instead.",
            err=options["as_json"],
        )
        options["command_config"] = options["config"]
    return open_admin(options, on_wait)[0]


@cluster.command("cluster-id", context_settings=CONTEXT)
@_connected
def cluster_id(**options: Any) -> None:
    """Show the cluster's id."""
    with _open(options) as admin:
        found = admin.describe_cluster().cluster_id
    if options["as_json"]:
        print_json({"clusterId": found})
    else:
        click.echo(f"Cluster ID: {found}")


@cluster.command("unregister", context_settings=CONTEXT)
@click.option("--id", "-i", "node_id", type=INT32, required=True, help="The broker's id.")
@_connected
def unregister(node_id: int, **options: Any) -> None:
    """Remove the registration of a broker that is gone for good.

    As in Kafka, the exit code is 0 also where the cluster does not support the request: the text says
    so, and --json has "unregistered": false.
    """
    with _open(options) as admin:
        _remove(lambda: admin.unregister_broker(node_id), "broker", node_id, options)


@cluster.command("unregister-controller", context_settings=CONTEXT)
@click.option("--id", "-i", "node_id", type=INT32, required=True, help="The controller's id.")
@_connected
def unregister_controller(node_id: int, **options: Any) -> None:
    """Remove the registration of a controller that is gone for good.

    It needs metadata.version 4.4-IV2. As in Kafka, the exit code is 0 also where the cluster does not
    support the request: the text says so, and --json has "unregistered": false.
    """
    with _open(options) as admin:
        _remove(lambda: admin.unregister_controller(node_id), "controller", node_id, options)


def _remove(send: Callable[[], None], kind: str, node_id: int, options: Mapping[str, Any]) -> None:
    """Remove a registration. A cluster without the API is reported with success, as in Kafka."""
    from quorate.client.errors import UnsupportedVersionError
    from quorate.client.results import RequestFailedError

    is_supported = True
    try:
        send()
    except UnsupportedVersionError:
        is_supported = False
    except RequestFailedError as error:
        if error.code.name != "UNSUPPORTED_VERSION":
            raise FlatToolError(error.text) from None
        is_supported = False
    if options["as_json"]:
        print_json({"id": node_id, "unregistered": is_supported})
    elif is_supported:
        click.echo(f"{kind.capitalize()} {node_id} is no longer registered.")
    else:
        click.echo(f"The target cluster does not support the {kind} unregistration API.")


@cluster.command("list-endpoints", context_settings=CONTEXT)
@click.option("--include-fenced-brokers", is_flag=True, help="Fenced brokers too.")
@_connected
def list_endpoints(include_fenced_brokers: bool, **options: Any) -> None:
    """List the nodes and their addresses."""
    from quorate.client.errors import UnsupportedVersionError

    with _open(options) as admin:
        direct = admin.config.controllers
        if direct and include_fenced_brokers:
            raise FlatToolError(_NO_FENCED)
        try:
            found = admin.describe_cluster(include_fenced_brokers)
        except UnsupportedVersionError as error:
            click.echo(error, err=options["as_json"])
            return
    kind = "controller" if direct else "broker"
    if options["as_json"]:
        print_json([_endpoint(found, node_id, kind) for node_id in sorted(found.nodes)])
    else:
        _print_endpoints(found, kind)


def _endpoint(found: ClusterDescription, node_id: int, kind: str) -> dict[str, Any]:
    node = found.nodes[node_id]
    state = {} if kind == "controller" else {"fenced": node.is_fenced}
    return {
        "id": node_id,
        "host": node.address.host,
        "port": node.address.port,
        "rack": node.rack,
        **state,
        "endpointType": kind,
    }


_ENDPOINT_COLUMNS: Final = ("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE")


def _print_endpoints(found: ClusterDescription, kind: str) -> None:
    with_state = kind == "broker"
    names = [n for n in _ENDPOINT_COLUMNS if with_state or n != "STATE"]
    hosts = max((len(node.address.host) for node in found.nodes.values()), default=100)
    racks = max((len(node.rack) for node in found.nodes.values() if node.rack), default=10)
    widths = {"ID": 10, "HOST": hosts, "PORT": 10, "RACK": racks, "STATE": 10, "ENDPOINT_TYPE": 15}
    rows = []
    for node_id, node in found.nodes.items():
        state = "fenced" if node.is_fenced else "unfenced"
        host, port = node.address
        row = (str(node_id), host, str(port), node.rack or "null", state, kind)
        cells = dict(zip(_ENDPOINT_COLUMNS, row, strict=True))
        rows.append([cells[name] for name in names])
    lines = [
        " ".join(f"{cell:<{widths[name]}}" for name, cell in zip(names, row, strict=True))
        for row in (names, *rows)
    ]
    for line in fit(lines, names, rows):
        click.echo(line)


@cluster.command("registrations", context_settings=CONTEXT)
@_connected
def list_registrations(**options: Any) -> None:
    """List the registered brokers and controllers, and mark those that are gone.

    With --bootstrap-server the brokers. With --bootstrap-controller the controllers, and the brokers if
    the user may read the metadata log (ClusterAction on Cluster). A silent node does not fetch from the
    quorum, and may come back. A ghost is gone, and holds no replicas; the last column removes it. An
    authorizer may hide topics: then --bootstrap-server calls no broker a ghost.
    """
    from quorate.cli.tools.cluster_image import MOST_MS, ImageUnreadableError, read_image
    from quorate.cli.tools.cluster_registrations import (
        HIDDEN_TOPICS,
        TOO_OLD,
        json_rows,
        needs_upgrade,
        registrations,
        text_rows,
    )
    from quorate.client.admin.deadlines import time_limit

    with _open(options) as admin, time_limit(admin.config.default_api_timeout_ms) as left_ms:

        def read() -> Image | None:
            try:
                return read_image(admin, left_ms(MOST_MS))
            except ImageUnreadableError as error:
                click.echo(f"Brokers are not listed: {error}", err=True)
                return None

        rows = registrations(admin, read=read, command_config=options["command_config"])
    if needs_upgrade(rows):
        click.echo(TOO_OLD, err=True)
    if any(row.may_be_ghost for row in rows):
        click.echo(HIDDEN_TOPICS, err=True)
    if options["as_json"]:
        print_json(json_rows(rows))
        return
    names = ("ID", "KIND", "ADDRESS", "STATE", "LAST SEEN", "REMOVE WITH")
    click.echo("\n".join(table_lines(names, text_rows(rows))))


@cluster.command("problems", context_settings=CONTEXT)
@click.option(
    "--silent-after",
    type=NumberRange(min=0, min_open=True, max=MAX_SECONDS),
    default=5,
    show_default=True,
    metavar="SECONDS",
    help="A voter that has not fetched or caught up for this time has a problem.",
)
@_connected
def list_problems(silent_after: float, **options: Any) -> int:
    """Show what is wrong with the cluster: which node, what, and what to do.

    It asks the quorum for its voters and registrations, and tries the addresses of the voters. It
    compares the versions of the nodes, and looks for reassignments that wait for a broker. It names
    fenced brokers, and partitions without a leader or below min.insync.replicas. With
    --bootstrap-controller that needs ClusterAction on Cluster: brokers are read from the metadata log.
    It waits up to 5 s for a leader. The exit code is 1 if there is a problem, or if something could
    not be checked.
    """
    from quorate.cli.tools.cluster_problems import json_rows, problems, text_lines, without_advice

    with _open(options, lambda reason: note_wait(without_advice(reason))) as admin:
        found = problems(admin, int(silent_after * 1000), options["command_config"])
    if options["as_json"]:
        print_json(json_rows(found))
    else:
        lines = fold(text_lines(found)) if found else ["No problem is visible."]
        click.echo("\n".join(lines))
    return 1 if found else 0


def _refuse_bootstrap(_: click.Context, __: click.Parameter, value: str | None) -> None:
    """Say what to give instead of a bootstrap list, which other commands of this tool take."""
    if value is not None:
        raise click.UsageError(
            "No Kafka listener serves audit trails: instead of --bootstrap-controller or "
            "--bootstrap-server give as SOURCE the HOST:PORT of each controller's "
            "quorate.metrics.listener, or its quorate.audit.dir"
        )


@cluster.command("events", context_settings=CONTEXT)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option(
    "--since", metavar="TIME", help="Not before a time, or a duration ago: 2026-11-26T12:00Z, 15m."
)
@click.option("--principal", "principals", multiple=True, metavar="TYPE:NAME", help="Of this one.")
@click.option("--api", "apis", multiple=True, metavar="NAME", help="This request: CreateTopics.")
@click.option("--topic", "topics", multiple=True, metavar="NAME", help="Requests that name it.")
@click.option("--failed", is_flag=True, help="What was refused, as a whole or in part.")
@click.option(
    "--follow", is_flag=True, help="Go on until Ctrl-C; with --json a line for each event."
)
@click.option(
    "--command-config", "-c", metavar="FILE", help="Client properties, for pages with TLS or users."
)
@click.option(
    *("--bootstrap-controller", "--bootstrap-controllers", "-C", "--bootstrap-server", "-b"),
    metavar="HOST:PORT,...",
    hidden=True,
    is_eager=True,  # before the missing SOURCE
    expose_value=False,
    callback=_refuse_bootstrap,
)
@json_option
def events(sources: tuple[str, ...], since: str | None, **options: Any) -> int:
    """Show the audit trails of controllers, merged in the order of time.

    A SOURCE is the directory quorate.audit.dir of a node, a file of it, or HOST:PORT of the node's
    quorate.metrics.listener: the newest entries in its memory. Give one source for each controller;
    only the active one decides, and any was active once. There is no --bootstrap-controller: Kafka's
    protocol has no request for an audit trail. --command-config has what the listeners ask
    for: security.protocol, ssl.*, quorate.metrics.user and quorate.metrics.password. Options that are
    repeated allow each value. The exit code is 1 when a source cannot be read; the others are shown.
    """
    from quorate.cli.tools.cluster_events import Filter, open_source, since_text, watch
    from quorate.cli.tools.page_access import page_access

    kept = Filter(
        since_text(since) if since else "",
        options["principals"],
        options["apis"],
        options["topics"],
        options["failed"],
    )
    access = page_access(options["command_config"])
    opened = [open_source(text, access) for text in sources]
    return watch(opened, kept, follow=options["follow"], as_json=options["as_json"])


@cluster.command("api-versions", context_settings=CONTEXT)
@_connected
def api_versions(**options: Any) -> None:
    """Show the versions of the APIs that each node serves."""
    with _open(options) as admin:
        found = admin.api_versions()
    if options["as_json"]:
        print_json([_json_versions(node) for node in found])
        return
    for node in found:
        rack = "null" if node.rack is None else node.rack
        head = (
            f"{node.address} (id: {node.node_id} rack: {rack} "
            f"isFenced: {str(node.is_fenced).lower()}) -> "
        )
        if node.error is not None:
            click.echo(f"{head}ERROR: {node.error}")
        else:
            lines = (head + versions_text(node.apis)).split("\n")
            click.echo("\n".join(fold(lines)))


def versions_text(apis: Sequence[ApiRange]) -> str:
    """Return the text of `NodeApiVersions.toString` of Kafka 4.4.0, with line breaks."""
    from quorate.cli.kafka_apis import kafka_apis

    known = kafka_apis()
    lines = {
        api.key: f"{api.name}({api.key}): UNSUPPORTED" for api in known.values() if api.on_brokers
    }
    for api in apis:
        lines[api.key] = _version_text(api)
    return "(\n\t" + ",\n\t".join(lines[key] for key in sorted(lines)) + "\n)"


def _version_text(api: ApiRange) -> str:
    from quorate.cli.kafka_apis import kafka_apis

    low, high = api.min_version, api.max_version
    shown = f"{low}" if low == high else f"{low} to {high}"
    known = kafka_apis().get(api.key)
    if known is None:
        return f"UNKNOWN({api.key}): {shown}"
    # Kafka takes an API without a version that is left for one of which the node is too new.
    oldest, latest = known.versions or (0, -1)
    if latest < low:
        usable = "unusable: node too new"
    elif high < oldest:
        usable = "unusable: node too old"
    else:
        usable = f"usable: {min(latest, high)}"
    return f"{known.name}({api.key}): {shown} [{usable}]"


def _json_versions(node: NodeVersions) -> dict[str, Any]:
    from quorate.cli.kafka_apis import kafka_apis

    known = kafka_apis()
    return {
        "id": node.node_id,
        "host": node.address.host,
        "port": node.address.port,
        "rack": node.rack,
        "fenced": node.is_fenced,
        "error": node.error,
        "apis": [
            {
                "key": api.key,
                "name": known[api.key].name if api.key in known else None,
                "minVersion": api.min_version,
                "maxVersion": api.max_version,
            }
            for api in sorted(node.apis, key=lambda each: each.key)
        ],
    }
