"""`quorate storage`: the files it writes and its output."""

import json
import re
import shutil
import stat

import pytest

from narrow import not_none
from quorate.base.ids import Listener, ReplicaKey, Uuid, uuid_from_text, uuid_to_text
from quorate.embed import create
from quorate.formats.meta_properties import decode_meta_properties
from quorate.formats.records import decode_record
from quorate.formats.snapshot import read_snapshot
from quorate.raft.values import Voter

CLUSTER = "Auo5pIz_RXynyYRjkH2osA"
CHECKPOINT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
DYNAMIC = {
    "process.roles": "controller",
    "node.id": "1",
    "listeners": "CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "localhost:9093",
}
STATIC = DYNAMIC | {
    "controller.quorum.bootstrap.servers": "",
    "controller.quorum.voters": "1@localhost:9093",
}
SCRAM = "SCRAM-SHA-256=[name=alice,password=secret,iterations=8192]"
BROKER = DYNAMIC | {"process.roles": "broker", "listeners": "PLAINTEXT://localhost:9092"}


def files(directory):
    return {str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file()}


def records_in(snapshot):
    return [decode_record(value)[0] for value in snapshot.values]


@pytest.fixture
def node(tmp_path, quorate):
    """A node with two directories `a` (metadata) and `b`; runs the storage tool for it."""

    class Node:
        a, b = tmp_path / "a", tmp_path / "b"
        path = tmp_path / "server.properties"

        def configure(self, base):
            lines = [f"{key}={value}\n" for key, value in base.items()]
            self.path.write_text("".join(lines) + f"log.dirs={self.a},{self.b}\n")

        def format(self, *arguments):
            return quorate("storage", "format", "-c", self.path, "-t", CLUSTER, *arguments)

        def info(self, *arguments):
            return quorate("storage", "info", "-c", self.path, *arguments)

        def meta(self, directory):
            return decode_meta_properties((directory / "meta.properties").read_bytes())

        def records(self, directory=None):
            data = ((directory or self.a) / "bootstrap.checkpoint").read_bytes()
            return [decode_record(value)[0] for value in read_snapshot(data).values]

    node = Node()
    node.configure(DYNAMIC)
    return node


def test_a_standalone_quorum_is_formatted(node):
    outcome = node.format("--standalone")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines()[0].startswith(
        "Bootstrap metadata: BootstrapMetadata(records=[ApiMessageAndVersion("
        "FeatureLevelRecord(name='metadata.version', featureLevel=30) at version 0), "
    )
    assert outcome.out.splitlines()[1:] == [
        f"Formatting dynamic metadata voter directory {node.a} with metadata.version 4.3-IV0.",
        f"Formatting data directory {node.b} with metadata.version 4.3-IV0.",
    ]
    one, two = node.meta(node.a), node.meta(node.b)
    assert (one.version, one.cluster_id, one.node_id) == (1, CLUSTER, 1)
    assert one.directory_id != two.directory_id
    snapshot = read_snapshot((node.a / CHECKPOINT).read_bytes())
    assert snapshot.values == ()
    assert snapshot.control.kraft_version == 1
    listeners = (Listener("CONTROLLER", "localhost", 9093),)
    assert snapshot.control.voters == (Voter(ReplicaKey(1, one.directory_id), listeners, 0, 1),)
    assert stat.S_IMODE((node.a / CHECKPOINT).stat().st_mode) == 0o400
    assert sorted(path.name for path in node.b.iterdir()) == [
        "bootstrap.checkpoint",
        "meta.properties",
    ]


def test_the_first_records_of_a_cluster(node):
    node.format("--standalone")
    for directory in (node.a, node.b):
        assert [(r.name, r.feature_level) for r in node.records(directory)] == [
            ("metadata.version", 30),
            ("eligible.leader.replicas.version", 1),
            ("group.version", 1),
            ("share.version", 1),
            ("streams.version", 1),
            ("transaction.version", 2),
        ]


def test_a_release_and_a_feature_combine(node):
    assert node.format("-N", "-r", "4.0", "-f", "group.version=0").code == 0
    assert [(r.name, r.feature_level) for r in node.records()] == [
        ("metadata.version", 25),
        ("transaction.version", 2),
    ]
    assert not (node.a / "__cluster_metadata-0").exists()


LAYOUTS_OF_4_4 = {
    "standalone": (DYNAMIC, ("--standalone",), (1, 1)),
    "no initial controllers": (DYNAMIC, ("-N",), (1, None)),
    "static": (STATIC, (), (0, None)),
}


@pytest.mark.parametrize(("base", "flags", "control"), LAYOUTS_OF_4_4.values(), ids=LAYOUTS_OF_4_4)
@pytest.mark.parametrize("release", ["4.4-IV0", "4.4-IV1", "4.4-IV2", "4.4"])
def test_the_layout_of_4_4_has_the_records_in_the_first_snapshot(
    node, base, flags, control, release
):
    node.configure(base)
    assert node.format(*flags, "-r", release, "-S", SCRAM).code == 0
    assert files(node.a) == {CHECKPOINT, "meta.properties"}
    assert files(node.b) == {"meta.properties"}
    snapshot = read_snapshot((node.a / CHECKPOINT).read_bytes())
    version, voters = snapshot.control.kraft_version, snapshot.control.voters
    assert (version, None if voters is None else len(voters)) == control
    first, *others = records_in(snapshot)
    assert first.feature_level == {"4.4-IV0": 31, "4.4-IV1": 32}.get(release, 33)
    assert ("share.version", 2) in [(r.name, r.feature_level) for r in others[:-1]]
    assert others[-1].name == "alice"


def test_a_broker_keeps_no_records_in_the_layout_of_4_4(node):
    node.configure(BROKER)
    assert node.format("-r", "4.4").code == 0
    assert files(node.a) == files(node.b) == {"meta.properties"}


@pytest.mark.parametrize("release", ["3.9", "4.3", "4.3-IV0"])
def test_an_older_release_gets_its_own_layout(node, release):
    """Kafka 4.4's tool writes the layout of 4.4 for every release; Kafka 4.3 would ignore it."""
    assert node.format("--standalone", "-r", release, "-f", "group.version=1").code == 0
    assert files(node.a) == {CHECKPOINT, "bootstrap.checkpoint", "meta.properties"}
    assert read_snapshot((node.a / CHECKPOINT).read_bytes()).values == ()
    assert node.records()[0].name == "metadata.version"


def test_the_same_voters_on_every_node(node):
    ids = [uuid_to_text(Uuid(bytes([n]) * 16)) for n in (1, 2)]
    voters = f"2@b:9094:{ids[1]},1@[::1]:9093:{ids[0]}"
    assert node.format("--initial-controllers", voters).code == 0
    assert node.meta(node.a).directory_id == uuid_from_text(ids[0])
    found = not_none(read_snapshot((node.a / CHECKPOINT).read_bytes()).control.voters)
    assert [(v.key.id, v.listeners[0].host) for v in found] == [(1, "0:0:0:0:0:0:0:1"), (2, "b")]


def test_a_node_outside_the_initial_voters_stores_the_voters(node):
    other = f"2@b:9094:{CLUSTER}"
    outcome = node.format("-I", other)
    assert f"Formatting dynamic metadata directory {node.a} with" in outcome.out
    assert node.meta(node.a).directory_id != uuid_from_text(CLUSTER)


def test_a_static_quorum_and_a_broker_need_no_flag(node):
    for base in (STATIC, BROKER):
        node.configure(base)
        outcome = node.format("-g")
        assert outcome.code == 0
    assert "All of the log directories are already formatted." in outcome.out
    assert not (node.a / "__cluster_metadata-0").exists()


def test_credentials(node):
    outcome = node.format("-s", "-S", SCRAM)
    assert "UserScramCredentialRecord(name='alice', mechanism=1, salt=[" in outcome.out
    assert "secret" not in outcome.out
    record = node.records()[-1]
    assert (record.name, record.iterations) == ("alice", 8192)


REFUSALS = [
    (DYNAMIC, (), "Because controller.quorum.voters is not set on this controller, you must"),
    (DYNAMIC, ("-s", "-N"), "--no-initial-controllers/-N: not allowed with argument --standalone"),
    (DYNAMIC, ("-s", "-r", "9.9"), "Unknown metadata.version '9.9'. Supported metadata.version"),
    (DYNAMIC, ("-s", "-r", ""), "Unknown metadata.version ''. Supported metadata.version are"),
    (DYNAMIC, ("-s", "-S", "SCRAM-SHA-256=[name=alice,password=]"), "Empty key"),
    (
        DYNAMIC,
        ("-s", "-S", "SCRAM-SHA-256=[name=alice,salt=N3E=,saltedpassword=]"),
        "Empty key",
    ),
    (DYNAMIC, ("-s", "-r", "4.5-IV0"), "Unknown metadata.version '4.5-IV0'"),
    (DYNAMIC, ("-s", "-f", "metadata.version=34"), "metadata.version 4.5-IV0 is not yet stable."),
    (DYNAMIC, ("-s", "-f", "metadata.version=99"), "No MetadataVersion with feature level 99."),
    (
        DYNAMIC,
        ("-s", "-f", "metadata.version=30", "-r", "4.3"),
        "Use --release-version instead of --feature metadata.version=X to avoid ambiguity.",
    ),
    (DYNAMIC, ("-s", "-f", "odd=1"), "Unsupported feature: odd. Supported features are: eligible"),
    (DYNAMIC, ("-s", "-f", "group.version=2"), "No feature:group.version with feature level 2"),
    (DYNAMIC, ("-s", "-f", "group.version"), "string group.version: equals sign not found."),
    (DYNAMIC, ("-s", "-f", "group.version=x"), "unable to parse x as a short."),
    (DYNAMIC, ("-s", "-f", "group.version=32768"), "unable to parse 32768 as a short."),
    (DYNAMIC, ("-s", "-f", "kraft.version=0"), "Cannot set kraft.version to 0 if controller."),
    (
        DYNAMIC,
        ("-s", "-r", "3.9", "-f", "eligible.leader.replicas.version=1"),
        "could not be set to 1 because it depends on metadata.version level 23",
    ),
    (
        DYNAMIC,
        ("-s", "-r", "3.4", "-S", "x"),
        "SCRAM is only supported in metadata.version 3.5-IV2",
    ),
    (DYNAMIC, ("-s", "-S", "x"), "Failed to find equals sign in SCRAM argument"),
    (DYNAMIC, ("-I", "x"), "No @ found in dynamic voter string."),
    (
        DYNAMIC,
        ("-I", f"1@h:1:{CLUSTER},2@h:2:{CLUSTER}"),
        f"Duplicate directory ID {CLUSTER}: voters 1 and 2 cannot both have it",
    ),
    (DYNAMIC, ("-s", "-t="), "The cluster id is empty"),
    (DYNAMIC, ("-s", "--cluster-id", " "), "The cluster id is empty"),
    (BROKER, ("--cluster-id=",), "The cluster id is empty"),
    (STATIC, ("-s",), "You cannot specify controller.quorum.voters and format the node"),
    (STATIC, ("-f", "kraft.version=1"), "Cannot set kraft.version to 1 unless controller.quorum"),
    (BROKER, ("-s",), "You can only use --standalone on a controller."),
    (DYNAMIC | {"node.id": "x"}, ("-s",), "Invalid value x for configuration node.id"),
]


@pytest.mark.parametrize(("base", "arguments", "message"), REFUSALS)
def test_a_refusal_has_a_reason_and_writes_nothing(node, base, arguments, message):
    node.configure(base)
    outcome = node.format(*arguments)
    assert (outcome.code, outcome.out) == (1, "")
    assert message in outcome.err
    assert not node.a.exists()


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize(
    "dirs",
    [
        "log.dirs={0}/a,{0}/a/",
        "log.dirs={0}/a,{0}/b,{0}//a",
        "log.dirs={0}/a,{0}/b/../a",
        "log.dirs={0}/a,{0}/link",
        "log.dirs={0}/link,{0}/link2/.",
        "log.dirs={0}/a,{0}/up/a",
        "log.dirs={0}/a\nmetadata.log.dir={0}/a/",
    ],
)
def test_two_names_of_one_directory_are_refused(node, tmp_path, dirs, exists):
    for link in ("link", "link2"):
        (tmp_path / link).symlink_to(node.a)
    (tmp_path / "up").symlink_to(tmp_path)
    if exists:
        node.a.mkdir()
    node.configure(DYNAMIC)
    node.path.write_text(node.path.read_text() + dirs.format(tmp_path) + "\n")
    outcome = node.format("-s")
    assert outcome.code == 1 and outcome.out == ""
    assert f"are the same directory ({node.a}): name each" in outcome.err
    assert not node.b.exists() and (list(node.a.iterdir()) if exists else []) == []


@pytest.mark.parametrize(
    ("role", "dirs", "inner"),
    [
        ("broker", "log.dirs={0}/a,{0}/a/sub", "a/sub"),
        ("broker", "log.dirs={0}/b/x/y,{0}/b", "b/x/y"),
        ("broker", "log.dirs={0}/link/sub,{0}/a", "a/sub"),
        ("broker", "log.dirs={0}/a\nmetadata.log.dir={0}/a/meta", "a/meta"),
        ("controller", "log.dirs={0}/a,{0}/a/__cluster_metadata-0", "a/__cluster_metadata-0"),
        ("controller", "log.dirs={0}/a/__cluster_metadata-0/x,{0}/a", "a/__cluster_metadata-0/x"),
    ],
)
def test_a_directory_inside_another_with_which_no_node_starts_is_refused(
    node, tmp_path, role, dirs, inner
):
    (tmp_path / "link").symlink_to(node.a)
    node.configure(DYNAMIC if role == "controller" else BROKER)
    node.path.write_text(node.path.read_text() + dirs.format(tmp_path) + "\n")
    outcome = node.format(*(("-s",) if role == "controller" else ()))
    assert (outcome.code, outcome.out) == (1, "")
    assert f"({tmp_path / inner}) is inside " in outcome.err
    assert not node.a.exists() and not node.b.exists()


def test_a_directory_inside_another_of_a_controller_is_formatted(node, tmp_path):
    """Kafka's controller starts there; no part of it lists its other directories."""
    node.configure(DYNAMIC)
    text = f"log.dirs={node.a},{node.a}/sub,{node.a}b\n"
    node.path.write_text(node.path.read_text() + text)
    assert node.format("-s").code == 0
    assert node.meta(node.a / "sub").directory_id != node.meta(node.a).directory_id


@pytest.mark.parametrize("low", [0, 1, 99])
@pytest.mark.parametrize("reserved", [1, 2])
def test_a_reserved_directory_id_is_refused(node, low, reserved):
    """Also of another voter, which would not start."""
    ids = {1: Uuid(bytes([7]) * 16), 2: Uuid(bytes([8]) * 16)}
    ids[reserved] = Uuid(low.to_bytes(16, "big"))
    voters = ",".join(f"{n}@h:{n}:{uuid_to_text(each)}" for n, each in ids.items())
    outcome = node.format("-I", voters)
    assert outcome.code == 1
    text = uuid_to_text(ids[reserved])
    assert f"Invalid reserved directory ID {text} of voter {reserved}" in outcome.err
    assert not node.a.exists() and not node.b.exists()


def test_the_id_of_a_formatted_directory_is_refused_for_another(node):
    assert node.format("-s").code == 0
    taken = uuid_to_text(node.meta(node.b).directory_id)
    shutil.rmtree(node.a)
    outcome = node.format("-g", "-I", f"1@h:1:{taken}")
    assert outcome.code == 1 and f"Duplicate directory ID {taken}" in outcome.err
    assert not node.a.exists()


def test_unreadable_directories_are_named_even_if_none_is_left(node):
    node.configure(DYNAMIC)
    for directory in (node.a, node.b):
        directory.write_text("a file")
    outcome = node.format("-s")
    assert outcome.code == 1 and outcome.err.startswith("No available log directories to format.")
    assert outcome.out.splitlines() == [
        f"I/O error trying to read log directory {directory}. Ignoring..."
        for directory in (node.a, node.b)
    ]


def test_a_formatted_directory_is_not_changed(node):
    node.format("-s")
    before = node.meta(node.a)
    outcome = node.format("-s")
    assert outcome.code == 1
    assert outcome.err == (
        f"Log directory {node.a} is already formatted. Use --ignore-formatted to ignore this "
        "directory and format the others.\n"
    )
    (node.b / "meta.properties").unlink()
    outcome = node.format("-s", "--ignore-formatted")
    assert outcome.code == 0
    assert "Formatting data directory" in outcome.out
    assert node.meta(node.a) == before


def test_a_directory_of_another_node_or_cluster_is_refused(node):
    node.format("-s")
    node.configure(DYNAMIC | {"node.id": "2"})
    assert "Stored node id 1 doesn't match previous node id 2" in node.format("-s", "-g").err
    node.configure(DYNAMIC)
    text = (node.a / "meta.properties").read_text().replace(CLUSTER, "other")
    (node.a / "meta.properties").write_text(text)
    assert f"Expected {CLUSTER}, but read other" in node.format("-s", "-g").err


def test_a_directory_that_cannot_be_created_is_an_error(node):
    node.a.write_text("a file")
    node.b.write_text("a file")
    outcome = node.format("-s")
    assert outcome.code == 1
    assert "No available log directories to format." in outcome.err
    node.b.unlink()
    assert f"I/O error trying to read log directory {node.a}." in node.format("-s").out


def test_info_of_a_valid_node(node):
    node.format("-s")
    meta = node.meta(node.a)
    outcome = node.info()
    assert outcome.code == 0
    assert outcome.out == (
        f"Found log directories:\n  {node.a}\n  {node.b}\n\n"
        f"Found metadata: {{cluster.id={CLUSTER}, directory.id={uuid_to_text(meta.directory_id)}, "
        "node.id=1, version=1}\n\n"
    )
    facts = json.loads(node.info("--json").out)
    assert facts["directories"] == [str(node.a), str(node.b)]
    assert facts["metadata"]["cluster.id"] == CLUSTER
    assert facts["problems"] == []


def test_info_names_every_problem(node):
    assert node.info().out == (
        f"Found problems:\n  {node.a} does not exist\n  {node.b} does not exist\n\n"
    )
    node.format("-s")
    text = (node.b / "meta.properties").read_text()

    def problem():
        outcome = node.info()
        assert outcome.code == 1
        found = re.search(r"Found problem:\n  (.*)\n\n$", outcome.out)
        assert found, outcome.out
        return found[1]

    (node.b / "meta.properties").write_text(text.replace(CLUSTER, "other"))
    assert problem() == "Mismatched cluster IDs between storage directories."
    (node.b / "meta.properties").write_text(text.replace("node.id=1", "node.id=2"))
    assert problem() == "Mismatched node IDs between storage directories."
    (node.b / "meta.properties").write_text("version=7\n")
    assert problem().startswith(f"Error loading {node.b}/meta.properties: version 7 is not")
    (node.b / "meta.properties").unlink()
    assert problem() == f"{node.b} is not formatted."
    (node.b / "bootstrap.checkpoint").unlink()
    node.b.rmdir()
    node.b.write_text("")
    assert problem() == f"{node.b} is not a directory"


def test_format_in_json(node):
    facts = json.loads(node.format("-s", "--json").out)
    assert facts["clusterId"] == CLUSTER
    assert facts["features"]["kraft.version"] == 1
    assert [each["kind"] for each in facts["formatted"]] == ["dynamic metadata voter", "data"]
    assert facts["voters"] == [f"1@localhost:9093:{facts['formatted'][0]['directoryId']}"]


def test_random_uuids_are_kafkas(quorate):
    texts = {quorate("storage", "random-uuid").out.strip() for _ in range(20)}
    assert len(texts) == 20
    for text in texts:
        raw = uuid_from_text(text)
        assert (raw[6] >> 4, raw[8] >> 6) == (4, 2)
        assert not text.startswith("-")


def test_the_levels_of_a_release(quorate):
    outcome = quorate("storage", "version-mapping", "--release-version", "4.0")
    assert outcome.out.splitlines() == [
        "metadata.version=25 (4.0)",
        "kraft.version=1",
        "transaction.version=2",
        "group.version=1",
        "eligible.leader.replicas.version=0",
        "share.version=0",
        "streams.version=0",
    ]
    assert quorate("features", "version-mapping", "--release-version", "4.0").out == outcome.out
    assert json.loads(quorate("storage", "version-mapping", "--json").out)["group.version"] == 1
    assert (
        "Unknown metadata.version '1.0'" in quorate("storage", "version-mapping", "-r", "1.0").err
    )


def test_the_dependencies_of_a_level(quorate):
    outcome = quorate(
        *("storage", "feature-dependencies", "-f", "metadata.version=17"),
        *("-f", "eligible.leader.replicas.version=1", "-f", "kraft.version=1"),
    )
    assert outcome.out.splitlines() == [
        "metadata.version=17 (3.7-IV2) has no dependencies.",
        "eligible.leader.replicas.version=1 requires:",
        "    metadata.version=23 (4.0-IV1)",
        "kraft.version=1 has no dependencies.",
    ]


@pytest.mark.parametrize(
    ("feature", "message"),
    [
        ("odd=1", "Unknown feature: odd"),
        ("group.version=7", "Feature level 7 is not supported for feature group.version"),
        ("metadata.version=6", "Unknown metadata.version 6"),
        ("group.version", "Invalid feature format: group.version. Expected format"),
        ("group.version=x", "Invalid version format: x for feature group.version"),
    ],
)
def test_an_unknown_level_is_an_error(quorate, feature, message):
    outcome = quorate("storage", "feature-dependencies", "--feature", feature)
    assert outcome.code == 1
    assert message in outcome.err


def test_the_directory_of_a_member_is_reported_and_not_changed(node):
    create(node.a, 1, "counters", {1: "localhost:9093"})
    before = node.meta(node.a)
    message = (
        f"{node.a} is the directory of a member (quorate.embed), and not a controller's: run it "
        "with the program that it belongs to; for a controller, format another one"
    )
    for arguments in ((), ("--ignore-formatted",)):
        outcome = node.format("--standalone", *arguments)
        assert outcome.code == 1 and message in outcome.err
    assert node.meta(node.a) == before and not node.b.exists()
    outcome = node.info("--json")
    assert outcome.code == 1 and f"{message}." in json.loads(outcome.out)["problems"]


def test_the_voters_of_an_early_version_of_kip_853(node):
    directory_id = "AAAAAAAAAAAAAAAAAAAAZg"
    voters = f"1-{directory_id}@localhost:9093, 2-AAAAAAAAAAAAAAAAAAAAZw@localhost:9094"
    assert node.format("--controller-quorum-voters", voters).code == 0
    assert node.meta(node.a).directory_id == uuid_from_text(directory_id)
    outcome = node.format("--controller-quorum-voters", voters, "--standalone")
    assert (outcome.code, "not allowed with argument" in outcome.err) == (1, True)
    outcome = node.format("--controller-quorum-voters", "1@localhost:9093")
    assert (outcome.code, "must be id-directory-id@host:port" in outcome.err) == (1, True)
