"""The HTTP listener over TLS and with passwords, and the tool that reads it."""

import asyncio
import functools
import json
import socket
import ssl
from base64 import b64encode
from datetime import UTC, datetime
from http import HTTPStatus

import pytest

from quorate.base.ids import Address
from quorate.cli.main import run
from quorate.cli.tools.page_access import PageAccessError, page_access
from quorate.config.monitoring_settings import PagesSettings, pages_settings
from quorate.config.settings import ConfigError, Settings
from quorate.security.tls.authority import Authority
from quorate.server.page_security import CredentialsError, PageSecurity
from quorate.server.web import Page, WebServer
from server.in_thread import InThread

NOW = datetime.now(UTC)
AUTHORITY = Authority.create(NOW, 1)
SECRET = "Kx7-secret-of-prometheus"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pem")
    (folder / "ca.pem").write_bytes(AUTHORITY.certificate)
    (folder / "node.pem").write_bytes(AUTHORITY.issue("node", ["localhost"], NOW, 1))
    (folder / "tool.pem").write_bytes(AUTHORITY.issue("tool", [], NOW, 1))
    (folder / "users").write_text(f"# users\nprometheus:{SECRET}\nother:x:y\n")
    return folder


def tls(folder, **more):
    return {
        "ssl.keystore.location": str(folder / "node.pem"),
        "ssl.truststore.location": str(folder / "ca.pem"),
        **{key.replace("_", "."): value for key, value in more.items()},
    }


class Listener(InThread):
    """Serves `/audit` and `/healthz` in a thread."""

    def __init__(self, **settings):
        self.security = PageSecurity(PagesSettings(**settings))
        self.refused = 0

    async def serve(self):
        sock = socket.socket()
        sock.bind(("127.0.0.1", 0))
        self.address = Address("localhost", sock.getsockname()[1])
        trail = {"start": "s", "from": 0, "next": 0, "end": 0, "entries": []}
        body = json.dumps(trail).encode()
        page = Page(HTTPStatus.OK, "application/json", body)
        routes = {"/audit": lambda _: page, "/healthz": lambda _: page}
        server = WebServer(asyncio.get_running_loop(), routes, security=self.security)
        server.on_refused = self.count
        await server.listen(sock)
        await self.opened()
        server.close()

    def count(self):
        self.refused += 1


def client(folder, *, user=None, password=SECRET, **keys):
    path = folder / "client.properties"
    if user:
        keys |= {"quorate.metrics.user": user, "quorate.metrics.password": password}
    path.write_text("".join(f"{key.replace('__', '.')}={value}\n" for key, value in keys.items()))
    return str(path)


secure = functools.partial(client, security__protocol="SSL")


def test_https_with_a_password(files, tmp_path, caplog):
    trust = {"ssl.truststore.location": str(files / "ca.pem")}
    with Listener(
        tls=tls(files), credentials=files / "users", open_paths=("/healthz",)
    ) as listener:
        access = page_access(secure(tmp_path, user="prometheus", **trust))
        assert access.get(listener.address, "/audit").status == HTTPStatus.OK
        assert page_access(secure(tmp_path, user="other", password="x:y", **trust)).get(
            listener.address, "/audit"
        )
        anonymous = page_access(secure(tmp_path, **trust))
        assert anonymous.get(listener.address, "/healthz").status == HTTPStatus.OK
        with pytest.raises(PageAccessError, match=r"asks for a user: set quorate\.metrics\.user"):
            anonymous.get(listener.address, "/audit")
        for user, password in (("prometheus", "wrong"), ("nobody", SECRET)):
            wrong = page_access(secure(tmp_path, user=user, password=password, **trust))
            with pytest.raises(PageAccessError, match="refuses the user or the password"):
                wrong.get(listener.address, "/audit")
        assert listener.refused == 3
        with pytest.raises(PageAccessError, match="is it a listener of HTTPS"):
            page_access(None).get(listener.address, "/healthz")
        none = page_access(secure(tmp_path, user="prometheus"))
        with pytest.raises(PageAccessError, match=r"TLS, refused here: .*ssl\.truststore here"):
            none.get(listener.address, "/audit")
    assert "on the HTTP listener: an unknown user or a wrong password" in caplog.text
    assert "it sent plaintext, but this is a TLS listener" in caplog.text
    for text in (SECRET, "wrong", b64encode(b"prometheus:wrong").decode()):
        assert text not in caplog.text.replace("a wrong password", "")


def test_client_certificates(files, tmp_path, caplog):
    trust = {"ssl.truststore.location": str(files / "ca.pem")}
    with Listener(tls=tls(files, ssl_client_auth="required")) as listener:
        own = {**trust, "ssl.keystore.location": str(files / "tool.pem")}
        access = page_access(secure(tmp_path, **own))
        assert access.get(listener.address, "/audit").status == HTTPStatus.OK
        with pytest.raises(PageAccessError, match=r"ssl\.client\.auth=required there"):
            page_access(secure(tmp_path, **trust)).get(listener.address, "/audit")
    assert "it sent no certificate, but ssl.client.auth=required here" in caplog.text


def test_the_tool_takes_a_file(files, tmp_path, capsys):
    file = secure(tmp_path, user="prometheus", **{"ssl.truststore.location": str(files / "ca.pem")})
    with Listener(tls=tls(files), credentials=files / "users") as listener:
        words = ["cluster", "events", "--json", f"https://{listener.address}"]
        assert run([*words, "--command-config", file]) == 0
        assert run(words) == 1
    assert "does not answer" in capsys.readouterr().err


def test_a_half_handshake_ends_and_large_heads_do_not_pass_tls(files, monkeypatch, caplog):
    monkeypatch.setattr("quorate.server.web.HANDSHAKE_S", 0.05)
    with (
        Listener(tls=tls(files)) as listener,
        socket.create_connection(("127.0.0.1", listener.address.port), 5) as raw,
    ):
        raw.sendall(b"\x16\x03\x01")
        assert raw.recv(100) == b""


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (None, "no user and password"),
        ("Bearer x", "not Basic authentication"),
        ("Basic ###", "an invalid Authorization header"),
        ("Basic \xe9", "an invalid Authorization header"),
        (
            "Basic " + b64encode(b"prometheus:x").decode() + "\xff",
            "an invalid Authorization header",
        ),
        ("Basic " + b64encode(b"prometheus").decode(), "an invalid Authorization header"),
        ("Basic " + b64encode(b"\xff:x").decode(), "an invalid Authorization header"),
        ("Basic " + b64encode(b"prometheus:").decode(), "an unknown user or a wrong password"),
    ],
)
def test_other_headers_are_refused(files, header, why):
    security = PageSecurity(PagesSettings(credentials=files / "users"))
    headers = {} if header is None else {"authorization": header}
    assert security.refusal("/audit", headers) == why


def basic(user, password):
    return {"authorization": "basic " + b64encode(f"{user}:{password}".encode()).decode()}


def test_changed_users_are_read_and_a_broken_file_keeps_the_old(tmp_path, caplog):
    path = tmp_path / "users"
    path.write_text("a:1\n")
    security = PageSecurity(PagesSettings(credentials=path))
    assert security.refusal("/", basic("a", "1")) is None
    path.write_text("broken-secret\n")
    assert security.refusal("/", basic("a", "1")) is None
    assert "line 1 is not user:password; the old users stay" in caplog.text
    assert "broken-secret" not in caplog.text
    path.write_text("b:22\n")
    assert security.refusal("/", basic("a", "1")) is not None
    assert security.refusal("/", basic("b", "22")) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [(None, "No such file"), ("", "it has no line"), ("a:1\na:2\n", "line 2 names a user again")],
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path, text, why):
    if text is not None:
        (tmp_path / "users").write_text(text)
    with pytest.raises(CredentialsError, match=why):
        PageSecurity(PagesSettings(credentials=tmp_path / "users"))


def settings(**keys):
    return Settings({key.replace("__", "."): value for key, value in keys.items()}, {})


def test_the_keys():
    found = pages_settings(
        settings(
            quorate__metrics__security__protocol="SSL",
            quorate__metrics__ssl__client__auth="none",
            ssl__client__auth="required",
            ssl__keystore__location="/k",
            quorate__metrics__open__paths="/healthz,/readyz",
        )
    )
    assert found.tls is not None
    assert found.tls["ssl.client.auth"] == "none"
    assert found.tls["ssl.keystore.location"] == "/k"
    assert found.open_paths == ("/healthz", "/readyz")
    for key, value in (("security__protocol", "SASL_SSL"), ("open__paths", "healthz")):
        with pytest.raises(ConfigError, match=r"quorate\.metrics\."):
            pages_settings(settings(**{f"quorate__metrics__{key}": value}))


def test_ssl_contexts_of_the_standard_library_can_connect(files):
    """As Prometheus does."""
    context = ssl.create_default_context(cafile=str(files / "ca.pem"))
    with (
        Listener(tls=tls(files)) as listener,
        socket.create_connection(listener.address, 5) as raw,
        context.wrap_socket(raw, server_hostname="localhost") as stream,
    ):
        stream.sendall(b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n")
        data = b""
        while more := stream.recv(65536):
            data += more
        assert data.startswith(b"HTTP/1.1 200 OK")
