"""Common parts of the jobs of `quorate pipeline`: options, session, progress, one-line errors.

Exit codes: 0 success, 1 some input was bad (the good part was ingested, the rest is in quarantine;
0 with --findings-exit-zero), 2 the command line or a path in it is wrong, 70 the job failed (a
full disk, a lost worker).
"""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.base.errors import QuorateError
from quorate.cli.options import json_option

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quorate.cli.pipeline.progress import ProgressBar


BAD_INPUT: Final = 1
WRONG: Final = 2
_READERS: Final = frozenset({"history", "who", "compact", "repair", "report"})
"""Jobs that need a warehouse, and do not make one."""
_KILLED: Final = 128
"""A process that a signal ends has this plus its number as exit code."""


def common_options(command: Any) -> Any:
    """Add the options of every job: where it runs, and how it reports."""
    for option in (
        json_option,
        click.option("--quiet", is_flag=True, help="Print no progress to stderr."),
        click.option(
            "--storage-option",
            metavar="NAME=VALUE",
            multiple=True,
            help="A setting of an object store, named like its environment variable (AWS_ENDPOINT_URL).",
        ),
        click.option("--conf", metavar="NAME=VALUE", multiple=True, help="A setting of Spark."),
        click.option("--master", metavar="URL", help="Spark's master; local[*] by default."),
    ):
        command = option(command)
    return command


def findings_option(command: Any) -> Any:
    """Add the option for schedulers that take every exit code but 0 for a failed job."""
    return click.option(
        "--findings-exit-zero",
        is_flag=True,
        help="Exit with 0 instead of 1 when the job did all its work and has findings.",
    )(command)


def findings_code(found: object, words: Mapping[str, Any]) -> int:
    """The exit code of a job that did all its work; `found`: whether it has findings."""
    return BAD_INPUT if found and not words["findings_exit_zero"] else 0


def job_options(command: Any) -> Any:
    """Add the options of every job with a warehouse."""
    command = common_options(command)
    for option in (
        click.option(
            "--format",
            "table_format",
            type=click.Choice(["delta", "parquet"]),
            default="delta",
            show_default=True,
            help="The format of the tables.",
        ),
        click.option(
            "--warehouse", "-w", metavar="DIR", required=True, help="The folder of the tables."
        ),
    ):
        command = option(command)
    return command


clusters_option: Final = click.option(
    "--cluster",
    "clusters",
    metavar="NAME=PATH",
    multiple=True,
    help="The logs at and below PATH are of the cluster NAME, whatever their cluster id is; may be "
    "given several times, with several paths for a name.",
)


def named_clusters(words: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return, by name, the absolute paths of `--cluster` options."""
    found: dict[str, list[str]] = {}
    for text in words["clusters"]:
        name, equals, path = text.partition("=")
        if not (equals and name and path):
            raise click.UsageError(f"--cluster {text}: it must be NAME=PATH")
        found.setdefault(name, []).append(absolute(path))
    return found


def every_path(paths: Sequence[str], clusters: Mapping[str, Sequence[str]]) -> list[str]:
    """The paths of a job, and those of its named clusters.

    Raises SourceError where none of them exists: called before Spark starts, it saves seconds.
    """
    from quorate.spark.files.paths import SourceError, is_uri

    named = [path for some in clusters.values() for path in some]
    every = list(dict.fromkeys([*input_paths(paths), *named]))
    # Only its file system knows a URI, and only a listing what a pattern matches.
    unknown = (path for path in every if is_uri(path) or set("*?[") & set(path))
    if every and not any((*unknown, *filter(os.path.lexists, every))):
        raise SourceError(f"{every[0]}: there is no such file or directory")
    return every


def _check_warehouse(path: str) -> None:
    """Raise NoWarehouseError where there is no such folder; what a URI names, the job finds out."""
    from quorate.spark.files.paths import is_uri

    if not is_uri(path) and not os.path.lexists(path):
        from quorate.spark.tables.store import NoWarehouseError

        raise NoWarehouseError(path)


@contextmanager
def job_on_spark(name: str, words: Mapping[str, Any]) -> Iterator[tuple[SparkSession, ProgressBar]]:
    """A session and a progress bar for a job; Spark's errors become one line."""
    import logging
    from pathlib import Path

    from quorate.cli.pipeline.progress import progress
    from quorate.spark.session import session, wrapped_error
    from quorate.spark.write_errors import DiskWriteError, error_number, plain_reason

    conf = dict(_setting("--conf", text) for text in words["conf"])
    storage = dict(_setting("--storage-option", text) for text in words["storage_option"])
    if name in _READERS:
        _check_warehouse(absolute(words["warehouse"]))
    conf.setdefault("spark.ui.showConsoleProgress", "false")
    if "spark.log.level" not in conf:
        log4j = Path(__file__).parents[2].joinpath("spark", "log4j2.properties").as_uri()
        conf.setdefault("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={log4j}")
    logging.getLogger("SQLQueryContextLogger").setLevel(
        logging.CRITICAL
    )  # reported below, in one line
    with progress(name, quiet=words["quiet"]) as bar, exit_on_signals(bar.clear) as arm:
        bar.notify("starting Spark")
        spark = session(f"quorate {name}", words["master"], storage=storage, **conf)
        arm()  # again: PySpark has installed its own handler
        bar.watch(spark)
        try:
            yield spark, bar
        except BrokenPipeError:
            raise
        except QuorateError:
            raise
        except OSError as error:
            if error_number(error) is not None:
                raise DiskWriteError(error.filename or _fullest(spark, words), error) from error
            where = f"{error.filename}: " if error.filename else ""
            raise JobFailedError(f"{where}{error.strerror or plain_reason(error)}") from error
        except Exception as error:
            found = wrapped_error(error)
            if found is not None:
                raise WrappedError(found[1], found[0].exit_code) from error
            if error_number(error) is not None:  # of Spark's Java side, or of delta-rs
                raise DiskWriteError(_fullest(spark, words), error) from error
            if type(error).__module__.startswith(("pyspark", "py4j")):
                if "PATH_NOT_FOUND" in str(error) or "FileNotFoundError" in str(error):
                    raise FileLostError(_spark_message(error), warehouse_options(words)) from error
                raise JobFailedError(_spark_message(error)) from error
            raise
        finally:
            bar.stop()
            spark.stop()


@contextmanager
def exit_on_signals(tidy: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Let Ctrl-C and SIGTERM end the process at once.

    Gives a function that installs the handlers again, after others have replaced them. Runs commit
    as a whole or not at all and the JVM ends with its parent, so there is nothing to clean up. An
    exception during a call into the JVM, as from PySpark's own handler, would print pages of
    tracebacks.
    """

    def leave(number: int, _: object) -> None:
        tidy()
        why = b"interrupted" if number == signal.SIGINT else b"stopped"
        os.write(2, why + b": unfinished work was not committed; start the job again\n")
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


class JobFailedError(QuorateError):
    """A job of Spark failed."""

    exit_code = 70


class WrappedError(QuorateError):
    """An error of this package that a task raised; Spark wraps it."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.exit_code = exit_code


class FileLostError(JobFailedError):
    """A table names a file that does not exist."""

    exit_code = WRONG

    def __init__(self, what: str, place: str) -> None:
        super().__init__(f"{what}: a file is lost: quorate pipeline repair {place}")


def _fullest(spark: SparkSession, words: Mapping[str, Any]) -> str:
    """The place to which a job writes that has the least free space.

    An error of Spark's Java side does not name its file.
    """
    from quorate.spark.session import temporary_folders
    from quorate.spark.write_errors import fullest

    given = (words.get(name) for name in ("warehouse", "out"))
    places = [absolute(path) for path in given if path]
    return fullest([*places, *temporary_folders(spark)]) or ", ".join(places) or "a disk"


def _spark_message(error: Exception) -> str:
    """The first lines of a message that may include a Java stack trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    message = [line for line in lines if not line.startswith(("at ", "File "))]
    return "the job failed: " + " ".join(message[:2])[:500]


def _setting(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"{option} {text}: it must be NAME=VALUE")
    return name, value


def absolute(path: str) -> str:
    """The absolute path of a local path: executors may have another working directory."""
    from pathlib import Path

    from quorate.spark.files.paths import is_uri

    return path if is_uri(path) else str(Path(path).absolute())


def input_paths(paths: Sequence[str]) -> list[str]:
    """The absolute paths of the input, without stray files, which are named on stderr.

    A shell gives `dir/*` as one path for each entry. Beside directories, files whose names are of
    no segment, snapshot or archive are then left out. Alone, such a file is refused later.
    """
    from quorate.spark.files.layout import is_input_name

    stray = [path for path in paths if os.path.isfile(path) and not is_input_name(path)]
    if not any(os.path.isdir(path) for path in paths):
        stray = []
    for path in stray:
        click.echo(f"left out: {path}: the name of no segment, snapshot or archive", err=True)
    return [absolute(path) for path in paths if path not in stray]


def warehouse_options(words: Mapping[str, Any]) -> str:
    """The options by which another command names the same warehouse."""
    kind = words.get("table_format", "delta")
    form = "" if kind == "delta" else f" --format {kind}"
    return f"-w {shlex.quote(str(words.get('warehouse', 'DIR')))}{form}"


def print_result(result: Any, as_json: bool, lines: Callable[[], list[str]]) -> None:
    """Print a result as JSON, or as lines."""
    if as_json:
        click.echo(json.dumps(result, default=str, ensure_ascii=False, allow_nan=False))
    else:
        for line in lines():
            click.echo(line)
