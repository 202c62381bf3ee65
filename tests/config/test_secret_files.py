"""A warning for each file with secrets that other users of the machine can read."""

import pytest

from quorate.config.properties_file import read_settings

PROVIDERS = """\
config.providers=file,dir
config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
config.providers.dir.class=org.apache.kafka.common.config.provider.DirectoryConfigProvider
"""


@pytest.fixture
def notes(tmp_path):
    """What reading a properties file with this mode notes, with the files beside it."""

    def read(text, mode=0o600, **beside):
        for name, its_mode in beside.items():
            path = tmp_path / name
            path.write_text("password=hunter2\n")
            path.chmod(its_mode)
        path = tmp_path / "server.properties"
        path.write_text(text.format(dir=tmp_path))
        path.chmod(mode)
        found = read_settings(path).notes
        assert "hunter2" not in "".join(found)
        return [note.replace(str(tmp_path), "DIR") for note in found]

    return read


def test_a_key_store_that_others_can_read(notes):
    text = "listener.name.controller.ssl.keystore.location={dir}/node.p12\n"
    assert notes(text, **{"node.p12": 0o600}) == []
    key = "listener.name.controller.ssl.keystore.location"
    for mode, who in ((0o640, "its group"), (0o644, "everybody"), (0o604, "everybody")):
        [note] = notes(text, **{"node.p12": mode})
        assert note == (
            f"DIR/node.p12 holds the private key of {key}, and {who} can read it (mode {mode:04o}): "
            "let only the node's user read it, for example with chmod 600 DIR/node.p12"
        )


def test_the_token_of_oauthbearer_that_others_can_read(notes):
    text = "sasl.oauthbearer.token.endpoint.url=file://{dir}/token\n"
    assert notes(text, token=0o600) == []
    [note] = notes(text, token=0o644)
    assert note.startswith("DIR/token holds the token of sasl.oauthbearer.token.endpoint.url, and")


@pytest.mark.parametrize(
    "line",
    [
        "ssl.keystore.password=hunter2",
        "ssl.key.password=hunter2",
        "listener.name.controller.ssl.keystore.key=hunter2",
        'listener.name.c.plain.sasl.jaas.config=x.PlainLoginModule required password="hunter2";',
        "delegation.token.secret.key=hunter2",
    ],
)
def test_a_properties_file_with_a_secret_that_others_can_read(notes, line):
    key = line.partition("=")[0]
    assert notes(line) == []
    [note] = notes(line, 0o644)
    assert note.startswith(f"DIR/server.properties holds {key}, and everybody can read it")


@pytest.mark.parametrize(
    "line",
    [
        "ssl.truststore.location={dir}/server.properties",
        "ssl.keystore.location={dir}/nowhere",
        "listener.name.c.scram-sha-256.sasl.jaas.config=x.ScramLoginModule required;",
        "ssl.keystore.password=",
    ],
)
def test_what_is_no_secret_needs_no_warning(notes, line):
    assert notes(line, 0o644) == []


def test_the_files_of_config_providers(notes):
    text = PROVIDERS + (
        "ssl.keystore.password=${{file:{dir}/secrets.properties:password}}\n"
        "ssl.key.password=${{dir:{dir}:key}}\n"
    )
    assert notes(text, 0o644, **{"secrets.properties": 0o600, "key": 0o600}) == []
    found = notes(text, 0o644, **{"secrets.properties": 0o644, "key": 0o640})
    assert [note.partition(",")[0] for note in found] == [
        "DIR/secrets.properties holds values for config providers",
        "DIR/key holds values for config providers",
    ]
