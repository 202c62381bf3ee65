"""Logs and warehouses in an object store: file systems by URI, and a small S3 server.

The server is moto's, in this process; PyArrow and delta-rs speak S3 with it over HTTP.
"""

from __future__ import annotations

import shutil
import tarfile
import urllib.request
from dataclasses import dataclass
from typing import Literal

import pytest
from pyarrow import fs

from metadata.samples import DATA
from quorate.cli import main
from quorate.cli.pipeline.job import absolute
from quorate.spark.data_source import MetadataLogSource
from quorate.spark.files.paths import SourceError, expand, file_system, list_files
from quorate.spark.source.options import parse_options
from quorate.spark.source.plan import partitions
from quorate.spark.source.read import read_partition
from quorate.spark.tables.files import TableWriter, file_name, read_batches
from quorate.spark.tables.store import ConcurrentRunError, RunPlan
from quorate.spark.tables.warehouse import open_store
from spark.fleet import DYNAMIC, rows_of
from time_budget import one_day_in, one_in

SAMPLE = DATA / "a-first" / "node1"


def rows(path: str) -> list[tuple[int, str]]:
    options = parse_options({"path": path})
    return [
        (row["offset"], row["record"])
        for part in partitions(options)
        for batch in read_partition(part, options)
        for row in batch.to_pylist()
    ]


# Without a server


@pytest.mark.parametrize(
    ("uri", "inner", "before"),
    [
        ("s3://bucket/logs/node [1]", "logs/node [1]", "s3://bucket/"),
        ("s3a://bucket/a/b/", "a/b", "s3a://bucket/"),
        ("gs://bucket", "", "gs://bucket/"),
        ("abfss://box@acc.dfs.core.windows.net/a", "a", "abfss://box@acc.dfs.core.windows.net/"),
        ("mock://x/a/b", "a/b", "mock://x/"),
        ("file:///a/b%20c", "/a/b c", ""),
        ("file:/a/b%20c", "/a/b c", ""),
        ("/a/b", "/a/b", ""),
    ],
)
def test_a_uri_is_cut_where_its_file_system_begins(monkeypatch, uri, inner, before):
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    _, *found = file_system(uri)
    assert found == [inner, before]


def test_a_file_uri_is_the_local_path(tmp_path):
    shutil.copytree(SAMPLE, tmp_path / "node 1")
    assert rows((tmp_path / "node 1").as_uri()) == rows(str(SAMPLE))
    assert expand(f"{tmp_path.as_uri()}/n*") == [str(tmp_path / "node 1")]
    as_hadoop_prints_it = f"file:{tmp_path}/node%201"
    assert absolute(as_hadoop_prints_it) == as_hadoop_prints_it
    assert rows(as_hadoop_prints_it) == rows(str(SAMPLE))
    assert open_store(f"file:{tmp_path}/new").root == f"{tmp_path}/new"


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("ftp://host/x", "'ftp' is no known file system: give a local path, or a URI of file"),
        ("s3:///x", "s3:///x: a bucket must be named: s3://bucket/..."),
        ("mock://x/y", "mock://x/y: there is no such file or directory"),
        ("mock://x/*", "mock://x/*: no path matches this pattern"),
    ],
)
def test_an_unreachable_store_is_reported(uri, message):
    with pytest.raises(SourceError) as raised:
        for path in expand(uri):
            list_files(path)
    assert message in str(raised.value)


# With a server


@dataclass
class Refusing:
    """A file system that says what S3 says to those who may not look."""

    said: str

    def get_file_info(self, _: object) -> None:
        raise OSError(self.said)


def test_refused_access_names_what_to_set(monkeypatch):
    message = "When getting information for key 'x' in bucket 'b': AWS Error ACCESS_DENIED during "
    refusing = Refusing(message + "HeadObject operation: No response body. (Request ID: 1)")
    monkeypatch.setattr(
        "quorate.spark.files.paths.file_system", lambda path: (refusing, "x", "s3://b/")
    )
    with pytest.raises(SourceError, match=r"s3://b/x: .* access is refused: set AWS_ACCESS_KEY"):
        list_files("s3://b/x")


@pytest.fixture(scope="module")
def s3():
    """A bucket `logs` with the sample, as a directory and in archives; an empty one, `tables`."""
    from moto.server import (
        ThreadedMotoServer,  # a second, imported here because collection does not need it
    )

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in options.items():
            patch.setenv(name, value)
        endpoint = options["AWS_ENDPOINT_URL"]
        # its first answer takes longer than the 3 s that PyArrow waits for one
        urllib.request.urlopen(endpoint, timeout=300).close()
        system = fs.S3FileSystem(endpoint_override=endpoint, allow_bucket_creation=True)
        for bucket in ("logs", "tables"):
            system.create_dir(bucket)
        fs.copy_files(str(SAMPLE), "logs/fleet/node1", destination_filesystem=system)
        modes: dict[str, Literal["w|", "w|gz"]] = {"node1.tar": "w|", "node1.tar.gz": "w|gz"}
        for name, mode in modes.items():
            with (
                system.open_output_stream(f"logs/{name}", compression=None) as out,
                tarfile.open(fileobj=out, mode=mode) as packed,
            ):
                packed.add(SAMPLE, "node1")
        yield options
    server.stop()


@pytest.mark.parametrize(
    "path", one_in(3, ["fleet/node1", "fleet/n*[1]", "node1.tar", "node1.tar.gz"])
)
@pytest.mark.parametrize("scheme", one_in(2, ["s3", "s3a"]))
def test_logs_are_read_from_s3(s3, scheme, path):
    assert rows(f"{scheme}://logs/{path}") == rows(str(SAMPLE))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("s3://nowhere/x", "there is no such bucket, or these credentials may not see it"),
        ("s3://logs/nothing", "s3://logs/nothing: there is no such file or directory"),
        ("s3://logs/fleet/*.tar", "no path matches this pattern"),
    ],
)
def test_a_missing_object_or_bucket_is_reported(s3, path, message):
    with pytest.raises(SourceError) as raised:
        rows(path)
    assert message in str(raised.value)


@pytest.mark.slow
def test_the_tables_of_a_warehouse_in_s3(s3):
    """Without Spark: files, the commit of their names, a rival that is refused, sweeping."""
    home = "s3://tables/small"
    store, rival = open_store(home), open_store(home)
    for run, epoch in ((store.next_run(), 1), (2, 2)):
        writer = TableWriter(home, "epochs", file_name("epochs", run))
        writer.add(("c", epoch, 10 * run, 10 * run + 10, 0, 0, None, None))
        plan = RunPlan(run, "bronze")
        plan.add(writer.close())
        store.commit(plan)
    with pytest.raises(ConcurrentRunError, match="s3://tables/small: another job has changed"):
        rival.commit(RunPlan(2, "bronze"))
    again = open_store(home)
    assert (again.last_run(), again.recover()) == (2, False)
    paths = [file.path for file in again.files("epochs")]
    batches = [batch for path in paths for batch in read_batches(home, "epochs", path)]
    assert sorted(row["epoch"] for batch in batches for row in batch.to_pylist()) == [1, 2]
    left_behind = TableWriter(home, "epochs", file_name("epochs", 2))
    left_behind.add(("c", 3, 0, 1, 0, 0, None, None))
    left_behind.close()
    assert again.sweep(0) >= 1
    assert [file.path for file in again.files("epochs")] == paths
    assert len(rows_of(again, "epochs")) == 2


@pytest.mark.slow
@one_day_in(2, 0)
def test_a_warehouse_in_s3(spark, s3, tmp_path):
    """From logs there to Delta tables there, read again by Spark though its Hadoop has no S3."""
    from quorate.spark.history.job import history
    from quorate.spark.jobs.compact import compact_warehouse
    from quorate.spark.tables.ingest import ingest

    home = "s3://tables/warehouse"
    for name, value in s3.items():
        spark.sparkContext.environment[name] = value
    spark.dataSource.register(MetadataLogSource)  # anew: it has taken the settings of its time
    try:
        for _ in range(2):
            ingest(spark, ["s3://logs/fleet/*"], home)
        ingest(spark, [str(SAMPLE)], str(tmp_path / "here"))
        store, here = open_store(home), open_store(str(tmp_path / "here"))
        assert store.last_run() == here.last_run()
        for table in ("log", "changes", "partitions", "brokers", "clusters"):
            texts = [sorted(map(str, _plain(rows_of(one, table)))) for one in (store, here)]
            assert texts[0] == texts[1], table
        question = f"SELECT count(*) AS n FROM partitions_now WHERE cluster_id = '{DYNAMIC}'"
        answers = [history(spark, one.root, question).collect()[0][0] for one in (store, here)]
        assert answers[0] == answers[1] > 0
        assert compact_warehouse(spark, home, keep_hours=0).deleted >= 0
    finally:
        for name in s3:
            spark.sparkContext.environment.pop(name)
        spark.dataSource.register(MetadataLogSource)


def _plain(rows):
    return [{key: value for key, value in row.items() if key != "file"} for row in rows]


def test_a_storage_option_must_have_a_value(capsys):
    code = main.run(["pipeline", "compact", "-w", "w", "--storage-option", "AWS_REGION"])
    assert code == 2
    assert "--storage-option AWS_REGION: it must be NAME=VALUE" in capsys.readouterr().err
