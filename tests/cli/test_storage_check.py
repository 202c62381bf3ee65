"""`quorate storage check`: what it finds in files and directories, and that it changes nothing."""

import json
import shutil
import struct
from functools import partial
from pathlib import Path

import pytest

from quorate.config.collecting import CollectingSettings
from quorate.config.properties_file import read_as
from quorate.formats.batch import encode_batch, iter_batches
from quorate.formats.files import PARTITION_DIRECTORY
from quorate.formats.meta_properties import decode_meta_properties
from quorate.formats.records import FeatureLevelRecord, NoOpRecord, encode_record
from quorate.server import preflight
from quorate.server.preflight import findings
from quorate.storage.api import AppendedBatch
from quorate.storage.disk import OsDisk
from quorate.storage.disk_storage import FileStorage
from shell.test_loading import collecting  # noqa: F401 - a fixture

SAMPLES = Path(__file__).resolve().parents[1] / "data" / "kafka-4.3.1"
LEVEL = "metadata.version has level 34"
FROM_THE_FUTURE = b"\x01\xc8\x01\x00\x00"
"""The frame of a record of type 200."""


class Controller:
    """A copy of a directory that a Java controller wrote, and its properties file."""

    def __init__(self, root: Path, sample: str) -> None:
        self.home = root / "data"
        shutil.copytree(SAMPLES / sample, self.home)
        meta = decode_meta_properties((self.home / "meta.properties").read_bytes(), "sample")
        self.path = root / "server.properties"
        self.keys = {
            "process.roles": "controller",
            "node.id": str(meta.node_id),
            "listeners": "CONTROLLER://localhost:9093",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": "localhost:9093",
            "log.dirs": str(self.home),
        }
        self.write()

    def write(self, **keys: str) -> None:
        self.keys |= {key.replace("_", "."): value for key, value in keys.items()}
        self.path.write_text("".join(f"{key}={value}\n" for key, value in self.keys.items()))

    def append(self, *values: bytes) -> int:
        """Append one batch to the log; its offset."""
        storage = FileStorage(self.home)
        log = storage.open().log
        end, epoch = log.end_offset, log.epochs[-1][0]
        data = encode_batch(end, epoch, 1_700_000_000_000, list(values))
        storage.append([AppendedBatch(end, end + len(values) - 1, epoch, data)])
        storage.sync()
        storage.close()
        return end

    def append_as_java(self) -> None:
        """Append one batch, then an entry of the time index."""
        [segment] = (self.home / PARTITION_DIRECTORY).glob("*.log")
        end = list(iter_batches(segment.read_bytes()))[-1].last_offset + 1
        with segment.open("ab") as log:
            log.write(
                encode_batch(end, 1, 1_700_000_000_000 + end, [encode_record(NoOpRecord(), 0)])
            )
        with segment.with_suffix(".timeindex").open("ab") as index:
            index.write(struct.pack(">qi", 1_700_000_000_000 + end, end))

    def blockers(self) -> dict[str, str]:
        found = findings(read_as(CollectingSettings, self.path))
        return {one.about: one.reason for one in found if one.blocks}

    def files(self) -> dict[str, tuple[int, bytes]]:
        paths = sorted(path for path in self.home.rglob("*") if path.is_file())
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in paths}


@pytest.fixture
def controller(tmp_path):
    return Controller(tmp_path, "a-first/node1")


def test_a_directory_of_kafka_is_ready_and_left_as_it_is(controller, quorate):
    before = controller.files()
    outcome = quorate("storage", "check", "-c", controller.path)
    assert outcome == (0, f"Nothing blocks a Quorate node with {controller.path}.\n", "")
    assert controller.files() == before


def test_no_collection_visits_the_image_while_it_grows(controller, collecting):  # noqa: F811
    assert controller.blockers() == {}
    assert collecting and not any(collecting)


class WrittenMeanwhile:
    """A disk on which a Java controller appends whenever the check has read the log."""

    def __init__(self, path, controller, appends):
        self._disk = OsDisk(path)
        self._controller = controller
        self._appends = appends

    def __getattr__(self, name):
        return getattr(self._disk, name)

    def open(self, name, *, create=False):
        if name.endswith(".timeindex") and self._appends:
            self._appends.pop()
            self._controller.append_as_java()
        return self._disk.open(name, create=create)


@pytest.mark.parametrize("appends", [1, 3])
def test_a_controller_that_appends_during_the_check_blocks_nothing(
    controller, monkeypatch, appends
):
    controller.append_as_java()
    disk = partial(WrittenMeanwhile, controller=controller, appends=[None] * appends)
    monkeypatch.setattr(preflight, "OsDisk", disk)
    assert controller.blockers() == {}


@pytest.mark.parametrize(
    "sample", ["c-reconfigured/node3", "e-truncated/node1", "f-static-v0/node1"]
)
def test_other_histories_are_ready_too(tmp_path, sample):
    assert Controller(tmp_path, sample).blockers() == {}


def test_every_refused_key_is_listed(controller, quorate):
    controller.write(
        process_roles="broker,controller",
        listeners="CONTROLLER://localhost:9093,BROKER://localhost:9092",
        listener_security_protocol_map="CONTROLLER:SASL_PLAINTEXT,BROKER:PLAINTEXT",
        inter_broker_listener_name="BROKER",
        principal_builder_class="com.example.Builder",
        authorizer_class_name="com.example.Authorizer",
        create_topic_policy_class_name="com.example.Topics",
        alter_config_policy_class_name="com.example.Configs",
        client_quota_callback_class="com.example.Quotas",
    )
    outcome = quorate("storage", "check", "-c", controller.path, "--json")
    found = json.loads(outcome.out)
    assert (outcome.code, found["blocked"]) == (1, True)
    assert [one["about"] for one in found["findings"] if one["blocks"]] == [
        "sasl.enabled.mechanisms",
        "sasl.mechanism.controller.protocol",
        "process.roles",
        "principal.builder.class",
        "authorizer.class.name",
        "create.topic.policy.class.name",
        "alter.config.policy.class.name",
        "client.quota.callback.class",
    ]
    assert "GSSAPI (Kerberos)" in str(found["findings"])
    ignored = " ".join(one["reason"] for one in found["findings"] if not one["blocks"])
    assert not [one for one in found["findings"] if one["blocks"] and one["about"] in ignored]


def test_a_key_without_effect_is_shown_and_blocks_nothing(controller, quorate):
    controller.write(**{"metric.reporters": "", "own.key": "1"})
    outcome = quorate("storage", "check", "-c", controller.path)
    assert outcome.code == 0
    assert "\nno      keys   Keys that Quorate does not use are ignored: " in outcome.out
    assert "own.key" in outcome.out


def test_a_policy_that_cannot_be_loaded_and_a_missing_key_store_block(controller):
    controller.write(
        listener_security_protocol_map="CONTROLLER:SSL",
        quorate_create_topic_policy="no_such_module:check",
    )
    found = controller.blockers()
    assert found.keys() == {"quorate.create.topic.policy", "ssl.keystore.location"}


def test_a_level_beyond_ours_is_found_anywhere_in_the_log(controller, quorate):
    record = FeatureLevelRecord(name="metadata.version", feature_level=34)
    offset = controller.append(encode_record(record, 0))
    outcome = quorate("storage", "check", "-c", controller.path)
    assert outcome.code == 1
    assert f"offsets {offset} to {offset}: feature {LEVEL} (4.5-IV0)" in outcome.out
    assert outcome.out.endswith(f"Quorate cannot run {controller.path} as it is.\n")


def test_a_record_of_a_later_release_is_found(controller):
    offset = controller.append(FROM_THE_FUTURE)
    (reason,) = controller.blockers().values()
    assert f"cannot apply the record at offset {offset}" in reason


def test_a_directory_of_a_later_layout_or_of_another_node_is_found(controller):
    meta = controller.home / "meta.properties"
    text = meta.read_text()
    meta.write_text(text.replace("version=1", "version=9"))
    assert "log.dirs" in controller.blockers()
    meta.write_text(text)
    controller.write(node_id="77")
    assert "Stored node id 1 doesn't match" in controller.blockers()["log.dirs"]


def test_a_damaged_log_is_found(controller):
    segment = next(controller.home.glob("*/*.log"))
    data = bytearray(segment.read_bytes())
    data[30] ^= 1
    segment.chmod(0o600)
    segment.write_bytes(data)
    assert "damaged" in controller.blockers()[str(controller.home)]


def test_a_file_that_cannot_be_read_has_its_own_exit_code(quorate, tmp_path):
    outcome = quorate("storage", "check", "-c", tmp_path / "nowhere")
    assert (outcome.code, outcome.out) == (2, "")
    assert "Cannot read" in outcome.err
    assert quorate("storage", "check").code == 1
