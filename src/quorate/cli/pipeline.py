"""`quorate pipeline`: jobs on Spark over metadata logs. Each job is also a plain function."""

from __future__ import annotations

import click

from quorate.cli.options import CONTEXT, OrderedGroup
from quorate.cli.pipeline_audit import audit, report
from quorate.cli.pipeline_campaign import campaign, campaign_report
from quorate.cli.pipeline_history import history
from quorate.cli.pipeline_ingest import compact, ingest
from quorate.cli.pipeline_repair import repair
from quorate.cli.pipeline_stream import stream
from quorate.cli.pipeline_who import who


@click.group(cls=OrderedGroup, context_settings=CONTEXT)
def pipeline() -> None:
    """Metadata logs as tables, history and answers, on Spark.

    Needs the extra: pip install 'quorate[spark]'. Warehouses are Delta Lake tables below one
    folder; every job may be killed and started again.
    """


for command in (
    ingest,
    stream,
    history,
    who,
    audit,
    report,
    compact,
    repair,
    campaign,
    campaign_report,
):
    pipeline.add_command(command)
