"""Kafka's tools and ours on one cluster, of a Quorate controller and a Java broker: the same words,
the same text and exit code.

`{t}` in the words is a name of its own for each tool, so that both change the same state.
"""

import json
import re
from typing import Any

import pytest

from interop.java import KAFKA_4_3, KAFKA_4_4, java_tool
from interop.kafka import Quorum
from interop.process import QUORATE, run_tool, wait_for

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.xdist_group("admin-tools")]

MAIN = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "configs": "kafka.admin.ConfigCommand",
    "acls": "org.apache.kafka.tools.AclCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
}
BROKER, OTHER = 11, 12


@pytest.fixture(scope="module")
def quorum(tmp_path_factory):
    quiet = {
        "metadata.max.idle.interval.ms": 0,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:ANONYMOUS",
    }
    with Quorum(tmp_path_factory.mktemp("admin-tools"), {1: "quorate"}, config=quiet) as quorum:
        quorum.format()
        quorum.start()
        quorum.leader()
        quorum.add_broker(BROKER).wait_until_listening()
        yield quorum


@pytest.fixture
def both(quorum):
    """Run Kafka's tool, then ours; their results with `{t}` for the tool's own name."""

    def both(tool, *words, through="server", release=KAFKA_4_3):
        node = quorum.nodes[BROKER] if through == "server" else quorum.nodes[1]
        where = (f"--bootstrap-{through}", node.address)
        found = []
        for name, run in (
            ("kafkas", lambda *line: java_tool(MAIN[tool], *line, release=release)),
            ("quorat", lambda *line: run_tool([*QUORATE, tool, *line])),
        ):
            line = [word.replace("{t}", name) for word in words]
            # The verb of `cluster` comes first.
            verb = line[:1] if tool == "cluster" else []
            result = run(*verb, *where, *line[len(verb) :])
            out, err = (text.replace(name, "{t}") for text in (result.stdout, result.stderr))
            found.append((result.returncode, normal(out), err))
        return found

    return both


def normal(text):
    """Without ids, and without the order of what Java keeps in hash maps."""
    text = re.sub(r"TopicId: \S{22}", "TopicId: <id>", text)
    text = re.sub(r"(Configs: )(\S*)", lambda m: m[1] + in_order(m[2], ","), text)
    return re.sub(
        r"^((?:Quota|SCRAM credential) configs .* are )(.*)$",
        lambda m: m[1] + in_order(m[2], ", "),
        text,
        flags=re.M,
    )


def in_order(text, separator):
    return separator.join(sorted(text.split(separator)))


LOGGED = re.compile(
    r"(WARN|ERROR|INFO) .*| \([\w.$]+\)|\tat .*|\t\.\.\. \d+ more|(\tSuppressed|Caused by): .*"
)
"""Lines of Kafka's loggers, and of stack traces."""


def messages(err):
    """What a tool says on stderr: without logs, Java's stack traces and classes, and the usage."""
    err = re.sub(r"\AUsage: .*?\nError: ", "", err, flags=re.S)  # ours
    err = re.sub(r"^(Option +Description|usage: ).*", "", err, flags=re.S | re.M)
    lines = [line for line in err.splitlines() if line and not LOGGED.fullmatch(line)]
    # A stack trace begins with the message, which was printed before.
    texts = [re.sub(r"^(?:[a-z]\w*\.)+\w+(?:Exception|Error): ", "", line) for line in lines]
    return list(dict.fromkeys(texts))


def agree(both, tool, *words, code=0, **options):
    theirs, ours = both(tool, *words, **options)
    assert theirs[0] == code, theirs
    assert ours[:2] == theirs[:2], (ours, theirs)
    assert messages(ours[2]) == messages(theirs[2]), (ours[2], theirs[2])
    return theirs[1]


def refused(both, tool, *words):
    """Both end with 1, say nothing on stdout, and the first line of Kafka's error is in ours."""
    theirs, ours = both(tool, *words)
    assert (theirs[0], ours[0]) == (1, 1), (theirs, ours)
    assert ours[1] == theirs[1], (ours[1], theirs[1])
    assert messages(theirs[2])[0] in "\n".join(messages(ours[2])), (theirs[2], ours[2])
    assert "Traceback" not in ours[2]


def test_topics(both, quorum):
    create = ("--create", "--topic", "{t}.a", "--partitions", "3", "--config")
    agree(both, "topics", *create, "retention.ms=100000", "--config", "min.insync.replicas=1")
    agree(both, "topics", *create, "retention.ms=1", code=1)
    agree(both, "topics", *create, "retention.ms=1", "--if-not-exists")
    agree(both, "topics", *create[:2], "{t}-b", "--config", "no.such.config=1", code=1)
    agree(both, "topics", *create[:2], "{t}-b", "--replica-assignment", f"{BROKER},{BROKER}")
    agree(both, "topics", *create[:2], "{t}-c", "--replication-factor", "3", code=1)
    agree(both, "topics", *create[:2], "{t}-c", "--partitions", "0", code=1)
    agree(both, "topics", *create[:2], "bad name!", code=1)
    assert agree(both, "topics", "--list", "--topic", "{t}.*") == "{t}-b\n{t}.a\n"
    agree(both, "topics", "--describe", "--topic", "{t}.a")
    agree(both, "topics", "--describe", "--topic", "{t}-b")
    agree(both, "topics", "--describe", "--topic", "{t}.*", "--topics-with-overrides")
    agree(both, "topics", "--describe", "--topic", "{t}.*", "--at-min-isr-partitions")
    agree(both, "topics", "--describe", "--topic", "{t}.*", "--under-min-isr-partitions")
    agree(both, "topics", "--describe", "--topic", "{t}nothing", code=1)
    agree(both, "topics", "--describe", "--topic", "{t}nothing", "--if-exists")
    agree(both, "topics", "--describe", "--topic-id", "AAAAAAAAAAAAAAAAAAAAZg", code=1)
    agree(both, "topics", "--alter", "--topic", "{t}-b", "--partitions", "4")
    agree(both, "topics", "--alter", "--topic", "{t}-b", "--partitions", "1", code=1)
    agree(both, "topics", "--describe", "--topic", "{t}-b")
    agree(both, "topics", "--delete", "--topic", "{t}-b")
    agree(both, "topics", "--delete", "--topic", "{t}-b", code=1)
    agree(both, "topics", "--delete", "--topic", "{t}-b", "--if-exists")
    assert agree(both, "topics", "--list", "--topic", "{t}.*") == "{t}.a\n"


@pytest.mark.parametrize("tool", sorted(MAIN.keys() - {"cluster"}))
def test_versions(tool):
    """Whatever else is on the command line."""
    for words in ((), ("--bootstrap-server", "localhost:1")):
        ran = [java_tool(MAIN[tool], *words, "--version")]
        ran.append(run_tool([*QUORATE, tool, *words, "--version"]))
        theirs, ours = ((each.returncode, each.stdout, each.stderr) for each in ran)
        assert ours == theirs


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("topics", ("--list",)),
        ("acls", ("--list",)),
        ("configs", ("--describe", "--topic", "a")),
        ("leader-election", ("--election-type", "preferred", "--all-topic-partitions")),
        ("reassign-partitions", ("--list",)),
        ("log-dirs", ("--describe",)),
    ],
)
def test_nobody_answers(tool, words, tmp_path):
    """The texts differ, as ours say who was asked; the streams are the same."""
    (file := tmp_path / "client.properties").write_text(
        "default.api.timeout.ms=300\nrequest.timeout.ms=300\n"
    )
    line = ("--bootstrap-server", "localhost:1", "--command-config", str(file), *words)
    theirs = java_tool(MAIN[tool], *line)
    ours = run_tool([*QUORATE, tool, *line])
    assert (theirs.returncode, ours.returncode) == (1, 1), (theirs, ours)
    assert bool(ours.stdout) == bool(theirs.stdout), (ours, theirs)
    assert bool(ours.stderr) == bool(messages(theirs.stderr)), (ours, theirs)


@pytest.mark.parametrize(
    "words",
    [
        ("--list", "--describe"),
        ("--create",),
        ("--alter", "--topic", "a"),
        ("--list", "--partitions", "3"),
        ("--create", "--topic", "a", "--replica-assignment", "1:2", "--partitions", "3"),
        ("--describe", "--topics-with-overrides", "--unavailable-partitions"),
        ("--describe", "--if-exists"),
        ("--list", "--if-not-exists"),
    ],
    ids=" ".join,
)
def test_topics_refuse_wrong_options(both, words):
    refused(both, "topics", *words)


def test_controllers_describe_topics_as_brokers_do(quorum):
    words = ("--describe", "--topic", ".*a", "--json")
    found = []
    for through, node in (("server", quorum.nodes[BROKER]), ("controller", quorum.nodes[1])):
        run = run_tool([*QUORATE, "topics", f"--bootstrap-{through}", node.address, *words])
        assert run.returncode == 0, run
        found.append(json.loads(run.stdout))
    assert found[0] == found[1]
    assert {each["topic"] for each in found[0]} == {"kafkas.a", "quorat.a"}


def configs(both, *words, code=0):
    return agree(both, "configs", *words, code=code)


def test_configs_of_resources(both):
    create = ("--create", "--topic", "{t}-configs")
    agree(both, "topics", *create)
    topic = ("--topic", "{t}-configs")
    configs(
        both, "--alter", *topic, "--add-config", "retention.ms=1000,cleanup.policy=[compact,delete]"
    )
    assert "cleanup.policy=compact,delete" in configs(both, "--describe", *topic)
    configs(both, "--alter", *topic, "--delete-config", "retention.ms,segment.ms")
    configs(both, "--describe", *topic)
    configs(both, "--describe", *topic, "--all")
    configs(both, "--describe", "--topic", "{t}-none")
    broker = ("--entity-type", "brokers", "--entity-name", str(BROKER))
    configs(both, "--alter", *broker, "--add-config", "log.cleaner.threads=2")
    configs(both, "--describe", *broker)
    configs(both, "--describe", *broker, "--all")
    configs(both, "--alter", "--broker-defaults", "--add-config", "log.retention.ms=70000")
    configs(both, "--describe", "--entity-type", "brokers")
    configs(both, "--alter", "--broker-defaults", "--delete-config", "log.retention.ms")
    configs(both, "--describe", "--broker", "77")
    metrics = ("--client-metrics", "{t}-metrics")
    configs(both, "--alter", *metrics, "--add-config", "interval.ms=1000")
    configs(both, "--describe", *metrics)
    group = ("--group", "{t}-group")
    configs(both, "--describe", *group)
    configs(both, "--alter", *group, "--add-config", "consumer.session.timeout.ms=50000")
    configs(both, "--describe", *group)
    loggers = ("--broker-logger", str(BROKER))
    configs(both, "--alter", *loggers, "--add-config", "kafka.server.KafkaApis=DEBUG")
    assert "KafkaApis=DEBUG" in configs(both, "--describe", *loggers)
    configs(both, "--alter", *loggers, "--delete-config", "kafka.server.KafkaApis")


def test_quotas_and_credentials(both):
    user, client = ("--entity-type", "users"), ("--entity-type", "clients")
    name = ("--entity-name", "{t}-alice")
    rates = "producer_byte_rate=10240000,request_percentage=0.5"
    configs(both, "--alter", *user, *name, "--add-config", rates)
    configs(both, "--alter", *user, *name, *client, "--entity-name", "app", "--add-config", rates)
    configs(both, "--alter", *user, *name, *client, "--entity-default", "--add-config", rates)
    assert "1.024E7" in configs(both, "--describe", *user, *name)
    configs(both, "--describe", *user, *name, *client, "--entity-name", "app")
    configs(both, "--describe", *user, *name, *client, "--entity-default")
    configs(both, "--alter", *user, *name, "--delete-config", "producer_byte_rate")
    configs(both, "--describe", "--user", "{t}-alice")
    configs(both, "--alter", "--client-defaults", "--add-config", "request_percentage=50")
    configs(both, "--describe", "--client-defaults")
    # Of an address that nothing connects from: it would throttle the tests that follow.
    configs(both, "--alter", "--ip", "192.0.2.1", "--add-config", "connection_creation_rate=9")
    configs(both, "--describe", "--ip", "192.0.2.1")
    for scram in ("SCRAM-SHA-256=[iterations=8192,password=a=b]", "SCRAM-SHA-512=[password=x]"):
        configs(both, "--alter", "--user", "{t}-bob", "--add-config", scram)
    shown = configs(both, "--describe", "--user", "{t}-bob")
    # A broker answers in the order of a hash map whose keys hash by identity: it differs by process.
    assert "SCRAM-SHA-256=iterations=8192, SCRAM-SHA-512=iterations=4096" in shown
    configs(both, "--alter", "--user", "{t}-bob", "--delete-config", "SCRAM-SHA-256")
    configs(both, "--describe", "--user", "{t}-bob")


ALTER = ("--alter", "--topic", "a", "--add-config")


@pytest.mark.parametrize(
    "words",
    [
        ("--describe", "--alter"),
        ("--describe",),
        ("--describe", "--entity-type", "planets"),
        ("--describe", "--entity-type", "users", "--entity-type", "topics"),
        ("--describe", "--entity-type", "users", "--topic", "a"),
        ("--describe", "--broker", "x"),
        ("--describe", "--entity-type", "broker-loggers"),
        ("--describe", "--entity-type", "topics", "--entity-default"),
        ("--describe", "--topic", "a", "--add-config", "a=b"),
        ("--alter", "--entity-type", "users", "--add-config", "a=b"),
        ("--alter", "--topic", "a"),
        (*ALTER, "a"),
        (*ALTER, "a=b,c"),
        (*ALTER, "a b=c"),
        ("--alter", "--user", "a", "--add-config", "nonsense=1"),
        ("--alter", "--client", "a", "--add-config", "SCRAM-SHA-256=[password=x]"),
        ("--alter", "--user", "a", "--add-config", "producer_byte_rate=x"),
        (
            "--alter",
            "--user",
            "a",
            "--add-config",
            "producer_byte_rate=1,SCRAM-SHA-256=[password=x]",
        ),
        ("--alter", "--user-defaults", "--add-config", "SCRAM-SHA-256=[password=x]"),
        ("--alter", "--user", "a", "--add-config", "SCRAM-SHA-256=[iterations=9,password=x]"),
        ("--alter", "--user", "a", "--delete-config", "producer_byte_rate"),
        ("--alter", "--ip", "127.0.0.1", "--add-config", "a=1"),
        ("--alter", "--broker-logger", str(BROKER), "--add-config", "no.such.logger=INFO"),
    ],
    ids=" ".join,
)
def test_configs_refuse_wrong_options(both, words):
    refused(both, "configs", *words)


def acls(both, *words, code=0, **options):
    theirs, ours = both("acls", *words, **options)
    assert (theirs[0], ours[0]) == (code, code), (theirs, ours)
    # Java keeps resources and entries in hash sets.
    lines = [sorted(map(str.strip, text.splitlines())) for text in (ours[1], theirs[1])]
    assert lines[0] == lines[1]
    assert messages(ours[2]) == messages(theirs[2])
    return ours[1]


@pytest.mark.parametrize("through", ["server", "controller"])
def test_acls(both, through):
    def run(*words, **options):
        return acls(both, *words, through=through, **options)

    alice = ("--allow-principal", "User:{t}-alice")
    topic = ("--topic", "{t}-acl")
    run("--add", *alice, "--operation", "Read", "--operation", "Write", *topic)
    assert "already exists" in run("--add", *alice, "--operation", "Read", *topic)
    run("--add", *alice, "--deny-principal", "User:{t}-eve", "--deny-host", "10.0.0.1", *topic)
    prefixed = ("--resource-pattern-type", "prefixed")
    run("--add", *alice, "--operation", "DescribeConfigs", *topic, *prefixed)
    run("--add", *alice, "--producer", "--consumer", "--idempotent", *topic, "--group", "{t}-group")
    run("--add", *alice, "--operation", "CreateTokens", "--user-principal", "User:{t}")
    run("--list", *topic)
    run("--list", "--topic", "{t}-acl-more", "--resource-pattern-type", "match")
    run("--list", *topic, "--resource-pattern-type", "any", "--principal", "User:{t}-alice")
    run("--remove", *alice, "--operation", "Read", *topic, "--force")
    run("--list", *topic)
    run("--remove", *topic, "--resource-pattern-type", "any", "--force")
    assert run("--list", *topic) == ""
    run("--remove", "--group", "{t}-group", "--force")
    run("--remove", "--cluster", "--force")
    run("--remove", "--user-principal", "User:{t}", "--force")


@pytest.mark.parametrize(
    "words",
    [
        ("--list", "--add"),
        ("--list", "--producer"),
        ("--add", "--allow-principal", "User:a"),
        ("--add", "--topic", "t"),
        ("--add", "--topic", "t", "--principal", "User:a"),
        ("--add", "--producer", "--group", "g"),
        ("--add", "--consumer", "--topic", "t"),
        ("--add", "--idempotent", "--topic", "t", "--allow-principal", "User:a"),
        ("--add", "--topic", "t", "--allow-principal", "User:a", "--resource-pattern-type", "any"),
    ],
    ids=" ".join,
)
def test_acls_refuse_wrong_options(both, words):
    refused(both, "acls", *words)


def test_cluster(both, quorum):
    for through in ("server", "controller"):
        assert agree(both, "cluster", "cluster-id", through=through).startswith("Cluster ID: ")
        agree(both, "cluster", "list-endpoints", through=through)
        agree(both, "cluster", "api-versions", through=through, release=KAFKA_4_4)
    agree(both, "cluster", "unregister-controller", "--id", "9", release=KAFKA_4_4)
    refused(both, "cluster", "unregister", "--id", "99")


def test_fenced_brokers_are_listed(both):
    agree(both, "cluster", "list-endpoints", "--include-fenced-brokers")


def test_leader_election(both, tmp_path):
    agree(both, "topics", "--create", "--topic", "{t}-elect", "--partitions", "2")
    preferred = ("--election-type", "preferred")
    agree(both, "leader-election", *preferred, "--topic", "{t}-elect", "--partition", "1")
    agree(both, "leader-election", *preferred, "--all-topic-partitions")
    agree(both, "leader-election", *preferred, "--topic", "{t}-none", "--partition", "1", code=1)
    unclean = ("--election-type", "unclean", "--topic", "{t}-elect", "--partition", "0")
    agree(both, "leader-election", *unclean)


@pytest.mark.parametrize(
    "words",
    [
        ("--all-topic-partitions",),
        ("--election-type", "preferred"),
        ("--election-type", "preferred", "--topic", "a"),
        ("--election-type", "preferred", "--all-topic-partitions", "--partition", "1"),
        ("--election-type", "preferred", "--all-topic-partitions", "--topic", "a"),
    ],
    ids=" ".join,
)
def test_leader_election_refuses_wrong_options(both, words):
    refused(both, "leader-election", *words)


def test_log_dirs(both):
    theirs, ours = both("log-dirs", "--describe", "--topic-list", "nothing")
    assert theirs[0] == ours[0] == 0
    shown = [text.splitlines() for _, text, _ in (theirs, ours)]
    assert shown[0][:2] == shown[1][:2]
    assert json.loads(shown[0][2]) == json.loads(shown[1][2])
    assert messages(theirs[2]) == messages(ours[2])
    refused(both, "log-dirs", "--describe", "--broker-list", "98,99")
    refused(both, "log-dirs")


def test_delegation_tokens(both, tmp_path):
    """The connection is not authenticated, so the cluster refuses every request alike."""
    file = tmp_path / "client.properties"
    file.write_text("client.id=test\n")
    config = ("--command-config", str(file))
    for words in (
        ("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:a"),
        ("--renew", "--renew-time-period", "-1", "--hmac", "AAAA"),
        ("--describe", "--owner-principal", "User:a"),
    ):
        theirs, ours = both("delegation-tokens", *config, *words)
        assert theirs[:2] == ours[:2]
        assert messages(theirs[2])[0] in ours[2]
    for wrong in (["--create"], ["--create", "--renew"], ["--renew", "--hmac", "AAAA"]):
        refused(both, "delegation-tokens", *config, *wrong)
    refused(both, "delegation-tokens", "--describe")


@pytest.fixture
def reassign(both, tmp_path):
    """Run both tools with a plan for `{t}-move`, each with its own file."""

    def reassign(action, *words, plan=None, code=0):
        line = [f"--{action}", *words]
        if plan is not None:
            for name in ("kafkas", "quorat"):
                text = json.dumps(plan).replace("{t}", name)
                (tmp_path / f"{name}.json").write_text(text)
            option = "topics-to-move" if action == "generate" else "reassignment"
            line += [f"--{option}-json-file", str(tmp_path / "{t}.json")]
        theirs, ours = both("reassign-partitions", *line)
        assert (theirs[0], ours[0]) == (code, code), (theirs, ours)
        assert messages(ours[2]) == messages(theirs[2]), (theirs[2], ours[2])
        return [result[1] for result in (theirs, ours)]

    return reassign


def to(*partitions, log_dirs=None):
    """A plan for `{t}-move`: the replicas of partitions 0, 1, ..."""
    more = {} if log_dirs is None else {"log_dirs": log_dirs}
    return {
        "version": 1,
        "partitions": [
            {"topic": "{t}-move", "partition": index, "replicas": list(replicas), **more}
            for index, replicas in enumerate(partitions)
        ],
    }


def test_reassignments(both, reassign, quorum):
    def same(*words, **options):
        theirs, ours = reassign(*words, **options)
        # Kafka's tool prints a trace on stdout after some errors, and names its exception.
        theirs = re.sub(r"^(Error: )[\w.]+Exception: ", r"\1", theirs)
        if ours.startswith("Error: "):
            theirs, ours = theirs.splitlines()[0], ours.splitlines()[0]
        assert ours == theirs
        return ours

    # Last in this file, for with two brokers the places of replicas differ from tool to tool.
    quorum.add_broker(OTHER).wait_until_listening()
    create = ("--create", "--topic", "{t}-move", "--replica-assignment")
    agree(both, "topics", *create, f"{BROKER},{BROKER}")
    assert same("list") == "No partition reassignments found.\n"
    topics = {"topics": [{"topic": "{t}-move"}], "version": 1}
    for texts in reassign("generate", "--broker-list", str(OTHER), plan=topics):
        proposed = json.loads(texts.splitlines()[4])["partitions"]
        assert [each["replicas"] for each in proposed] == [[OTHER], [OTHER]]
        current = json.loads(texts.splitlines()[1])["partitions"]
        assert all(each["log_dirs"][0].startswith("/") for each in current)
    same("generate", "--broker-list", "11,11", plan=topics, code=1)
    same("generate", "--broker-list", "11", plan={"topics": [{"topic": "{t}-no"}]}, code=1)
    plans: tuple[dict[str, Any], ...] = (
        to([99]),
        to([BROKER, BROKER]),
        to([]),
        {"partitions": []},
        {"partitions": to([BROKER])["partitions"] * 2},
        {"partitions": [{"topic": "{t}-move", "partition": 9, "replicas": [BROKER]}]},
    )
    for plan in plans:
        same("execute", plan=plan, code=1)
    same("verify", plan=to([OTHER], [BROKER]))
    for name in ("kafkas", "quorat"):
        produce(quorum, f"{name}-move")
    more = "--additional"
    throttled = same("execute", more, "--throttle", "1000", plan=to([OTHER], [BROKER, OTHER]))
    assert "Successfully started partition reassignments" in throttled
    assert "The inter-broker throttle limit was set to 1000 B/s" in throttled
    same("execute", plan=to([OTHER]), code=1)
    moving = [[line for line in text.splitlines() if "{t}" in line] for text in reassign("list")]
    assert moving[0] == moving[1]
    assert len(moving[0]) == 2
    assert "still in progress" in same("verify", plan=to([OTHER], [BROKER, OTHER]))
    assert "Adding Replicas: 12" in agree(both, "topics", "--describe", "--topic", "{t}-move")
    agree(both, "configs", "--describe", "--topic", "{t}-move")
    same("cancel", "--preserve-throttles", plan=to([OTHER], [BROKER, OTHER]))
    same("cancel", plan=to([OTHER], [BROKER, OTHER]))
    same("execute", "--disallow-replication-factor-change", plan=to([BROKER, OTHER]), code=1)
    same("execute", more, plan=to([OTHER], [BROKER]))
    done = "Reassignment of partition {t}-move-0 is completed."
    wait_for(
        lambda: all(done in text for text in reassign("verify", plan=to([OTHER], [BROKER]))),
        "the moves", 30,
    )  # fmt: skip
    same("verify", plan=to([OTHER], [BROKER]))
    place = str(quorum.nodes[OTHER].data)
    same("execute", plan=to([OTHER], log_dirs=[place]))
    assert "completed successfully" in same("verify", plan=to([OTHER], log_dirs=[place]))


def produce(quorum, topic):
    """Three megabytes into the topic."""
    server = f"bootstrap.servers={quorum.nodes[BROKER].address}"
    words = ("--num-records", "3000", "--record-size", "1000", "--throughput", "-1")
    main = "org.apache.kafka.tools.ProducerPerformance"
    run = java_tool(main, "--topic", topic, *words, "--producer-props", server)
    assert run.returncode == 0, run


@pytest.mark.parametrize(
    "words",
    [
        ("--list", "--verify"),
        ("--execute",),
        ("--generate", "--broker-list", "1"),
        ("--list", "--throttle", "5"),
        ("--verify", "--reassignment-json-file", "a", "--additional"),
    ],
    ids=" ".join,
)
def test_reassignments_refuse_wrong_options(both, words):
    refused(both, "reassign-partitions", *words)
