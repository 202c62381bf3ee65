"""An operator's policies: Python functions that the properties file names."""

import logging
import re
from dataclasses import replace
from pathlib import Path

import pytest

from quorate.config.node_file import load_config
from quorate.config.settings import ConfigError
from quorate.config.unsupported import check_servable
from quorate.controller.policies import ConfigChange, NewTopic, PolicyViolationError
from quorate.server.settings import controller_config

TOPIC = NewTopic("orders", 1, 1, None, {})
CHANGE = ConfigChange(2, "orders", {"retention.ms": None})
LINES = (
    "process.roles=controller\nnode.id=1\nlisteners=CONTROLLER://:1\n"
    "controller.listener.names=CONTROLLER\ncontroller.quorum.voters=1@h:1\n"
)


MODULE = """
from quorate.controller.policies import PolicyViolationError

NUMBER = 7

def accept(subject):
    pass

def refuse(subject):
    raise PolicyViolationError(f"not {subject}")

def fail(subject):
    raise KeyError("a defect")
"""
PAGE = Path(__file__).resolve().parents[2] / "docs/policies.md"


@pytest.fixture
def load(tmp_path, monkeypatch):
    (tmp_path / "our_policies.py").write_text(MODULE)
    [program] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "policies_of_the_page.py").write_text(program)
    monkeypatch.syspath_prepend(tmp_path)

    def load(text):
        path = tmp_path / "server.properties"
        path.write_text(LINES + text)
        return load_config(path)

    return load


def call(policy, subject):
    assert policy is not None
    policy(subject)


def test_policies_are_called(load):
    made = controller_config(
        load(
            "quorate.create.topic.policy=our_policies:refuse\n"
            "quorate.alter.config.policy=our_policies:accept\n"
        ),
        "cluster",
    )
    with pytest.raises(PolicyViolationError, match="not NewTopic"):
        call(made.create_topic_policy, TOPIC)
    call(made.alter_config_policy, CHANGE)
    none = controller_config(load(""), "cluster")
    assert none.create_topic_policy is None and none.alter_config_policy is None


def test_the_program_of_the_page_refuses(load):
    made = controller_config(
        load(
            "quorate.create.topic.policy=policies_of_the_page:new_topic\n"
            "quorate.alter.config.policy=policies_of_the_page:config_change\n"
        ),
        "cluster",
    )
    call(made.create_topic_policy, TOPIC)
    with pytest.raises(PolicyViolationError, match="at most 100 partitions"):
        call(made.create_topic_policy, replace(TOPIC, partitions=101))
    call(made.alter_config_policy, CHANGE)
    with pytest.raises(PolicyViolationError, match="at least an hour"):
        call(made.alter_config_policy, replace(CHANGE, configs={"retention.ms": "5"}))


def test_the_log_says_why_a_policy_failed(load, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("quorate"), "propagate", True)
    made = controller_config(load("quorate.create.topic.policy=our_policies:fail\n"), "cluster")
    with pytest.raises(KeyError):
        call(made.create_topic_policy, TOPIC)
    assert "quorate.create.topic.policy failed for topic orders" in caplog.text
    assert "a defect" in caplog.text


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("no_such_module:check", "cannot be loaded: ModuleNotFoundError"),
        ("our_policies:missing", "cannot be loaded: AttributeError"),
        ("our_policies:NUMBER", "is no function, but of type int"),
    ],
)
def test_a_policy_that_cannot_be_loaded_ends_the_start(load, value, why):
    key = "quorate.alter.config.policy"
    with pytest.raises(ConfigError) as refused:
        controller_config(load(f"{key}={value}\n"), "cluster")
    assert f"{key}={value} {why}" in str(refused.value)
    assert "server.properties" in str(refused.value)


@pytest.mark.parametrize("value", ["our_policies", "a b:c", "a:", ":b", "a:b:c"])
def test_a_policy_is_named_by_module_and_attribute(load, value):
    with pytest.raises(ConfigError, match="It should be of the form module:attribute"):
        load(f"quorate.create.topic.policy={value}\n")


@pytest.mark.parametrize(
    ("kafkas", "ours"),
    [
        ("create.topic.policy.class.name", "quorate.create.topic.policy"),
        ("alter.config.policy.class.name", "quorate.alter.config.policy"),
    ],
)
def test_a_node_does_not_pass_over_a_java_policy(load, kafkas, ours):
    with pytest.raises(ConfigError, match=f"{ours}=module:attribute"):
        check_servable(load(f"{kafkas}=com.example.Policy\n"))
    check_servable(load(f"{kafkas}=com.example.Policy\n{ours}=our_policies:accept\n"))


def test_the_controller_knows_the_file(load):
    """With both names of the node's id, as Kafka describes it."""
    made = controller_config(load("log.retention.hours= 7\n"), "cluster")
    assert made.file["log.retention.hours"] == "7"
    assert made.file["node.id"] == made.file["broker.id"] == "1"
    config = load("ssl.key.password=secret\n")
    assert "secret" not in repr(config)
