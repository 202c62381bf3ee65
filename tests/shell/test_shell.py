"""The metadata shell beside Kafka's: expected lines are those that kafka-metadata-shell 4.3.1 prints."""

import pytest
from immutables import Map

from quorate.base.ids import Listener, ReplicaKey, uuid_from_text
from quorate.formats.versions import MetadataVersion
from quorate.metadata.image import (
    Acl,
    Broker,
    Cluster,
    ConfigResource,
    Controller,
    DelegationToken,
    Endpoint,
    Features,
    Image,
    Partition,
    ScramCredential,
    ScramKey,
    Topic,
    Topics,
    VersionRange,
)
from quorate.metadata.loader import Provenance, Published
from quorate.raft.values import ControlState, LeaderChange, Voter
from quorate.shell.commands import ShellState, complete, run
from quorate.shell.image_tree import ControlView, MetadataView, root
from quorate.shell.nodes import Redaction, differences

A = uuid_from_text("4c9z-gOMQfmRn6aeQqXmzA")
B = uuid_from_text("NB9CubACuqb8bQns5T_zhw")
ENDPOINT = Endpoint("PLAINTEXT", "127.0.0.1", 21711, 0)
FEATURES = (
    VersionRange("kraft.version", 0, 1),
    VersionRange("x", 1, 1),
    VersionRange("y", 0, 32767),
)
PARTITION = Partition((11, 12), (B, B), (11,), (), (12,), 11, 0, 0, 1, (12,), ())
IMAGE = Image(
    features=Features(MetadataVersion.IBP_4_3_IV0, Map({"group.version": 1})),
    cluster=Cluster(
        Map(
            {
                11: Broker(11, 13, A, (ENDPOINT,), FEATURES, directories=(B,)),
                12: Broker(12, 14, A, rack="r1", fenced=False, cordoned_directories=(B,)),
            }
        ),
        Map({1: Controller(1, B, False, (Endpoint("CONTROLLER", "h", 1, 3),))}),
    ),
    topics=Topics(Map({A: Topic(A, "orders", Map({0: PARTITION}))}), Map({"orders": A})),
    configs=Map(
        {
            ConfigResource(2, "orders"): Map({"retention.ms": "5"}),
            ConfigResource(4, ""): Map({"ssl.key.password": "secret", "no.such.config": "x"}),
        }
    ),
    client_quotas=Map(
        {
            (("client-id", "a(1)\\"), ("user", "alice")): Map({"consumer_byte_rate": 2097152.0}),
            (("user", None),): Map({"request_percentage": 5e7}),
            (("user", "<default>"),): Map({"request_percentage": 1.0}),
        }
    ),
    next_producer_id=1000,
    acls=Map({A: Acl(2, "orders", 3, "User:alice", "*", 3, 3)}),
    scram=Map({ScramKey(1, "admin"): ScramCredential(b"\x01\xff", b"\x02", b"\x03", 4096)}),
    delegation_tokens=Map(
        {"t1": DelegationToken("User:o", "User:r", ("User:x", "User:y"), 1, 3, 2)}
    ),
)
VOTER = Voter(ReplicaKey(1, B), (Listener("CONTROLLER", "h", 9093),), 0, 1)
CONTROL = ControlView(ControlState(1, (VOTER,)), LeaderChange(1, (1,), (1,)), 7)
VIEW = MetadataView(Published(IMAGE, Provenance(227, 3, 1763705690200, True)), CONTROL)
CAT = {
    "/image/provenance": "offset 227, epoch 3, time 2025-11-21T06:14:50.2Z[UTC]",
    "/image/features/metadataVersion": "Optional[4.3-IV0]",
    "/image/features/finalized_group.version": "1",
    "/image/producerIds/nextProducerId": "1000",
    "/image/configs/TOPIC:orders/retention.ms": "5",
    "/image/configs/BROKER/ssl.key.password": "secret",
    "/image/clientQuotas/user(<default>)/request_percentage": "5.0E7",
    "/image/topics/byName/orders/id": "4c9z-gOMQfmRn6aeQqXmzA",
    "/image/topics/byId/4c9z-gOMQfmRn6aeQqXmzA/name": "orders",
    "/image/topics/byName/orders/0": "PartitionRegistration(replicas=[11, 12], "
    "directories=[NB9CubACuqb8bQns5T_zhw, NB9CubACuqb8bQns5T_zhw], isr=[11], removingReplicas=[], "
    "addingReplicas=[12], elr=[12], lastKnownElr=[], leader=11, leaderRecoveryState=RECOVERED, "
    "leaderEpoch=0, partitionEpoch=1)",
    "/image/cluster/brokers/11": "BrokerRegistration(id=11, epoch=13, "
    "incarnationId=4c9z-gOMQfmRn6aeQqXmzA, listeners=[Endpoint(listenerName='PLAINTEXT', "
    "securityProtocol=PLAINTEXT, host='127.0.0.1', port=21711)], "
    "supportedFeatures={kraft.version: 0-1, x: 1, y: 0+}, rack=Optional.empty, fenced=true, "
    "inControlledShutdown=false, isMigratingZkBroker=false, directories=[NB9CubACuqb8bQns5T_zhw], "
    "cordonedDirectories=null)",
    "/image/cluster/brokers/12": "BrokerRegistration(id=12, epoch=14, "
    "incarnationId=4c9z-gOMQfmRn6aeQqXmzA, listeners=[], supportedFeatures={}, rack=Optional[r1], "
    "fenced=false, inControlledShutdown=false, isMigratingZkBroker=false, directories=[], "
    "cordonedDirectories=[NB9CubACuqb8bQns5T_zhw])",
    "/image/cluster/controllers/1": "ControllerRegistration(id=1, "
    "incarnationId=NB9CubACuqb8bQns5T_zhw, zkMigrationReady=false, "
    "listeners=[Endpoint(listenerName='CONTROLLER', securityProtocol=SASL_SSL, host='h', port=1)], "
    "supportedFeatures={})",
    "/image/acls/byId/4c9z-gOMQfmRn6aeQqXmzA": "StandardAcl[resourceType=TOPIC, "
    "resourceName=orders, patternType=LITERAL, principal=User:alice, host=*, operation=READ, "
    "permissionType=ALLOW]",
    "/image/scram/SCRAM-SHA-256/admin": "ScramCredentialData(salt=01ff, storedKey=02, serverKey=03, "
    "iterations=4096)",
    "/image/delegationToken/t1": "DelegationTokenDatatokenId=t1(owner=User:o(tokenRequester=User:r"
    "(renewers=User:x User:y, issueTimestamp=1, maxTimestamp=3), expiryTimestamp=2",
    "/control/voters/1/endpoints": "CONTROLLER://h:9093",
    "/control/leader/epoch": "7",
}
LINES = {
    "ls": ["control", "image", "local"],
    "ls /image/provenance /image/producerIds": ["provenance", "", "producerIds:", "nextProducerId"],
    "ls /image/{cluster,scram}": [
        "cluster:",
        "brokers",
        "controllers",
        "",
        "scram:",
        "SCRAM-SHA-256",
        "SCRAM-SHA-512",
    ],
    "ls /image/configs": ["BROKER", "TOPIC:orders"],
    "ls /image/clientQuotas": [
        "clientId(a\\(1\\)\\\\)_user(alice)",
        "user(<default>)",
        "user(\\<default>)",
    ],
    "ls /nope": ["ls: /nope: no such file or directory."],
    "find /image/producerIds": ["/image/producerIds", "/image/producerIds/nextProducerId"],
    "find nope": ["find: nope: no such file or directory."],
    "tree /image/producerIds": ["nextProducerId:", "  1000"],
    "tree nope": ["tree: nope: No such file or directory."],
    "cat /image": ["cat: /image: Is a directory"],
    "cat nope": ["cat: nope: No such file or directory."],
    "cat": ["too few arguments"],
    "l": ["invalid choice: 'l': did you mean 'ls'?"],
    "cd": ["invalid choice: 'cd' (choose from 'cat', 'diff', 'find', 'ls', 'tree')"],
}
INTERACTIVE = {
    "cd nope": ["cd: nope: no such directory."],
    "cd /image/provenance": ["cd: /image/provenance: not a directory."],
    "c": ["ambiguous command: c could match cat, cd"],
    "diff 1 2": [
        "diff runs outside of the shell: quorate metadata-shell -d DIR diff FROM TO [PATH]"
    ],
    "pwd x": ["unrecognized arguments: 'x'"],
    "ls -x": ["unrecognized arguments: '-x'"],
    "man nope": ["man: unknown command nope. Type help to get a list of commands."],
    "history x": [
        "argument numEntriesToShow: could not convert 'x' to Integer (For input string: \"x\")"
    ],
    "history 1": ["    1  second"],
    "history": ["    0  first", "    1  second"],
    "man pwd": ["pwd: Print the current working directory.", "", "usage: pwd"],
}


def state(**fields) -> ShellState:
    return ShellState(root(VIEW), **fields)


@pytest.mark.parametrize("path", CAT)
def test_a_file_has_the_text_of_kafka(path):
    assert list(run(state(), ["cat", path], interactive=False)) == [CAT[path]]


def test_every_file_of_the_image_is_compared():
    """Files that are alike by kind need one test each."""
    found = set(run(state(), ["find", "/image"], interactive=False))
    assert {path for path in CAT if path.startswith("/image/")} <= found


@pytest.mark.parametrize("line", LINES)
def test_a_command_prints_the_lines_of_kafka(line):
    assert list(run(state(), line.split(), interactive=False)) == LINES[line]


@pytest.mark.parametrize("line", INTERACTIVE)
def test_an_interactive_command_prints_the_lines_of_kafka(line):
    given = state(history=["first", "second"])
    assert list(run(given, line.split(), interactive=True)) == INTERACTIVE[line]


def test_the_working_directory_holds_for_later_commands():
    given = state()
    for line in ("cd image", "cd ../image/./topics", "cd by*ame"):
        assert list(run(given, line.split(), interactive=True)) == []
    assert list(run(given, ["pwd"], interactive=True)) == ["/image/topics/byName"]
    assert list(run(given, ["ls"], interactive=True)) == ["orders"]
    assert not given.ended
    assert list(run(given, ["exit"], interactive=True)) == []
    assert given.ended


def test_names_stand_in_columns_where_there_is_a_terminal():
    """`LsCommandHandler.calculateColumnSchema`: the most columns that fit."""
    lines = list(run(state(width=40), ["ls", "/image"], interactive=True))
    assert lines == [
        "acls          delegationToken  scram",
        "clientQuotas  features         topics",
        "cluster       producerIds      ",
        "configs       provenance       ",
    ]
    assert len(list(run(state(width=7), ["ls", "/image"], interactive=True))) == 10


@pytest.mark.parametrize(
    ("path", "text"),
    {
        "/image/scram/SCRAM-SHA-256/admin": "ScramCredentialData(salt=[redacted], "
        "storedKey=[redacted], serverKey=[redacted], iterations=[redacted])",
        "/image/configs/BROKER/ssl.key.password": "[redacted]",
        "/image/configs/BROKER/no.such.config": "[redacted]",
        "/image/configs/TOPIC:orders/retention.ms": "5",
    }.items(),
)
def test_redaction_hides_what_is_secret_or_unknown(path, text):
    given = state(redaction=Redaction.NORMAL)
    assert list(run(given, ["cat", path], interactive=False)) == [text]


def test_redaction_hides_all_of_a_token():
    given = state(redaction=Redaction.NORMAL)
    (line,) = run(given, ["cat", "/image/delegationToken/t1"], interactive=False)
    assert "User" not in line
    assert line.count("[redacted]") == 7


@pytest.mark.parametrize(
    ("line", "words"),
    {
        "c": ["cat", "cd"],
        "man l": ["ls"],
        "cat /image/to": ["/image/topics/"],
        "cat /image/topics/byName/orders/": [
            "/image/topics/byName/orders/0",
            "/image/topics/byName/orders/id",
            "/image/topics/byName/orders/name",
        ],
        "ls i": ["image/"],
        "cat /nope/x": [],
        "pwd i": [],
        "nope i": [],
    }.items(),
)
def test_the_last_word_is_completed(line, words):
    assert complete(state(), line) == words


def test_differences_name_what_is_new_gone_and_changed():
    topics = Topics(
        Map({A: Topic(A, "orders", Map({1: PARTITION}))}),
        Map({"orders": A}),
    )
    before = MetadataView(
        Published(Image(topics=topics, next_producer_id=5), Provenance()), CONTROL
    )
    after = MetadataView(Published(Image(next_producer_id=6), Provenance()), CONTROL)
    found = list(differences(root(before), root(after), "/", Redaction.DISABLED))
    assert [(one.path, one.after) for one in found] == [
        ("/image/producerIds/nextProducerId", "6"),
        *(
            (f"/image/topics/{kind}/{name}", None)
            for kind, topic in (("byId", "4c9z-gOMQfmRn6aeQqXmzA"), ("byName", "orders"))
            for name in (f"{topic}/1", f"{topic}/id", f"{topic}/name")
        ),
    ]


def test_a_changed_secret_is_a_difference_that_shows_nothing():
    other = ScramCredential(b"\x01", b"\x02", b"\x03", 4096)
    old, new = (
        root(
            MetadataView(
                Published(Image(scram=Map({ScramKey(1, "a"): one})), Provenance()), CONTROL
            )
        )
        for one in (IMAGE.scram[ScramKey(1, "admin")], other)
    )
    (one,) = differences(old, new, "/", Redaction.NORMAL)
    assert one.path == "/image/scram/SCRAM-SHA-256/a"
    assert one.before == one.after
    assert "[redacted]" in (one.after or "")
