"""`quorate pipeline`: Spark jobs over metadata logs. Each job is also a Python function."""

from __future__ import annotations

import click

from quorate.cli.options import CONTEXT, OrderedGroup
from quorate.cli.pipeline.audit import audit, report
from quorate.cli.pipeline.campaign import campaign, campaign_report
from quorate.cli.pipeline.history import history
from quorate.cli.pipeline.ingest import compact, ingest
from quorate.cli.pipeline.repair import repair
from quorate.cli.pipeline.stream import stream
from quorate.cli.pipeline.who import who


@click.group(cls=OrderedGroup, context_settings=CONTEXT)
def pipeline() -> None:
    """Turn metadata logs into tables, history and answers, on Spark.

    Needs the extra: pip install 'quorate[spark]'. A warehouse is a folder of Delta Lake
    tables. Every job may be killed and started again.
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
