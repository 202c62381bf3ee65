"""`quorate metadata-quorum`: what the quorum is, and changes of its voters."""

from __future__ import annotations

from typing import Any

import click

from quorate.cli.metadata_quorum_alter import alter
from quorate.cli.metadata_quorum_change import add_controller, remove_controller
from quorate.cli.metadata_quorum_describe import describe
from quorate.cli.options import CONTEXT, OrderedGroup, connection_options


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
@connection_options(
    "Properties of the client; for add-controller those of the controller that is added."
)
@click.pass_context
def metadata_quorum(ctx: click.Context, /, **options: Any) -> None:
    """Describe the quorum and change its voters (Kafka's kafka-metadata-quorum)."""
    ctx.obj = options


for command in (describe, add_controller, remove_controller, alter):
    metadata_quorum.add_command(command)
