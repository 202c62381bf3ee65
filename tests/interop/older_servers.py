"""The admin client and the tools on clusters of older Kafka releases: run by hand, not in CI.

    pytest -n 0 tests/interop/older_servers.py

Needs the jars of 3.9.1, 4.0.1 and 4.1.1 beside those of 4.3.1, in `.kafka/libs-3.9.1` and so on:
`mvn -f tools/kafka-pom.xml dependency:copy-dependencies -Dkafka.version=4.1.1 -DoutputDirectory=...`,
for 3.9.1 with `-DexcludeArtifactIds=reload4j,slf4j-reload4j`: its loggers take the place of ours.
The scenarios are those of the tests on 4.3.1: Kafka's tools of 4.3.1 and ours must agree.
docs/migrating.md has the results.
"""

from fnmatch import fnmatch

import pytest

from interop.java import KAFKA_3_9, KAFKA_4_0, KAFKA_4_1
from interop.kafka import KINDS, JavaNode, Quorum
from interop.test_admin_client import *  # noqa: F403 - its tests and fixtures run here
from interop.test_admin_tools_agree import *  # noqa: F403

BROKER = 11
pytestmark = [pytest.mark.interop, pytest.mark.slow]
SERVERS = {
    KAFKA_3_9: ("java-3.9", 21),
    KAFKA_4_0: ("java-4.0", 25),
    KAFKA_4_1: ("java-4.1", 27),
}
"""Release -> the kind of its nodes, and its metadata.version."""
LIMITS_OF_SERVERS = {
    "test_configs_of_nodes[*-controllers]": "a controller takes its own id for one of a broker",
    "test_controllers_describe_topics_as_brokers_do[*]": "only Quorate's controllers do",
    "test_a_broker_that_is_not_registered[4.0.1-*]": "the error has a code and no text",
    "test_a_broker_that_is_not_registered[3.9.1-*]": "the error has a code and no text",
    "test_configs_of_resources[3.9.1]": "Kafka's tool of 4.3.1 cannot describe configs of groups there",
    "test_fenced_brokers_are_listed[3.9.1]": "Kafka's tool names a field, ours the API and the version",
    "test_loggers_of_a_controller[3.9.1]": "levels are those of Log4j 1, whose jar is left out",
}
"""Test -> what its servers do otherwise than those of 4.3.1."""


@pytest.fixture(scope="module", params=SERVERS)
def server(request):
    """The release of the cluster."""
    return request.param


@pytest.fixture  # type: ignore[no-redef]
def metadata_level(server):
    return SERVERS[server][1]


@pytest.fixture(autouse=True)
def _limits(request):
    for name, reason in LIMITS_OF_SERVERS.items():
        # A name has brackets, which mean a set of letters to fnmatch.
        if fnmatch(request.node.name, name.replace("[", "[[]")):
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))


@pytest.fixture(scope="module")  # type: ignore[no-redef]
def quorum(server, tmp_path_factory):
    """A controller and a broker of the release."""
    config = {
        "metadata.max.idle.interval.ms": 0,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:ANONYMOUS",
    }
    kind, _ = SERVERS[server]
    with Quorum(tmp_path_factory.mktemp("older"), {1: kind}, config=config) as quorum:
        quorum.format()
        quorum.start()
        quorum.leader()
        broker_class = KINDS[kind]
        assert issubclass(broker_class, JavaNode)
        quorum.broker_class = broker_class
        quorum.add_broker(BROKER).wait_until_listening()
        yield quorum
