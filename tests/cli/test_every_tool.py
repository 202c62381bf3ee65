"""Every command of every tool: closed pipes, narrow terminals, other encodings, Windows line ends.

A new command joins by itself with its help and a wrong option. `RUNS` has what it prints, and a test asks
for it there.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from cli.screens import Played, Player, Screen
from cli.test_options import CLUSTER_ID, commands
from interop.process import QuorateNode, wait_for
from quorate.cli import columns, main
from quorate.cli.quickstart.quorum_directory import QuorumDirectory

DATA = Path(__file__).parents[1] / "data"
SCRIPTS = Path(__file__).parents[1] / "sim" / "scripts"
WIDTH = 40
COLOUR = re.compile(r"\x1b\[(\d+;)*(3|4|9|10)[0-7]m")
NODE = "--bootstrap-controller NODE --command-config DIR/client.properties"
RUNS: dict[str, list[str]] = {
    "quickstart": [],
    "server-start": ["DIR/controller.properties --override process.roles=both"],
    "storage random-uuid": ["random-uuid"],
    "storage format": ["format -c DIR/controller.properties -t UUID -N"],
    "storage info": ["info -c DIR/controller.properties"],
    "storage check": [
        "check -c DIR/controller.properties",
        "check -c DIR/controller.properties --json",
    ],
    "storage version-mapping": ["version-mapping -r 4.1"],
    "storage feature-dependencies": ["feature-dependencies -f kraft.version=1"],
    "metadata-quorum describe": [
        f"{NODE} describe --status",
        f"{NODE} describe --replication",
        f"{NODE} describe --replication --human-readable",
    ],
    "metadata-quorum add-controller": [
        "--bootstrap-controller NODE add-controller --config DIR/controller.properties"
    ],
    "metadata-quorum remove-controller": [f"{NODE} remove-controller -i 7 -d UUID"],
    "metadata-quorum alter": [],
    "features describe": [f"{NODE} describe"],
    "features upgrade": [f"{NODE} upgrade --feature kraft.version=99"],
    "features downgrade": [f"{NODE} downgrade --feature kraft.version=0"],
    "features disable": [f"{NODE} disable --feature kraft.version"],
    "features version-mapping": ["version-mapping"],
    "features feature-dependencies": ["feature-dependencies -f share.version=1"],
    "topics": [f"{NODE} --list", f"{NODE} --describe --topic t"],
    "configs": [
        f"{NODE} --describe --entity-type users",
        f"{NODE} --describe --entity-type brokers --entity-name 1 --all",
        f"{NODE} --alter --entity-type topics --entity-name t --add-config-file DIR/topic.properties",
    ],
    "acls": [f"{NODE} --list", f"{NODE} --list --json"],
    "cluster cluster-id": [f"cluster-id {NODE}"],
    "cluster unregister": [f"unregister {NODE} --id 9"],
    "cluster unregister-controller": [f"unregister-controller {NODE} --id 9"],
    "cluster list-endpoints": [f"list-endpoints {NODE}"],
    "cluster registrations": [f"registrations {NODE}", f"registrations {NODE} --json"],
    "cluster problems": [f"problems {NODE}"],
    "cluster events": ["events AUDIT", "events AUDIT --json"],
    "cluster api-versions": [f"api-versions {NODE}"],
    "leader-election": [
        f"{NODE} --election-type preferred --path-to-json-file DIR/plan.json",
        f"{NODE} --election-type preferred --path-to-json-file DIR/broken.json",
    ],
    "reassign-partitions": [
        f"{NODE} --list",
        f"{NODE} --verify --reassignment-json-file DIR/plan.json",
        f"{NODE} --verify --reassignment-json-file DIR/broken.json",
    ],
    "log-dirs": [f"{NODE} --describe"],
    "delegation-tokens": [f"{NODE} --describe"],
    "dump-log": ["--cluster-metadata-decoder --files LOG", "--files LOG --json"],
    "metadata-shell": [
        f"{NODE} tree /image",
        "-d PARTITION cat /image/cluster",
        "-d PARTITION",
    ],
    "pipeline ingest": [],
    "pipeline stream": [],
    "pipeline history": [],
    "pipeline who": [],
    "pipeline audit": [],
    "pipeline report": [],
    "pipeline compact": [],
    "pipeline repair": [],
    "pipeline campaign": [],
    "pipeline campaign-report": [],
    "sim run": [],
    "sim replay": ["replay DIR/world.txt", "replay DIR/world.txt --against DIR/trace.txt"],
    "sim plan": ["plan 7"],
    "sim campaign": [],
    "sim shrink": ["shrink DIR/world.txt --tries 1"],
    "sim scenario": ["scenario DIR/scenario.txt", "scenario DIR/differs.txt"],
    "sim explore": ["explore election --depth 2"],
    "sim nemesis": ["nemesis --only help"],
    "completion": ["bash", "zsh", "fish"],
}
"""What each command prints; empty where it needs Spark, minutes, or processes that stay."""
WORLD = (
    "format 5\nseed 3\nvoters 1\nduration_ms 300\nclients.count 1\nend\n----\nall checks passed\n"
)
ANY_WIDTH = {
    "dump-log": "the text of Kafka's tool, a record a line",
    "log-dirs": "a JSON document",
    "completion": "a file",
    "sim plan": "a file",
    "sim replay": "a trace, an event a line",
    "sim shrink": "a file",
    "sim scenario": "lines of a file",
    "sim explore": "sentences",
    "metadata-shell": "contents of files",
}
"""What is no table; all other commands fit the terminal. `test_terminals` has more rows for them."""
SENTENCE = re.compile(
    "Calling |Clearing |Could not |Error|Nothing |Quorate cannot |The target cluster "
)
"""Messages, which a terminal breaks itself."""
STDIN = "ls /image\ncat /image/cluster/\npwd\nhistory\nexit\n"


def leaves() -> Iterator[tuple[str, click.Command]]:
    for name, command in commands():
        if not isinstance(command, click.Group):
            yield name, command


def test_every_command_is_here():
    assert {name for name, _ in leaves()} == set(RUNS)


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """A controller that leads a quorum of its own."""
    node = QuorateNode(1, tmp_path_factory.mktemp("every") / "node")
    node.config |= {
        "controller.quorum.bootstrap.servers": node.address,
        "quorate.audit.dir": str(node.directory / "audit"),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    node.format(CLUSTER_ID, "--standalone")
    node.start()
    player = Player(pytest.MonkeyPatch())
    where = ["--bootstrap-controller", node.address]
    acls = [*where, "--add", "--topic", "*", "--allow-principal"]
    wait_for(lambda: player(["acls", *acls, "User:λ"]).code == 0, "an ACL")
    yield node
    node.stop()


@pytest.fixture
def files(node, tmp_path):
    """Write the files that the tools read, with these line ends."""

    def files(end: str) -> Path:
        directory = tmp_path / {"\n": "unix", "\r\n": "windows"}[end]
        directory.mkdir()
        one = {"topic": "t", "partition": 0}
        texts = {
            "controller.properties": node.properties.read_text()
            + "# é λ\nsasl.mechanism.controller.protocol=GSSAPI\n",
            "client.properties": "client.id=\\\n  x\nrequest.timeout.ms=9000\n",
            "topic.properties": "retention.ms=7\nsegment.bytes=1048576\n",
            "plan.json": json.dumps(
                {"version": 1, "partitions": [one | {"replicas": [1]}]}, indent=1
            ),
            "broken.json": '{\n "partitions": [\n',
            "scenario.txt": (SCRIPTS / "kafka_10527.txt").read_text(),
            "differs.txt": (SCRIPTS / "kafka_10527.txt").read_text() + "what\n",
            "world.txt": WORLD,
        }
        texts["trace.txt"] = "# quorate trace 0\n1 2 3\n"
        for path in (node.directory / "audit").iterdir():
            texts[f"audit/{path.name}"] = path.read_text()
        (directory / "audit").mkdir()
        for name, text in texts.items():
            (directory / name).write_text(text.replace("\n", end), newline="")
        return directory

    return files


@pytest.fixture
def play(monkeypatch):
    monkeypatch.setattr(columns, "terminal_width", lambda: None)
    return Player(monkeypatch)


@pytest.fixture
def runs(node, files):
    """Give the command lines of a command."""
    directory = files("\n")
    return lambda name: words_of(name, node, directory)


def words_of(name: str, node: QuorateNode, directory: Path) -> list[list[str]]:
    tool, _, verb = name.partition(" ")
    logs = sorted(node.partition.glob("*.log"))
    places = {
        "NODE": node.address,
        "DIR": str(directory),
        "AUDIT": str(directory / "audit"),
        "PARTITION": str(node.partition),
        "LOG": str(logs[0]),
        "UUID": CLUSTER_ID,
    }
    texts = [f"{verb} --help", f"{verb} --no-such-option", *RUNS[name]]
    filled = [re.sub("|".join(places), lambda match: places[match[0]], text) for text in texts]
    return [[tool, *text.split()] for text in filled]


@functools.cache
def plain(play: Player, *words: str) -> Played:
    return play(list(words), text=STDIN)


def expected(found: Played) -> set[int]:
    """The exit codes of a command whose reader went away: 0, or that of its error."""
    return {0, found.code} if found.out else {found.code}


@pytest.mark.parametrize("name", RUNS)
def test_a_reader_that_goes_away_is_no_error(play, runs, name):
    """Before the first write, after it, and the reader of stderr too."""
    for words in runs(name):
        whole = plain(play, *words)
        assert "Traceback" not in whole.err and whole.code != main.DEFECT, (words, whole)
        for takes in (0, 1):
            found = play(words, out=Screen(is_terminal=True, takes=takes), text=STDIN)
            assert found.code in expected(whole) | {0}, (words, takes, found, whole)
            assert "Broken pipe" not in found.err and "Traceback" not in found.err, (words, found)
        both = play(words, out=Screen(takes=0), err=Screen(takes=0), text=STDIN)
        assert both.code in expected(whole), (words, both, whole)


def test_a_reader_of_quickstart_that_goes_away_stops_the_controllers(play, tmp_path):
    words = ["quickstart", "--data", str(tmp_path / "data"), "--controllers", "1"]
    found = play(words, out=Screen(takes=1))
    assert (found.code, found.err) == (0, "") and found.out
    directory = QuorumDirectory(tmp_path / "data")
    directory.load_or_create(1)
    directory.unlock()
    assert [directory.lock_pid_of(node) for node in directory.nodes.values()] == [None]


@pytest.mark.parametrize("name", RUNS)
def test_a_narrow_terminal_shows_all_of_it(play, runs, name, monkeypatch):
    for words in runs(name):
        whole = plain(play, *words)
        with monkeypatch.context() as patch:
            patch.setattr(columns, "terminal_width", lambda: WIDTH)
            patch.setenv("COLUMNS", str(WIDTH))
            found = play(words, out=Screen(is_terminal=True), text=STDIN)
        assert found.code == whole.code, (words, found, whole)
        assert "Traceback" not in found.err
        if name not in ANY_WIDTH and not {"--help", "--json"} & set(words):
            lines = [line for line in found.out.splitlines() if not SENTENCE.match(line)]
            assert max(map(len, lines), default=0) <= WIDTH, found.out
        if words[-1] == "--help":
            joined = found.out.replace("\n", "").replace(" ", "")
            assert [word for word in whole.out.split() if word not in joined] == []


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_an_encoding_without_all_characters_gets_escapes(play, runs, name, encoding):
    for words in runs(name):
        whole = plain(play, *words)
        found = play(words, encoding=encoding, text=STDIN)
        assert found.code == whole.code, (words, found, whole)
        assert "\ufffd" not in found.out or "--json" in words, (words, found)


@pytest.mark.parametrize("name", [name for name in RUNS if name != "storage random-uuid"])
def test_windows_line_ends_change_nothing(play, node, files, name):
    ends = [("\n", files("\n")), ("\r\n", files("\r\n"))]
    for pair in zip(*(words_of(name, node, at) for _, at in ends), strict=True):
        found = [
            play(words, text=STDIN.replace("\n", end))
            for words, (end, _) in zip(pair, ends, strict=True)
        ]
        unix, windows = (
            [re.sub(r"[\s\d,]+", " ", text.replace(str(at), "DIR")) for text in one[1:]]
            for one, (_, at) in zip(found, ends, strict=True)
        )
        assert (found[0].code, unix) == (found[1].code, windows), pair[0]


@pytest.mark.parametrize("name", RUNS)
def test_no_color_applies_on_a_terminal(play, runs, name, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    for words in runs(name):
        found = play(words, out=Screen(is_terminal=True), err=Screen(is_terminal=True), text=STDIN)
        assert not COLOUR.search(found.out + found.err), words
