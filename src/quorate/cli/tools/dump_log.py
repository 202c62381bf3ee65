"""`quorate dump-log`: print log segments, snapshots and indexes, of controllers and of brokers.

Flags, output and exit codes are those of Kafka's kafka-dump-log (`DumpLogSegments`). It opens files for
reading only and takes no lock, so it also works on the files of a running node.
"""

from __future__ import annotations

import codecs
import sys
from typing import Any, Final

import click

from quorate.cli.options import CONTEXT, ToolCommand, json_option

_NO_LIMIT: Final = 0x7FFFFFFF


class _SingleDashCommand(ToolCommand):
    """Accepts `-files` for `--files`, as the parser of Kafka's tool does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        names = {param.opts[0][1:] for param in self.get_params(ctx)}
        return super().parse_args(
            ctx, [f"-{arg}" if arg.partition("=")[0] in names else arg for arg in args]
        )


@click.command(
    cls=_SingleDashCommand,
    context_settings=CONTEXT,
    epilog="""\b
Examples:
  quorate dump-log --cluster-metadata-decoder --files 00000000000000000000.log
  quorate dump-log --cluster-metadata-decoder --json --files a.log,b.checkpoint
  quorate dump-log --offsets-decoder --files __consumer_offsets-7/00000000000000000000.log""",
)
@click.option(
    "--files",
    required=True,
    multiple=True,
    metavar="FILE,...",
    help="Logs, snapshots and indexes to print.",
)
@click.option(
    "--offsets-decoder", is_flag=True, help="Decode records of the topic __consumer_offsets."
)
@click.option(
    "--transaction-log-decoder",
    is_flag=True,
    help="Decode records of the topic __transaction_state.",
)
@click.option(
    "--cluster-metadata-decoder", is_flag=True, help="Decode records as cluster metadata."
)
@click.option(
    "--remote-log-metadata-decoder",
    is_flag=True,
    help="Decode records of the topic __remote_log_metadata.",
)
@click.option(
    "--share-group-state-decoder",
    is_flag=True,
    help="Decode records of the topic __share_group_state.",
)
@click.option(
    "--skip-record-metadata", is_flag=True, help="Omit offsets, sizes and control records."
)
@click.option("--print-data-log", is_flag=True, help="Print the records; implied by a decoder.")
@click.option("--deep-iteration", is_flag=True, help="Read records, not only batch headers.")
@click.option(
    "--max-bytes",
    type=click.IntRange(0, _NO_LIMIT),
    default=_NO_LIMIT,
    metavar="BYTES",
    help="Read at most this many bytes of each file.",
)
@click.option("--verify-index-only", is_flag=True, help="Check indexes without printing them.")
@click.option(
    "--index-sanity-check", is_flag=True, help="Check indexes only as a node does at its start."
)
@click.option(
    "--max-message-size",
    type=click.IntRange(1, _NO_LIMIT),
    default=5 * 1024 * 1024,
    show_default=True,
    metavar="BYTES",
    help="Largest batch to which an index entry may point.",
)
@json_option
def dump_log(files: tuple[str, ...], as_json: bool, **flags: Any) -> None:
    """Print the batches and records of log segments and snapshots (Kafka's kafka-dump-log).

    \b
    It prints indexes, and a broker's .txnindex and .snapshot files too. Kafka's options
    --key-decoder-class and --value-decoder-class are not supported: they name Java classes.
    """
    if len(files) > 1:
        raise click.UsageError(
            "Found multiple arguments for option files, but you asked for only one: "
            "--files FILE,FILE"
        )
    # Imported here: reading and decoding logs takes as long to import as click.
    from quorate.cli.tools.dump_batches import BatchOptions, Output
    from quorate.cli.tools.dump_files import Dump, DumpLogOptions
    from quorate.cli.tools.dump_index import IndexChecks
    from quorate.formats.dump import DumpOptions
    from quorate.formats.dump_contents import LogKind

    # With several decoders Kafka's tool takes the first, in this order.
    chosen = (one for one in LogKind if flags.get(one.value.replace("-", "_")))
    kind = next((one for one in chosen if one is not LogKind.TEXT), LogKind.TEXT)
    print_data = kind is not LogKind.TEXT or flags["print_data_log"]
    options = DumpLogOptions(
        BatchOptions(
            DumpOptions(kind, print_data, flags["skip_record_metadata"]),
            flags["deep_iteration"] or print_data or as_json,
            as_json,
        ),
        IndexChecks(
            flags["verify_index_only"], flags["index_sanity_check"], flags["max_message_size"]
        ),
        None if flags["max_bytes"] == _NO_LIMIT else flags["max_bytes"],
    )
    # JSON is UTF-8 wherever it is written.
    encoding = "utf-8" if as_json else codecs.lookup(sys.stdout.encoding).name
    Dump(options, Output(sys.stdout.buffer, encoding)).run(_names(files[0]))


def _names(text: str) -> list[str]:
    """Split like Java's `split`, which drops empty strings at the end."""
    names = text.split(",")
    while text and names and not names[-1]:
        names.pop()
    return names
