"""`quorate metadata-quorum`: describe the quorum and change its voters."""

from __future__ import annotations

from typing import Any

import click

from quorate.cli.options import CONTEXT, OrderedGroup, connection_options, timeout_option
from quorate.cli.tools.metadata_quorum_alter import alter
from quorate.cli.tools.metadata_quorum_change import add_controller, remove_controller
from quorate.cli.tools.metadata_quorum_describe import describe


@click.group(
    cls=OrderedGroup,
    context_settings=CONTEXT,
    epilog="""\b
Examples (TOOL is: quorate metadata-quorum --bootstrap-controller localhost:9093):
  TOOL describe --status
  TOOL describe --replication --human-readable
  TOOL --command-config new-controller.properties add-controller
  TOOL remove-controller -i 3 -d 07R5amHmR32VDA6jHkGbTA
  TOOL alter --target 1,2,4@d:9093:$DIR4 --dry-run""",
)
@timeout_option
@connection_options(
    "Client properties file; for add-controller the properties file of the new controller."
)
@click.pass_context
def metadata_quorum(ctx: click.Context, /, **options: Any) -> None:
    """Describe the quorum and change its voters (Kafka's kafka-metadata-quorum)."""
    ctx.obj = options


for command in (describe, add_controller, remove_controller, alter):
    metadata_quorum.add_command(command)
