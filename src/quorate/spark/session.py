"""A Spark session that is ready for the pipeline: Java found, Arrow on, sources registered."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from pydoc import locate
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Final
from zipfile import ZIP_DEFLATED, ZipFile

import quorate
from quorate.base.errors import QuorateError
from quorate.spark.java import find_java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULTS: Final = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.redaction.regex": "(?i)secret|password|token|access[._]?key|account[._]?key",
}
"""What the pipeline needs, and no web page unless it is asked for."""


_PLAIN: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.caseSensitive": "false",
}
"""What SQL means here: as in Spark where nothing was set, but in UTC."""

STORE_VARIABLES: Final = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION"),
    *("AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP", "AWS_PROFILE"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "AZURE_TENANT_ID", "AZURE_CLIENT_ID"),
    *("AZURE_CLIENT_SECRET", "AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY"),
)
"""What the object stores' own tools read; executors get those that are set here."""
NEEDED: Final = ("pyarrow", "numpy", "pandas", "fastcrc", "immutables")
"""What the tasks of every job import besides this package."""
_OURS: Final = re.compile(r"^(?:pyspark\S*: )?(quorate\.[\w.]+): (.+)$", re.MULTILINE)
"""The last line of a Python traceback, where the error is one of this package: its class, and what
it says."""
_HEAD: Final = re.compile(r"^\[STREAM_FAILED\] Query \[.*?\] terminated with exception: ")
"""What Spark says before what ended a query."""
_ANY: Final = re.compile(
    r"^Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)$", re.MULTILINE
)
"""Of a Python traceback the line that says what went wrong."""


class SparkMissing(QuorateError):
    """PySpark or PyArrow is not installed."""


def session(
    app: str, master: str | None = None, *, storage: Mapping[str, str] | None = None, **conf: str
) -> SparkSession:
    """The session of this process, made when there is none.

    `master` is Spark's (`local[2]`, `spark://host:7077`, ...), by default the one of the
    environment, else `local[*]`. On a cluster whose Python has no quorate this one is sent there.
    `storage` are settings of object stores by the names that their environment variables have
    (`AWS_ENDPOINT_URL`, ...); they hold in this process and on the executors. `conf` are Spark's
    settings by their dotted names. Raises SparkMissing, JavaMissing.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SparkMissing(f"{error}: pip install 'quorate[spark]'") from None
    os.environ["JAVA_HOME"] = str(find_java_home())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.update(storage or {})
    builder = SparkSession.Builder().appName(app)
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    stores = {name: os.environ[name] for name in STORE_VARIABLES if name in os.environ}
    for name, value in (stores | dict(storage or {})).items():
        builder = builder.config(f"spark.executorEnv.{name}", value)
    for name, value in (DEFAULTS | conf).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if not str(spark.sparkContext.master).startswith("local"):
        _equip(spark)
    register(spark)
    return spark


def beside(spark: SparkSession) -> SparkSession:
    """A session beside this one, on the same cluster, in which SQL always means the same.

    It has the views and functions that the other has now, but not its time zone, nor its ways with
    case and overflow; views that are made in one do not appear in the other.
    """
    from pyspark.sql import SparkSession

    found = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    for name, value in _PLAIN.items():
        found.conf.set(name, value)
    return found


@contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """Let Spark take this session for the thread's own, and then again the one that was it."""
    from pyspark.sql import SparkSession

    jvm: Any = spark.sparkContext._jvm
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    known, here = SparkSession._activeSession, sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        SparkSession._activeSession = known
        if here.isDefined():
            sessions.setActiveSession(here.get())
        else:
            sessions.clearActiveSession()


def _equip(spark: SparkSession) -> None:
    """Send this package to executors that have none; raises SparkMissing for other packages."""
    context = spark.sparkContext
    names = ["quorate", *NEEDED]
    # only what Python itself has: nothing of this package can be unpickled there yet
    there = context.parallelize(names, 1).map(find_spec).map(bool).collect()
    lacking = [name for name, found in zip(names, there, strict=True) if not found]
    if lacking == ["quorate"]:
        context.addPyFile(str(package_zip(Path(mkdtemp(prefix="quorate-")))))
    elif lacking:
        raise SparkMissing(
            f"the Python of the executors ({context.pythonExec}) lacks {', '.join(lacking)}: "
            "pip install 'quorate[spark]' there, or send an environment (docs/spark.md, On a "
            "cluster)"
        )


def package_zip(folder: Path) -> Path:
    """`quorate.zip` in a folder: the sources of this package, for `--py-files`.

    Compiled parts cannot be imported from a zip and are left out; the sources do the same.
    """
    home = Path(quorate.__file__).parent
    path = folder / "quorate.zip"
    with ZipFile(path, "w", ZIP_DEFLATED) as packed:
        for file in sorted(home.rglob("*")):
            if file.suffix in (".py", ".json"):
                packed.write(file, file.relative_to(home.parent))
    return path


def reason(error: BaseException) -> str:
    """What an error of Spark says, without the traceback of a task that it wraps a message in."""
    found = ours(error)
    if found is not None:
        return found[1]
    text = str(error)
    told = _ANY.findall(text)
    return told[-1] if told else _HEAD.sub("", text.strip().partition("\n")[0])


def ours(error: BaseException) -> tuple[type[QuorateError], str] | None:
    """The error of this package that an error of Spark wraps, as its class and what it says."""
    for name, text in reversed(_OURS.findall(str(error))):
        found = locate(name)
        if isinstance(found, type) and issubclass(found, QuorateError):
            return found, text
    return None


def register(spark: SparkSession) -> None:
    """Make the sources known to a session.

    `session`, `read_metadata` and the jobs do it; `spark.read.format("quorate-metadata")` on a
    session of your own needs it.
    """
    from quorate.spark.data_source import MetadataLogSource

    with active(spark):  # Spark looks there whether the name is taken
        spark.dataSource.register(MetadataLogSource)
