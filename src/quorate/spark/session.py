"""A Spark session that is ready for the pipeline: Java found, Arrow on, sources registered."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Final

from quorate.base.errors import QuorateError
from quorate.spark.java import find_java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULTS: Final = {
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
}
"""What the pipeline needs, and no web page unless it is asked for."""


_OURS: Final = re.compile(r"^(?:pyspark\S*: )?quorate\.[\w.]+: (.+)$", re.MULTILINE)
"""The last line of a Python traceback, where the error is one of this package."""


class SparkMissing(QuorateError):
    """PySpark or PyArrow is not installed."""


def session(app: str, master: str | None = None, **conf: str) -> SparkSession:
    """The session of this process, made when there is none.

    `master` is Spark's (`local[2]`, `spark://host:7077`, ...), by default the one of the
    environment, else `local[*]`. `conf` are Spark's settings by their dotted names. Raises
    SparkMissing, JavaMissing.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SparkMissing(f"{error}: pip install 'quorate[spark]'") from None
    os.environ["JAVA_HOME"] = str(find_java_home())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.Builder().appName(app)
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    for name, value in (DEFAULTS | conf).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark


def reason(error: BaseException) -> str:
    """What an error of Spark says, without the traceback that it wraps a message of ours in."""
    text = str(error)
    ours = _OURS.findall(text)
    return ours[-1] if ours else text.strip().partition("\n")[0]


def register(spark: SparkSession) -> None:
    """Make the sources known to a session, and let filters be pushed down to them."""
    from quorate.spark.source import MetadataLogSource

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(MetadataLogSource)
