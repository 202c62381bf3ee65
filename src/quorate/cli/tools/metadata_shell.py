"""`quorate metadata-shell`: look around in the metadata of a snapshot, a log directory or a quorum.

Commands, tree and texts are those of Kafka's kafka-metadata-shell (`org.apache.kafka.shell`). Live
controllers (`-C`, `--config`) are what KIP-631 describes. Reading a directory, `--at-offset`,
`--at-time`, `diff` and `--redact` are ours.
"""

from __future__ import annotations

from typing import Any, Final

import click

from quorate.cli.options import (
    CONTEXT,
    MAX_SECONDS,
    NumberRange,
    ToolCommand,
    WholeNumber,
    json_option,
)

_DIFF: Final = "diff"


@click.command(
    cls=ToolCommand,
    context_settings=CONTEXT,
    epilog="""\b
Without a command the shell is interactive: type help there.
Examples:
  quorate metadata-shell -s 00000000000000000228-0000000003.checkpoint
  quorate metadata-shell -s FILE.checkpoint cat /image/topics/byName/orders/0
  quorate metadata-shell -d /var/lib/kafka/metadata ls '/image/topics/byName/order*'
  quorate metadata-shell -d DIR --at-offset 1000 tree /image/configs
  quorate metadata-shell -d DIR diff 1000 2000 /image/topics
  quorate metadata-shell -C localhost:9093 cat /image/cluster/3
  quorate metadata-shell -C localhost:9093 --config client.properties""",
)
@click.option("-s", "--snapshot", metavar="FILE", help="The metadata snapshot file to read.")
@click.option(
    "-d",
    "--directory",
    metavar="DIR",
    help="A metadata log directory: its newest snapshot, and the log from there. "
    "A node may be running in it. The newest records may not be committed yet.",
)
@click.option(
    "-C",
    "-q",
    "--controllers",
    "--bootstrap-controller",
    "--bootstrap-controllers",
    "controllers",
    metavar="HOST:PORT,...",
    help="Controllers of a running quorum: the snapshot and the committed log of their leader. "
    "The interactive shell reads on before each command that shows something.",
)
@click.option(
    "--config",
    "--command-config",
    "config",
    metavar="FILE",
    help="Client properties for --controllers: security, or bootstrap.controllers itself.",
)
@click.option(
    "--timeout",
    type=NumberRange(min=0, min_open=True, max=MAX_SECONDS),
    default=15,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for a leader.",
)
@click.option(
    "--at-offset", type=WholeNumber(0), metavar="N", help="Show the state after the record N."
)
@click.option(
    "--at-time",
    metavar="TIME",
    help="Show the state at a time, e.g. 2026-11-26T12:00:00Z; UTC where no zone is given.",
)
@click.option("--redact", is_flag=True, help="Hide credentials, tokens and sensitive configs.")
@json_option
@click.argument("command", nargs=-1)
def metadata_shell(
    snapshot: str | None,
    directory: str | None,
    at_offset: int | None,
    at_time: str | None,
    redact: bool,
    as_json: bool,
    command: tuple[str, ...],
    **live: Any,
) -> int:
    """Explore cluster metadata as a tree of directories and files.

    COMMAND is one of cat, find, ls and tree, or `diff FROM TO [PATH]` with two offsets or times.
    """
    # Imported here: the shell and the image take longer to import than click.
    from quorate.cli.tools.metadata_shell_session import (
        explore_files,
        explore_quorum,
        print_differences,
        until_of,
    )

    until = until_of(at_offset, at_time)
    is_live = live["controllers"] is not None or live["config"] is not None
    if (snapshot is not None) + (directory is not None) + is_live != 1:
        raise click.UsageError(
            "give either --snapshot FILE or --directory DIR, or --controllers HOST:PORT,..."
        )
    is_bounded = at_offset is not None or at_time is not None
    if directory is None and is_bounded:
        raise click.UsageError(
            "--at-offset and --at-time need --directory: a snapshot and a running quorum have one end"
        )
    if as_json and not command:
        raise click.UsageError("--json needs a command")
    if command[:1] == (_DIFF,):
        if directory is None or is_bounded:
            raise click.UsageError("diff needs --directory, and names both points itself")
        print_differences(directory, command[1:], redact=redact, as_json=as_json)
        return 0
    if not command:
        click.echo("Loading...")
    if is_live:
        explore_quorum(live, command, redact=redact, as_json=as_json)
    else:
        explore_files(snapshot, directory or "", until, command, redact=redact, as_json=as_json)
    return 0
