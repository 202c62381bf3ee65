"""The live source over SASL_SSL: a real node, the reader as Spark drives it, and a query of Spark."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from interop.kafka import Quorum
from interop.process import wait_for
from quorate.security.tls.authority import Authority
from quorate.spark.data_source import FORMAT
from quorate.spark.files.paths import SourceError
from quorate.spark.stream.live import RefusedError
from quorate.spark.stream.options import parse_stream_options
from spark.streams import Stream

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
SECRET, WRONG = "Kx7-secret-of-spark", "Zz3-wrong-secret"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
USERS = f'user_node="{SECRET}" user_spark="{SECRET}" user_guest="{SECRET}"'


def stores(folder):
    now = datetime.now(UTC)
    authority = Authority.create(now, 1)
    (folder / "node.pem").write_bytes(authority.issue("node", ["127.0.0.1"], now, 1))
    (folder / "ca.pem").write_bytes(authority.certificate)
    return folder


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """One node with SASL_SSL, PLAIN and an authorizer; its folder has `ca.pem`."""
    folder = stores(tmp_path_factory.mktemp("secured"))
    config = {
        "listener.security.protocol.map": "CONTROLLER:SASL_SSL",
        "ssl.keystore.location": folder / "node.pem",
        "ssl.truststore.location": folder / "ca.pem",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": (
            f'{MODULE} username="node" password="{SECRET}" {USERS};'
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:node;User:spark",
    }
    with Quorum(folder / "quorum", {1: "quorate"}, config=config) as quorum:
        quorum.format()
        quorum.start()
        quorum.wait_until_listening()
        (folder / "secret").write_text(SECRET)
        yield quorum, folder


def keys(folder, user="spark", password="${dir:%s:secret}"):
    """The options; the password comes from a config provider."""
    password = password % folder if "%s" in password else password
    return {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{MODULE} username="{user}" password="{password}";',
        "config.providers": "dir",
        "config.providers.dir.class": (
            "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
        ),
    }


def test_the_reader_and_its_tasks_log_in(secured):
    quorum, folder = secured
    stream = Stream(bootstrap=quorum.bootstrap, **keys(folder))
    wait_for(lambda: stream.step() and stream.rows, "records")
    assert any(row["type"] == "FeatureLevelRecord" for row in stream.rows)
    assert SECRET not in repr(stream.reader.__dict__)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"user": "spark", "password": WRONG}, "Invalid username or password"),
        ({"user": "guest"}, "CLUSTER_AUTHORIZATION_FAILED"),
    ],
)
def test_a_refused_login_ends_the_stream_at_once(secured, change, message):
    quorum, folder = secured
    stream = Stream(bootstrap=quorum.bootstrap, timeoutMs=60_000, **keys(folder, **change))
    with pytest.raises(SourceError, match=message) as caught:
        stream.step()
    assert WRONG not in str(caught.value)


def test_a_certificate_of_another_authority_is_refused_with_its_names(secured, tmp_path):
    quorum, folder = secured
    stream = Stream(
        bootstrap=quorum.bootstrap,
        timeoutMs=60_000,
        **keys(folder) | {"ssl.truststore.location": str(stores(tmp_path) / "ca.pem")},
    )
    with pytest.raises(
        RefusedError, match=r"TLS, refused here: .*ssl\.truststore here \[subject CN=node"
    ):
        stream.step()


def test_a_query_of_spark_reads_the_log(spark, secured, tmp_path):
    quorum, folder = secured
    frame = spark.readStream.format(FORMAT).option("bootstrap.controllers", quorum.bootstrap)
    frame = frame.options(columns="offset,type", **keys(folder)).load()
    query = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "at"))
    query.trigger(availableNow=True).start(str(tmp_path / "rows")).awaitTermination()
    found = {row.type for row in spark.read.parquet(str(tmp_path / "rows")).collect()}
    assert "FeatureLevelRecord" in found


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"security.protocol": "TLS"}, "security.protocol"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, "GSSAPI"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "/none"}, "ssl.truststore"),
    ],
)
def test_wrong_options_are_named_on_the_driver(options, message):
    with pytest.raises(SourceError, match=f"option .*{message}"):
        parse_stream_options({"bootstrap.controllers": "127.0.0.1:1", **options})


def test_security_without_controllers_is_refused(tmp_path):
    with pytest.raises(SourceError, match="a path has no connections"):
        parse_stream_options({"path": str(tmp_path), "security.protocol": "SSL"})
