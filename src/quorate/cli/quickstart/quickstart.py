"""`quorate quickstart`: run a durable three-controller quorum and watch it in the terminal."""

from __future__ import annotations

import click

from quorate.cli.options import CONTEXT, ToolCommand, WholeNumber
from quorate.cli.quickstart.defaults import DEFAULT_CONTROLLERS


@click.command(
    cls=ToolCommand,
    context_settings=CONTEXT,
    epilog="""\b
Examples:
  quorate quickstart                    three controllers in ./quorate-data; Ctrl-C stops them
  quorate quickstart --data /var/q      the same data again next time
  quorate quickstart --tour             a guided tour with new data, then exit
  quorate quickstart --with-broker      a broker joins, a topic is created and used, then exit
  quorate quickstart --secure           with TLS, passwords and ACLs; shows who is refused
  quorate quickstart --secure --tour    the same with new data, then exit
""",
)
@click.option(
    "--data",
    "directory",
    type=click.Path(file_okay=False),
    default=None,
    help="The data directory.  [default: ./quorate-data, with --secure ./quorate-data-secure; with "
    "--tour and --with-broker a temporary one]",
)
@click.option(
    "--controllers",
    type=WholeNumber(1, 7),
    default=None,
    help=f"Number of controllers of a new quorum.  [default: {DEFAULT_CONTROLLERS}]",
)
@click.option(
    "--tour", is_flag=True, help="Run a guided tour of what the quorum can do, then exit."
)
@click.option(
    "--with-broker",
    is_flag=True,
    help="Let a Kafka broker join, create a topic and use it, then exit; without Java or Kafka's "
    "jars the brokers are simulated.",
)
@click.option(
    "--secure",
    is_flag=True,
    help="Give a new quorum mutual TLS, SCRAM passwords and an authorizer, with certificates for "
    "trials, and show who is let in and who is refused.",
)
def quickstart(
    directory: str | None, controllers: int | None, tour: bool, with_broker: bool, secure: bool
) -> int:
    """Run a quorum of controllers as separate processes and watch it.

    The first run formats the data directory; later runs resume it. Java is not needed.
    """
    if tour and with_broker:
        raise click.UsageError("--tour and --with-broker exclude each other")
    if secure and with_broker:
        raise click.UsageError("--secure and --with-broker exclude each other")
    from pathlib import Path

    data = None if directory is None else Path(directory)
    if with_broker:
        from quorate.cli.quickstart.with_broker import run_with_broker

        return run_with_broker(data, controllers)
    if secure and tour:
        from quorate.cli.quickstart.secure_tour import run_secure_tour

        return run_secure_tour(data, controllers)
    if tour:
        from quorate.cli.quickstart.tour import run_tour

        return run_tour(data, controllers)
    from quorate.cli.quickstart.live_view import run_quorum

    default = "quorate-data-secure" if secure else "quorate-data"
    return run_quorum(data or Path(default), controllers, secure=secure)
