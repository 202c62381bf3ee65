"""Kafka's storage tool and ours, given the same words, say the same and write the same bytes."""

import re
import struct

import pytest

from interop.java import KAFKA_4_3, KAFKA_4_4, STORAGE, java_tool
from interop.process import QUORATE, run_tool
from quorate.formats.batch import iter_batches

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.xdist_group("storage-tool")]

CLUSTER = "Auo5pIz_RXynyYRjkH2osA"
OTHER = "JEXY6aqzQY-32P5TStzaFg"
DYNAMIC = {
    "process.roles": "controller",
    "node.id": "1",
    "listeners": "CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "localhost:9093",
}
STATIC = DYNAMIC | {"controller.quorum.voters": "1@localhost:9093"}
BROKER = DYNAMIC | {"process.roles": "broker", "listeners": "PLAINTEXT://localhost:9092"}
SCRAM_256 = 'SCRAM-SHA-256=[name=al,password=p,salt="MWx2NHBkbnc0ZndxN25vdGN4bTB5eTFrN3E="]'
SCRAM_512 = (
    'SCRAM-SHA-512=[name=bob,saltedpassword="mT0yyUUxnlJaC99HXgRTSYlbuqa4FSGtJCJfTMvjYCE=",'
    'salt="MWx2NHBkbnc0ZndxN25vdGN4bTB5eTFrN3E=",iterations=8192]'
)


class Tools:
    """The two tools, each with a directory of its own; paths are made alike in what they say."""

    def __init__(self, root):
        self.release = KAFKA_4_3
        """Of Kafka's tool."""
        self.homes = {"java": root / "java", "quorate": root / "quorate"}
        for home in self.homes.values():
            home.mkdir()

    def configure(self, base):
        for home in self.homes.values():
            lines = [f"{key}={value}\n" for key, value in base.items()]
            text = "".join(lines) + f"log.dirs={home}/a,{home}/b\n"
            (home / "p").write_text(text)

    def run(self, *words, config=True):
        """What each says: (code, stdout lines, the last line of stderr)."""
        said = {}
        for kind, home in self.homes.items():
            arguments = [*words, *(("-c", str(home / "p")) if config else ())]
            if kind == "java":
                run = java_tool(STORAGE, *arguments, release=self.release)
            else:
                run = run_tool([*QUORATE, "storage", *arguments])
            out = alike(run.stdout, home).splitlines()
            said[kind] = (run.returncode, out, alike(run.stderr, home))
        return said

    def files(self, kind):
        home = self.homes[kind]
        found = {}
        for path in sorted(home.rglob("*")):
            if path.is_file() and path.name != "p":
                name = str(path.relative_to(home))
                found[name] = (oct(path.stat().st_mode), contents(path))
        return found


def alike(text, home):
    """Without what differs between two runs of the same tool: directories, random ids.

    Also which of two directories is named first, at random in Java. Kafka prints the salts and keys of
    SCRAM credentials; ours are hidden.
    """
    text = re.sub(r"(salt|storedKey|serverKey)=\[[-\d, ]+\]", r"\1=[hidden]", text)
    text = re.sub(r"(?<=Log directory ).*/[ab](?= is already)", "<either>", text)
    text = text.replace(str(home), "<home>")
    return re.sub(r"(directory\.id=)[\w-]{22}", r"\1<id>", text)


def contents(path):
    data = path.read_bytes()
    if path.name == "meta.properties":
        return re.sub(rb"#.*UTC \d{4}|(?<=directory.id=).*", b"", data)
    return b"".join(map(without_times, iter_batches(data)))


def without_times(view):
    """A batch without its checksum, its times, and the header record's time and random ids."""
    data = bytearray(view.data)
    data[17:21] = bytes(4)
    data[27:43] = bytes(16)
    if view.base_offset == 0:
        stamp = struct.pack(">q", view.base_timestamp)[:4]
        at = data.find(stamp, 61)
        if at >= 0:
            data[at : at + 8] = bytes(8)
    return bytes(data)


@pytest.fixture
def tools(tmp_path):
    return Tools(tmp_path)


FORMATS = {
    "initial controllers": (DYNAMIC, ("-I", f"1@localhost:9093:{OTHER},2@[::1]:9094:{CLUSTER}")),
    "controllers elsewhere": (DYNAMIC, ("--initial-controllers", f"2@b:9094:{OTHER}")),
    "no initial controllers": (DYNAMIC, ("--no-initial-controllers",)),
    "static": (STATIC, ()),
    "an old release": (STATIC, ("--release-version", "3.8")),
    "a release in full": (STATIC, ("-r", "4.0.1", "--feature", "group.version=0")),
    "a feature": (DYNAMIC, ("-N", "-f", "metadata.version=24", "-f", "kraft.version=1")),
    "broker": (BROKER, ()),
    "broker with voters": (BROKER, ("-I", f"1@a:9093:{OTHER}")),
    "credentials": (DYNAMIC, ("-N", "-S", SCRAM_256, "--add-scram", SCRAM_512)),
}


@pytest.mark.parametrize(("base", "words"), FORMATS.values(), ids=FORMATS)
def test_format_writes_the_same_files(tools, base, words):
    tools.configure(base)
    said = tools.run("format", "--cluster-id", CLUSTER, *words)
    assert said["quorate"][0] == said["java"][0] == 0, said
    # The order of the directories is that of a hash table in Java.
    assert sorted(said["quorate"][1]) == sorted(said["java"][1])
    assert tools.files("quorate") == tools.files("java")


FORMATS_4_4 = {
    "initial controllers": FORMATS["initial controllers"],
    "controllers elsewhere": FORMATS["controllers elsewhere"],
    "credentials": FORMATS["credentials"],
    "static": (STATIC, ("-f", "group.version=0", "-S", SCRAM_256)),
    "broker": FORMATS["broker"],
    "broker with voters": FORMATS["broker with voters"],
}


@pytest.mark.parametrize(("base", "words"), FORMATS_4_4.values(), ids=FORMATS_4_4)
def test_format_writes_the_same_files_in_the_layout_of_4_4(tools, base, words):
    tools.release = KAFKA_4_4
    tools.configure(base)
    said = tools.run("format", "--cluster-id", CLUSTER, "-r", "4.4", *words)
    assert said["quorate"][0] == said["java"][0] == 0, said
    assert sorted(said["quorate"][1]) == sorted(said["java"][1])
    assert tools.files("quorate") == tools.files("java")


def test_standalone_is_the_same_but_for_its_random_id(tools):
    tools.configure(DYNAMIC)
    said = tools.run("format", "-t", CLUSTER, "--standalone")
    assert sorted(said["quorate"][1]) == sorted(said["java"][1])
    ours, theirs = tools.files("quorate"), tools.files("java")
    assert ours.keys() == theirs.keys()
    for name, (mode, data) in ours.items():
        assert mode == theirs[name][0], name
        assert len(data) == len(theirs[name][1]), name


REFUSALS = {
    "no flag": (DYNAMIC, ("format", "-t", CLUSTER)),
    "no cluster id": (DYNAMIC, ("format",)),
    "two flags": (DYNAMIC, ("format", "-t", CLUSTER, "-s", "-N")),
    "unknown option": (DYNAMIC, ("format", "-t", CLUSTER, "--nonsense")),
    "static and standalone": (STATIC, ("format", "-t", CLUSTER, "-s")),
    "static and kraft.version": (STATIC, ("format", "-t", CLUSTER, "-f", "kraft.version=1")),
    "dynamic and kraft.version 0": (
        DYNAMIC,
        ("format", "-t", CLUSTER, "-s", "-f", "kraft.version=0"),
    ),
    "standalone broker": (BROKER, ("format", "-t", CLUSTER, "-s")),
    "bad release": (DYNAMIC, ("format", "-t", CLUSTER, "-s", "-r", "2.8")),
    "unstable release": (DYNAMIC, ("format", "-t", CLUSTER, "-s", "-f", "metadata.version=34")),
    "two releases": (
        DYNAMIC,
        ("format", "-t", CLUSTER, "-s", "-r", "4.3", "-f", "metadata.version=30"),
    ),
    "unknown feature": (DYNAMIC, ("format", "-t", CLUSTER, "-s", "-f", "odd=1")),
    "early scram": (DYNAMIC, ("format", "-t", CLUSTER, "-s", "-r", "3.4", "-S", SCRAM_256)),
    "bad scram": (DYNAMIC, ("format", "-t", CLUSTER, "-s", "-S", "SCRAM-SHA-256=[name=a]")),
}
TERSE = sorted(set(REFUSALS) - {"no cluster id", "two flags", "unknown option"})
"""Those that Kafka's tool refuses in one line; the others come with its parser's usage."""


LEVELS = ("bad release", "unstable release", "no such level")
"""Texts that name the known levels: compared with 4.4's, which knows as many as we do."""


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_is_the_same(tools, name):
    base, words = REFUSALS[name]
    tools.release = KAFKA_4_4 if name in LEVELS else KAFKA_4_3
    tools.configure(base)
    said = tools.run(*words)
    assert said["quorate"][0] == said["java"][0] == 1, said
    assert said["quorate"][1] == said["java"][1] == []
    if name in TERSE:
        assert said["quorate"][2] == said["java"][2]
    assert tools.files("quorate") == {}


CRASHES = {
    "bad voters": ("format", "-t", CLUSTER, "-I", "nonsense"),
    "bad level": ("format", "-t", CLUSTER, "-s", "-f", "group.version=9"),
    "bad number": ("format", "-t", CLUSTER, "-s", "-f", "group.version=x"),
    "no such level": ("format", "-t", CLUSTER, "-s", "-f", "metadata.version=99"),
    "unmet dependency": (
        *("format", "-t", CLUSTER, "-s", "-r", "3.9"),
        *("-f", "eligible.leader.replicas.version=1"),
    ),
}


@pytest.mark.parametrize("name", CRASHES)
def test_where_kafka_dies_with_a_trace_we_say_its_message(tools, name):
    words = CRASHES[name]
    tools.release = KAFKA_4_4 if name in LEVELS else KAFKA_4_3
    tools.configure(DYNAMIC)
    said = tools.run(*words)
    assert said["quorate"][0] == said["java"][0] == 1, said
    first = re.search(r"Exception: (.*)", said["java"][2])
    assert first and said["quorate"][2].startswith(first[1])
    assert len(said["quorate"][2].splitlines()) == 1


def test_a_directory_that_is_formatted_already(tools):
    tools.configure(DYNAMIC)
    tools.run("format", "-t", CLUSTER, "-N")
    again = tools.run("format", "-t", CLUSTER, "-N")
    assert again["quorate"] == again["java"]
    assert again["java"][0] == 1
    ignored = tools.run("format", "-t", CLUSTER, "-N", "-g")
    assert ignored["quorate"] == ignored["java"]
    other = tools.run("format", "-t", OTHER, "-N", "-g")
    assert other["quorate"][0] == other["java"][0] == 1
    reason = re.search(r"Exception: (.*)", other["java"][2])
    assert reason and reason[1] in other["quorate"][2]


def test_info_of_what_is_wrong(tools):
    tools.configure(STATIC)
    missing = tools.run("info")
    assert missing["quorate"] == missing["java"]
    tools.run("format", "-t", CLUSTER)
    good = tools.run("info")
    assert good["quorate"] == good["java"]
    assert good["java"][0] == 0
    for home in tools.homes.values():
        meta = home / "b" / "meta.properties"
        meta.write_text(meta.read_text().replace(CLUSTER, OTHER))
    mismatch = tools.run("info")
    assert mismatch["quorate"] == mismatch["java"]
    for home in tools.homes.values():
        (home / "b" / "meta.properties").unlink()
    unformatted = tools.run("info")
    assert unformatted["quorate"] == unformatted["java"]
    assert unformatted["java"][0] == 1


@pytest.mark.parametrize(
    "words",
    [
        ("version-mapping",),
        ("version-mapping", "--release-version", "3.9"),
        ("version-mapping", "-r", "3.3-IV3"),
        *(("version-mapping", "-r", one) for one in ("4.4-IV0", "4.4", "4.5-IV0", "9.9")),
        ("feature-dependencies", "-f", "metadata.version=30", "-f", "kraft.version=1"),
        ("feature-dependencies", "--feature", "eligible.leader.replicas.version=1"),
        ("feature-dependencies", "-f", "odd=1"),
        ("feature-dependencies", "-f", "odd"),
        ("feature-dependencies", "-f", "metadata.version=33", "-f", "share.version=2"),
        ("feature-dependencies", "-f", "metadata.version=99"),
        ("feature-dependencies", "-f", "group.version=99"),
        ("feature-dependencies", "-f", "group.version=x"),
    ],
    ids=" ".join,
)
def test_facts_about_features(tools, words):
    # Without a release the default is that of 4.3.
    tools.release = KAFKA_4_3 if words == ("version-mapping",) else KAFKA_4_4
    said = tools.run(*words, config=False)
    assert said["quorate"] == said["java"]
