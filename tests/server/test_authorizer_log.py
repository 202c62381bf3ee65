"""The files of the authorizer's log, its keys, and what a slow or full disk does to it."""

import threading

import pytest

import quorate.server.authorizer_log as authorizer_log_module
from conformance.marker import kafka_scenario
from quorate.config.monitoring_settings import AuthorizerLogSettings, authorizer_log
from quorate.config.settings import ConfigError, Settings
from quorate.metadata.image import Acl
from quorate.security.acl import AclOperation, AclResource
from quorate.security.authorizer import (
    ALLOW,
    DENY,
    PREFIXED,
    Decision,
    DecisionLog,
    LoggedDecision,
    Requester,
)
from quorate.server.authorizer_log import TEXT_FILE, AuthorizerLog, AuthorizerLogError, text_lines
from quorate.server.rotating_file import RotatingFile

ALICE = Requester("User:alice", "10.0.0.7", 3)
DENIED = Decision(False, "DefaultDeny")
ALLOWED = Decision(True, "DefaultAllow")


def log_of(folder, **more):
    decisions = DecisionLog(with_allowed=False)
    return decisions, AuthorizerLog(AuthorizerLogSettings(folder, **more), decisions, 1)


def refuse(decisions, name):
    decisions.add(ALICE, AclOperation.READ, AclResource.TOPIC, name, DENIED)


def test_the_files_are_bounded(tmp_path):
    decisions, log = log_of(tmp_path, max_bytes=2000, max_files=3)
    for number in range(60):
        refuse(decisions, f"t{number}")
        log.write_new(0)
    log.close()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [TEXT_FILE, f"{TEXT_FILE}.1", f"{TEXT_FILE}.2"]
    assert all(path.stat().st_size <= 2000 for path in tmp_path.iterdir())
    assert "LITERAL:t59 for request = Metadata" in (tmp_path / TEXT_FILE).read_text()
    assert (tmp_path / TEXT_FILE).stat().st_mode & 0o777 == 0o600


@kafka_scenario("StandardAuthorizerTest", "denyAuditLogging", "allowAuditLogging")
@pytest.mark.parametrize(("permission", "level"), [(DENY, "INFO"), (ALLOW, "DEBUG")])
def test_a_line_names_who_asked_what_and_the_entry_that_decided(permission, level):
    acl = Acl(AclResource.TOPIC, "al", PREFIXED, "User:bob", "*", AclOperation.READ, permission)
    decision = Decision(permission == ALLOW, "MatchingAcl", acl)
    bob = Requester("User:bob", "127.0.0.1", 1)
    made = LoggedDecision(bob, AclOperation.READ, AclResource.TOPIC, "alpha", decision)
    result, name = ("Allowed", "ALLOW") if permission == ALLOW else ("Denied", "DENY")
    [line] = text_lines([made], 0)
    assert line.partition("] ")[2] == (
        f"{level} Principal = User:bob is {result} operation = READ from host = 127.0.0.1 on "
        "resource = Topic:LITERAL:alpha for request = Fetch with resourceRefCount = 1 based on rule "
        "MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=al, patternType=PREFIXED, "
        f"principal=User:bob, host=*, operation=READ, permissionType={name}]) "
        "(kafka.authorizer.logger)\n"
    )


@pytest.fixture
def slow_disk(monkeypatch):
    """A disk that writes once `hold` is set; `held`: it is asked to."""
    hold, held = threading.Event(), threading.Event()
    append = RotatingFile.append

    def slow(self, lines):
        held.set()
        assert hold.wait(20)
        append(self, lines)

    monkeypatch.setattr(RotatingFile, "append", slow)
    yield hold, held
    hold.set()


def test_a_slow_disk_costs_what_is_allowed_and_no_denial(tmp_path, monkeypatch, caplog, slow_disk):
    monkeypatch.setattr(authorizer_log_module, "_MAX_WAITING", 200)
    hold, held = slow_disk
    decisions = DecisionLog(with_allowed=True)
    log = AuthorizerLog(AuthorizerLogSettings(tmp_path), decisions, 1)
    refuse(decisions, "first")
    log.write_new(0)
    assert held.wait(10)
    for number in range(300):
        decisions.add(ALICE, AclOperation.READ, AclResource.TOPIC, f"t{number}", ALLOWED)
        log.write_new(0)
    for number in range(300):
        refuse(decisions, f"denied{number}")
        log.write_new(0)
    assert log.missing == 100
    hold.set()
    log.close()
    assert "100 decisions are missing in the authorizer's log, 0 of them denials" in caplog.text
    text = (tmp_path / TEXT_FILE).read_text()
    assert text.count("is Denied") == 301
    assert text.count("is Allowed") == 200


@pytest.mark.parametrize(
    ("bound", "most", "kept"), [("_MOST_DENIED", 4, 4), ("_MOST_CHARACTERS", 60, 4)]
)
def test_a_flood_of_denials_does_not_wait_for_the_disk(
    tmp_path, monkeypatch, caplog, slow_disk, bound, most, kept
):
    """The event loop calls `write_new`: what does not fit is counted, while the disk is stuck, too."""
    monkeypatch.setattr(authorizer_log_module, "_MAX_WAITING", 2)
    monkeypatch.setattr(authorizer_log_module, bound, most)
    hold, held = slow_disk
    now = [100.0]
    decisions = DecisionLog(with_allowed=False)
    log = AuthorizerLog(AuthorizerLogSettings(tmp_path), decisions, 1, lambda: now[0])
    refuse(decisions, "t00")
    log.write_new(0)
    assert held.wait(10)
    for number in range(1, 20):
        refuse(decisions, f"t{number:02}")
        if number % 3 == 0 or number == 19:  # several in a turn of the loop
            log.write_new(0)
    assert "missing" not in caplog.text
    assert log.missing == 19 - kept
    now[0] += 1.0
    refuse(decisions, "t20")
    log.write_new(0)
    lost = 20 - kept
    assert (
        f"{lost} decisions are missing in the authorizer's log, {lost} of them denials"
        in caplog.text
    )
    refuse(decisions, "t21")
    log.write_new(0)
    hold.set()
    log.close()
    assert log.missing == lost + 1
    assert "1 decisions are missing in the authorizer's log, 1 of them denials" in caplog.text
    assert (tmp_path / TEXT_FILE).read_text().count("is Denied") == kept + 1


def test_a_full_disk_is_reported_once(tmp_path, monkeypatch, caplog):
    def full(self, lines):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RotatingFile, "append", full)
    decisions, log = log_of(tmp_path)
    for _ in range(3):
        refuse(decisions, "t")
        log.write_new(0)
    log.close()
    assert log.missing == 3
    assert caplog.text.count("cannot be written: [Errno 28] No space left on device") == 1
    assert "decisions are missing in the authorizer's log" in caplog.text


def test_a_folder_that_cannot_be_used_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        AuthorizerLogError, match=r"quorate\.authorizer\.log\.dir=.*make it a direc"
    ):
        log_of(tmp_path / "file")


def settings(**keys):
    return Settings({f"quorate.authorizer.log.{key}": value for key, value in keys.items()}, {})


def test_the_keys(tmp_path):
    assert authorizer_log(settings(level="DEBUG")) is None
    found = authorizer_log(
        settings(
            **{"dir": "/x", "level": "DEBUG", "format": "json,text", "max.bytes": "5000"},
        )
    )
    assert found is not None
    assert (found.with_allowed, found.formats) == (True, ("json", "text"))
    assert (found.max_bytes, found.max_files) == (5000, 5)


@pytest.mark.parametrize(
    ("key", "value"),
    [("level", "WARN"), ("format", "xml"), ("max.bytes", "10"), ("max.files", "0")],
)
def test_wrong_values_are_refused(key, value):
    with pytest.raises(ConfigError, match=f"quorate.authorizer.log.{key}"):
        authorizer_log(settings(dir="/x", **{key: value}))
