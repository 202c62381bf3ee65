"""`${provider:path:key}` in a properties file: Kafka's config providers."""

import pytest

from quorate.config.node_file import load_config
from quorate.config.properties_file import read_settings
from quorate.config.settings import ConfigError

PACKAGE = "org.apache.kafka.common.config.provider."
ENV = f"config.providers=env\nconfig.providers.env.class={PACKAGE}EnvVarConfigProvider\n"
FILES = f"""\
config.providers=file, dir
config.providers.file.class={PACKAGE}FileConfigProvider
config.providers.dir.class={PACKAGE}DirectoryConfigProvider
"""


@pytest.fixture
def read(tmp_path, monkeypatch):
    monkeypatch.setenv("ROOT", "/srv/kafka")
    monkeypatch.delenv("NOWHERE", raising=False)

    def read(text, *overrides):
        path = tmp_path / "server.properties"
        path.write_text(text)
        return read_settings(path, overrides)

    return read


def refusal(read, *args):
    with pytest.raises(ConfigError) as caught:
        read(*args)
    return str(caught.value)


def test_a_reference_to_an_environment_variable_is_resolved(read):
    text = f"{ENV}log.dirs=${{env:ROOT}}/a,${{env:ROOT}}/b\n"
    assert read(text).items("log.dirs") == ("/srv/kafka/a", "/srv/kafka/b")
    assert read(ENV, "log.dirs=${env:ROOT}").text("log.dirs") == "/srv/kafka"


def test_references_to_files_and_directories_are_resolved(read, tmp_path):
    (tmp_path / "secrets").write_text("id=7\nnested=${env:ROOT}\n")
    (tmp_path / "port").write_text("9093")
    settings = read(
        f"{FILES}node.id=${{file:{tmp_path}/secrets:id}}\nport=${{dir:{tmp_path}:port}}\n"
        f"nested=${{file:{tmp_path}/secrets:nested}}\n"
    )
    assert (settings.integer("node.id", None), settings.text("port")) == (7, "9093")
    assert settings.text("nested") == "${env:ROOT}"  # once is enough


def test_an_unknown_provider_leaves_the_text_as_in_kafka(read):
    assert read("log.dirs=${env:ROOT}\n").text("log.dirs") == "${env:ROOT}"
    assert read(f"{ENV}log.dirs=${{file:/x:y}}\n").text("log.dirs") == "${file:/x:y}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{ENV}log.dirs=${{env:NOWHERE}}\n", "log.dirs: ${env:NOWHERE} has no value ("),
        (f"{ENV}log.dirs=${{env:/etc:ROOT}}\n", "Path is not supported for EnvVarConfigProvider"),
        (f"{FILES}log.dirs=${{file:/none:x}}\n", "Could not read properties from file /none: No"),
        (f"{FILES}log.dirs=${{dir:/none:x}}\n", "${dir:/none:x} has no value"),
        (f"{FILES}log.dirs=${{dir:/etc:../etc/passwd}}\n", "has no value"),
        ("config.providers=vault\n", "config.providers.vault.class is missing"),
        (
            "config.providers=v\nconfig.providers.v.class=com.example.Vault\n",
            "the class com.example.Vault is not supported; supported are org.apache.kafka.common.config."
            "provider.EnvVarConfigProvider, ",
        ),
        (
            f"{ENV}config.providers.env.param.allowlist.pattern=KAFKA_.*\nx=${{env:ROOT}}\n",
            "${env:ROOT} has no value",
        ),
        (
            f"{FILES}config.providers.file.param.allowed.paths=/srv,/run\nx=${{file:/etc/a:x}}\n",
            "/etc/a is not below allowed.paths (/srv, /run)",
        ),
    ],
)
def test_a_reference_to_a_missing_value_is_refused(read, text, said):
    """As a text it would become the name of a directory."""
    message = refusal(read, text)
    assert said in message and "server.properties, line" in message


@pytest.mark.parametrize(
    "reference", ["file:/a\\u0000b:key", "dir:/a\\u0000b:key", "dir:/:a\\u0000b"]
)
def test_a_file_with_a_nul_in_its_name_is_refused(read, reference):
    said = refusal(read, f"{FILES}log.dirs=${{{reference}}}\n")
    assert "no file has such a name" in said and "server.properties, line 4" in said


def test_provider_keys_cause_no_warning(tmp_path, monkeypatch):
    monkeypatch.setenv("ROOT", "/srv/kafka")
    path = tmp_path / "server.properties"
    path.write_text(
        f"{ENV}process.roles=controller\nnode.id=1\nlisteners=CONTROLLER://localhost:9093\n"
        "controller.listener.names=CONTROLLER\n"
        "controller.quorum.bootstrap.servers=localhost:9093\nlog.dirs=${env:ROOT}\n"
    )
    config = load_config(path)
    assert config.log_dirs == ("/srv/kafka",) and config.warnings == ()


def test_a_malformed_escape_has_kafkas_message(read):
    for escape in ("\\u12", "\\uzzzz"):
        assert "Malformed \\uxxxx encoding." in refusal(read, f"log.dirs=/d/{escape}\n")
