"""Spark sessions for the pipeline: they find Java, use Arrow, and know the data sources."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from pydoc import locate
from tempfile import gettempdir, mkdtemp
from typing import TYPE_CHECKING, Any, Final
from zipfile import ZIP_DEFLATED, ZipFile

import quorate
from quorate.base.errors import QuorateError
from quorate.spark.gateway import start_jvm
from quorate.spark.java import find_java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULTS: Final = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.redaction.regex": "(?i)secret|password|token|access[._]?key|account[._]?key",
}
"""Settings that the pipeline needs; no web page unless a caller asks for it."""

_PLAIN: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.caseSensitive": "false",
}
"""SQL as in a Spark without settings, but in UTC: the queries of the pipeline rely on it."""

STORE_VARIABLES: Final = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION"),
    *("AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP", "AWS_PROFILE"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "AZURE_TENANT_ID", "AZURE_CLIENT_ID"),
    *("AZURE_CLIENT_SECRET", "AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY"),
)
"""Environment variables of the object stores' own tools. Executors get those that the driver has."""
_REMOTE_TASKS: Final = 8
"""Tasks at once without `spark.default.parallelism`: a server of Spark Connect does not name its cores."""
NEEDED: Final = ("pyarrow", "numpy", "pandas", "fastcrc", "immutables")
"""The packages that the tasks of every job import besides this one."""
_QUORATE_ERROR: Final = re.compile(r"^(?:pyspark\S*: )?(quorate\.[\w.]+): (.+)$", re.MULTILINE)
"""The last line of a Python traceback for an error of this package: its class and its message."""
_QUERY_PREFIX: Final = re.compile(r"^\[STREAM_FAILED\] Query \[.*?\] terminated with exception: ")
"""Spark's words before the error that ended a streaming query."""
_PYTHON_ERROR: Final = re.compile(
    r"^Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)$", re.MULTILINE
)
"""A Python traceback; the group is its last line."""


class SparkMissingError(QuorateError):
    """PySpark or PyArrow is not installed."""


def session(
    app: str, master: str | None = None, *, storage: Mapping[str, str] | None = None, **conf: str
) -> SparkSession:
    """The Spark session of this process; the first call creates it.

    master: Spark's (`local[2]`, `spark://host:7077`, ...); by default that of the environment,
        else `local[*]`. Executors whose Python lacks quorate get this package.
    storage: settings of object stores, by the names of their environment variables
        (`AWS_ENDPOINT_URL`, ...); they hold in this process and on the executors
    conf: Spark's settings by their dotted names

    Raises SparkMissingError, JavaMissingError.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SparkMissingError(f"{error}: pip install 'quorate[spark]'") from None
    os.environ["JAVA_HOME"] = str(find_java_home())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.update(storage or {})
    settings = {"spark.app.name": app}
    if master is not None:
        settings["spark.master"] = master
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    stores = {name: os.environ[name] for name in STORE_VARIABLES if name in os.environ}
    for name, value in (stores | dict(storage or {})).items():
        settings[f"spark.executorEnv.{name}"] = value
    settings |= DEFAULTS | conf
    start_jvm(settings)
    builder = SparkSession.Builder()
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if not str(spark.sparkContext.master).startswith("local"):
        _ship_package(spark)
    register(spark)
    return spark


def is_remote(spark: SparkSession) -> bool:
    """Whether it is a session of Spark Connect: this process has no JVM and no SparkContext."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def parallelism(spark: SparkSession) -> int:
    """How many tasks run at once, as far as the session knows."""
    if not is_remote(spark):
        return spark.sparkContext.defaultParallelism
    cores = spark.conf.get("spark.default.parallelism", None)
    return int(cores) if cores else _REMOTE_TASKS


def temporary_folders(spark: SparkSession) -> list[str]:
    """The folders for Spark's temporary files on this machine."""
    if is_remote(spark):
        return []
    given = os.environ.get("SPARK_LOCAL_DIRS") or spark.conf.get("spark.local.dir", gettempdir())
    return [folder for folder in (given or "").split(",") if folder]


def isolated_session(spark: SparkSession) -> SparkSession:
    """A second session on the same cluster, in which SQL does not depend on the user's settings.

    It has the views and functions that the first session has now, but not its settings of time
    zone, case and overflow. Later views of one session do not appear in the other.
    """
    from pyspark.sql import SparkSession

    if is_remote(spark):
        found: SparkSession = spark.cloneSession()  # type: ignore[attr-defined]
    else:
        found = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    for name, value in _PLAIN.items():
        found.conf.set(name, value)
    return found


@contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """Make this session the active session of the thread; restore the previous one afterwards."""
    if is_remote(spark):
        yield  # the server knows by each request whose it is
        return
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


def _ship_package(spark: SparkSession) -> None:
    """Send this package to executors that lack it. Raises SparkMissingError for other packages."""
    context = spark.sparkContext
    names = ["quorate", *NEEDED]
    # The tasks use builtins only: they could not unpickle a function of this package yet.
    there = context.parallelize(names, 1).map(find_spec).map(bool).collect()
    lacking = [name for name, found in zip(names, there, strict=True) if not found]
    if lacking == ["quorate"]:
        context.addPyFile(str(package_zip(Path(mkdtemp(prefix="quorate-")))))
    elif lacking:
        raise SparkMissingError(
            f"the Python of the executors ({context.pythonExec}) lacks {', '.join(lacking)}: "
            "pip install 'quorate[spark]' there, or send an environment (docs/spark.md, On a "
            "cluster)"
        )


def package_zip(folder: Path) -> Path:
    """Write the sources of this package to `quorate.zip` in a folder, for `--py-files`.

    Compiled modules cannot be imported from a zip; their sources do the same.
    """
    home = Path(quorate.__file__).parent
    path = folder / "quorate.zip"
    with ZipFile(path, "w", ZIP_DEFLATED) as packed:
        for file in sorted(home.rglob("*")):
            if file.suffix in (".py", ".json"):
                packed.write(file, file.relative_to(home.parent))
    return path


def reason(error: BaseException) -> str:
    """The message of an error of Spark, without the traceback of a task."""
    found = wrapped_error(error)
    if found is not None:
        return found[1]
    text = str(error)
    last_lines = _PYTHON_ERROR.findall(text)
    return last_lines[-1] if last_lines else _QUERY_PREFIX.sub("", text.strip().partition("\n")[0])


def wrapped_error(error: BaseException) -> tuple[type[QuorateError], str] | None:
    """The class and message of the error of this package that an error of Spark wraps."""
    for name, text in reversed(_QUORATE_ERROR.findall(str(error))):
        found = locate(name)
        if isinstance(found, type) and issubclass(found, QuorateError):
            return found, text
    return None


def register(spark: SparkSession) -> None:
    """Register the data source `quorate-metadata` with a session.

    `session`, `read_metadata` and the jobs call it. Call it before
    `spark.read.format("quorate-metadata")` on a session of your own.
    """
    from quorate.spark.data_source import MetadataLogSource

    with active(spark):  # Spark looks the name up in the active session
        spark.dataSource.register(MetadataLogSource)
