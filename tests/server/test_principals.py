"""The operator's function that names the principals of connections."""

import asyncio
import logging
import re
import socket
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest
import trustme

from quorate.config.node_file import load_config
from quorate.config.settings import ConfigError
from quorate.config.unsupported import check_servable
from quorate.security.principal import PrincipalError
from quorate.server.limits import ConnectionLimits
from quorate.server.listener import Acceptor
from quorate.server.node_security import NodeSecurity

LINES = (
    "process.roles=controller\nnode.id=1\nlisteners=CONTROLLER://:1,CLIENT://:2\n"
    "controller.listener.names=CONTROLLER,CLIENT\ncontroller.quorum.voters=1@h:1\n"
    "listener.security.protocol.map=CONTROLLER:PLAINTEXT,CLIENT:PLAINTEXT\n"
)
KEY = "quorate.principal.builder"
MODULE = """
def everything(client):
    return f"User:{client.listener}|{client.security_protocol}|{client.host}|{client.principal}"

def none(client):
    return None

def fail(client):
    raise KeyError("a defect")
"""
PAGE = Path(__file__).resolve().parents[2] / "docs/security.md"


@pytest.fixture
def load(tmp_path, monkeypatch):
    (tmp_path / "our_principals.py").write_text(MODULE)
    [program] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "principals_of_the_page.py").write_text(program)
    monkeypatch.syspath_prepend(tmp_path)

    def load(text):
        path = tmp_path / "server.properties"
        path.write_text(LINES + text)
        return load_config(path)

    return load


def principal_on(listener, config):
    """The principal of a request on a listener of the node; None: the connection was closed."""

    async def run():
        found = []

        def on_frame(slot, frame):
            found.append(slot.connection.authentication.principal)
            slot.data = b"\0\0\0\0"
            slot.connection.flush()

        sock = socket.socket()
        sock.bind(("127.0.0.1", 0))
        acceptor = Acceptor(asyncio.get_running_loop(), ConnectionLimits(), on_frame, lambda: True)
        await acceptor.listen(listener, sock, NodeSecurity(config).of(listener))
        reader, writer = await asyncio.open_connection(*sock.getsockname())
        writer.write(b"\0\0\0\1x")
        async with asyncio.timeout(5):
            with suppress(ConnectionResetError):
                await reader.read(4)
        writer.close()
        acceptor.close()
        return found[0] if found else None

    return asyncio.run(run())


def test_the_function_names_the_principal_of_a_connection(load):
    config = load(f"{KEY}=our_principals:everything\n")
    for listener in ("CONTROLLER", "CLIENT"):
        seen = f"User:{listener}|PLAINTEXT|127.0.0.1|User:ANONYMOUS"
        assert principal_on(listener, config) == seen


def test_the_program_of_the_page_names_principals(load):
    config = load(f"{KEY}=principals_of_the_page:by_listener\n")
    assert principal_on("CONTROLLER", config) == "User:controller"
    assert principal_on("CLIENT", config) == "User:ANONYMOUS"


@pytest.mark.parametrize(
    ("function", "why"), [("none", "returned None, not a text"), ("fail", "failed: KeyError")]
)
def test_a_connection_without_a_name_is_closed(load, caplog, monkeypatch, function, why):
    monkeypatch.setattr(logging.getLogger("quorate"), "propagate", True)
    assert principal_on("CLIENT", load(f"{KEY}=our_principals:{function}\n")) is None
    assert f"on CLIENT: {KEY} {why}" in caplog.text


def test_a_function_that_cannot_be_loaded_ends_the_start(load):
    with pytest.raises(ConfigError, match="cannot be loaded: AttributeError"):
        NodeSecurity(load(f"{KEY}=our_principals:missing\n"))


def test_a_node_does_not_pass_over_a_java_builder(load):
    java = "principal.builder.class=com.example.Names\n"
    with pytest.raises(ConfigError, match=f"{KEY}=module:attribute"):
        check_servable(load(java))
    check_servable(load(f"{java}{KEY}=our_principals:everything\n"))


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_rules_name_the_clients_of_tls_and_not_those_of_sasl(load, tmp_path, protocol):
    """`DefaultKafkaPrincipalBuilder` maps no name of a `SaslAuthenticationContext`."""
    ca = trustme.CA()
    made, client = ca.issue_cert("localhost"), ca.issue_cert("tool", common_name="tool")
    made.private_key_and_cert_chain_pem.write_to_path(tmp_path / "key.pem")
    ca.cert_pem.write_to_path(tmp_path / "ca.pem")
    text = LINES.replace("CLIENT:PLAINTEXT", f"CLIENT:{protocol}")
    path = tmp_path / "tls.properties"
    path.write_text(
        f"{text}ssl.keystore.location={tmp_path}/key.pem\n"
        f"ssl.truststore.location={tmp_path}/ca.pem\n"
        "ssl.principal.mapping.rules=RULE:^CN=broker$/broker/\n"
        "listener.name.client.ssl.client.auth=required\n"
    )
    wrapped = NodeSecurity(load_config(path)).of("CLIENT").wrap
    assert wrapped is not None
    transport = wrapped(Mock())
    name = cast(Any, transport)._principal_of
    certificate = ssl.PEM_cert_to_DER_cert(client.cert_chain_pems[0].bytes().decode())
    if protocol == "SASL_SSL":
        assert name(certificate) == "User:ANONYMOUS"
    else:
        with pytest.raises(PrincipalError, match="No rules apply"):
            name(certificate)
