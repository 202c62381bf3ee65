"""`quorate dump-log`: print log segments, snapshots and indexes, of controllers and of brokers.

Flags, output and exit codes are those of Kafka's kafka-dump-log (`DumpLogSegments`). It opens files for
reading only and takes no lock, so it also works on the files of a running node.
"""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from quorate.cli.options import CONTEXT, FlatCommand, WholeNumber, json_option, version_option

_NO_LIMIT: Final = 0x7FFFFFFF
_DECODERS: Final = "org.apache.kafka.tools.api."
_DECODER_NAMES: Final = ("StringDecoder", "IntegerDecoder", "LongDecoder", "DefaultDecoder")
_Command = TypeVar("_Command", bound=Callable[..., Any])


def _decoder_option(part: str) -> Callable[[_Command], _Command]:
    return click.option(
        f"--{part}-decoder-class",
        type=click.Choice([f"{_DECODERS}{name}" for name in _DECODER_NAMES]),
        metavar="CLASS",
        help=f"How a {part} becomes text: Kafka's {_DECODERS}NAME, where NAME is one of "
        f"{', '.join(_DECODER_NAMES)} (hexadecimal).",
    )


@click.command(
    cls=FlatCommand,
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
@_decoder_option("key")
@_decoder_option("value")
@click.option("--deep-iteration", is_flag=True, help="Read records, not only batch headers.")
@click.option(
    "--max-bytes",
    type=WholeNumber(0, _NO_LIMIT),
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
    type=WholeNumber(1, _NO_LIMIT),
    default=5 * 1024 * 1024,
    show_default=True,
    metavar="BYTES",
    help="Largest batch to which an index entry may point.",
)
@json_option
@version_option
def dump_log(files: tuple[str, ...], as_json: bool, **flags: Any) -> None:
    """Print the batches and records of log segments and snapshots (Kafka's kafka-dump-log).

    \b
    It prints indexes, and a broker's .txnindex and .snapshot files too. A file of another kind is
    ignored with a line on stderr, and is no failure, as in Kafka. Of decoders in Java, it has those
    that come with Kafka.
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
    from quorate.config_definitions.java_text import split_parts
    from quorate.formats.dump import DumpOptions
    from quorate.formats.dump_contents import LogKind, TextDecoder

    # With several decoders Kafka's tool takes the first, in this order.
    chosen = (one for one in LogKind if flags.get(one.value.replace("-", "_")))
    kind = next((one for one in chosen if one is not LogKind.TEXT), LogKind.TEXT)
    classes = (flags["key_decoder_class"], flags["value_decoder_class"])
    key, value = (
        TextDecoder((name or "StringDecoder").removeprefix(_DECODERS)) for name in classes
    )
    print_data = kind is not LogKind.TEXT or flags["print_data_log"] or any(classes)
    options = DumpLogOptions(
        BatchOptions(
            DumpOptions(kind, print_data, flags["skip_record_metadata"], (key, value)),
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
    names = split_parts(files[0].split(","))
    Dump(options, Output(sys.stdout.buffer, encoding)).run(names)
