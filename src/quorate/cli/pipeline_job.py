"""What every job of `quorate pipeline` has: its options, a session, progress, failures in a line.

Exit codes: 0 all went well, 1 some input was bad (the good part was taken, the rest is in
quarantine), 2 the command line or a path in it is wrong, 70 the job could not be done (a full disk,
a lost worker).
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.base.errors import QuorateError
from quorate.cli.options import json_option

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quorate.cli.pipeline_progress import Bar

BAD_INPUT: Final = 1
WRONG: Final = 2
_KILLED: Final = 128
"""The exit code of what a signal ends is so much more than its number."""
_LOG4J: Final = Path(__file__).parents[1].joinpath("spark", "log4j2.properties").as_uri()


def place_options(command: Any) -> Any:
    """Add what every job takes: where it runs, and how it tells what it does."""
    for option in (
        json_option,
        click.option("--quiet", is_flag=True, help="No progress on stderr."),
        click.option(
            "--storage-option",
            metavar="NAME=VALUE",
            multiple=True,
            help="A setting of an object store, named as in its environment (AWS_ENDPOINT_URL).",
        ),
        click.option("--conf", metavar="NAME=VALUE", multiple=True, help="A setting of Spark."),
        click.option("--master", metavar="URL", help="Spark's master; local[*] by default."),
    ):
        command = option(command)
    return command


def job_options(command: Any) -> Any:
    """Add what every job over a warehouse takes."""
    command = place_options(command)
    for option in (
        click.option(
            "--format",
            "table_format",
            type=click.Choice(["delta", "parquet"]),
            default="delta",
            show_default=True,
            help="How the tables are kept.",
        ),
        click.option("--warehouse", "-w", metavar="DIR", required=True, help="Where they are."),
    ):
        command = option(command)
    return command


@contextmanager
def job_on_spark(name: str, words: Mapping[str, Any]) -> Iterator[tuple[SparkSession, Bar]]:
    """A session and a progress bar for a job; what Spark raises becomes one line."""
    from quorate.cli.pipeline_progress import progress
    from quorate.spark.session import session
    from quorate.spark.tables.store import plain_reason

    conf = dict(_setting("--conf", text) for text in words["conf"])
    storage = dict(_setting("--storage-option", text) for text in words["storage_option"])
    conf.setdefault("spark.ui.showConsoleProgress", "false")
    if "spark.log.level" not in conf:
        conf.setdefault("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={_LOG4J}")
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # it is told below
    with progress(name, quiet=words["quiet"]) as bar, left_at_once(bar.clear) as arm:
        bar.tell("starting Spark")
        spark = session(f"quorate {name}", words["master"], storage=storage, **conf)
        arm()  # anew: PySpark has put its own handler there
        bar.watch(spark)
        try:
            yield spark, bar
        except BrokenPipeError:
            raise
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            raise JobFailed(f"{where}{error.strerror or plain_reason(error)}") from error
        except Exception as error:
            if type(error).__module__.startswith(("pyspark", "py4j")):
                if "PATH_NOT_FOUND" in str(error) or "FileNotFoundError" in str(error):
                    raise FileLost(_spark_says(error), place_of(words)) from error
                raise JobFailed(_spark_says(error)) from error
            raise
        finally:
            bar.stop()
            spark.stop()


@contextmanager
def left_at_once(tidy: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Let Ctrl-C and SIGTERM end the process on the spot; gives what does so again where another
    has taken the signals.

    Runs happen as a whole or not at all and the JVM goes with its parent, so there is nothing to
    clear up; while an exception in the middle of what is said to the JVM, as by PySpark's own
    handler, ends in pages of tracebacks.
    """

    def leave(number: int, _: object) -> None:
        tidy()
        why = b"interrupted" if number == signal.SIGINT else b"stopped"
        os.write(2, why + b": what was under way counts for nothing; start it again\n")
        os._exit(_KILLED + number)

    def arm() -> None:
        for number in before:
            signal.signal(number, leave)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    arm()
    try:
        yield arm
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class JobFailed(QuorateError):
    """Spark gave up on a job."""

    exit_code = 70


class FileLost(JobFailed):
    """A table names a file that is not there."""

    exit_code = WRONG

    def __init__(self, what: str, place: str) -> None:
        super().__init__(f"{what}: a file is gone: quorate pipeline repair {place}")


def _spark_says(error: Exception) -> str:
    """The first lines of a message that may hold a page of Java."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(("at ", "File "))]
    return "the job failed: " + " ".join(told[:2])[:500]


def _setting(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"{option} {text}: it must be NAME=VALUE")
    return name, value


def absolute(path: str) -> str:
    """A local path made absolute: executors may run elsewhere."""
    return path if "://" in path else str(Path(path).absolute())


def place_of(words: Mapping[str, Any]) -> str:
    """The options that name a job's warehouse to another one."""
    kind = words.get("table_format", "delta")
    form = "" if kind == "delta" else f" --format {kind}"
    return f"-w {shlex.quote(str(words.get('warehouse', 'DIR')))}{form}"


def print_told(told: Any, as_json: bool, lines: Callable[[], list[str]]) -> None:
    if as_json:
        click.echo(json.dumps(told, default=str, ensure_ascii=False, allow_nan=False))
    else:
        for line in lines():
            click.echo(line)
