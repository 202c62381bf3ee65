"""No secret of a node and its users leaves it: every byte that it and the tools write is searched.

The metadata log and what prints it to its owner (`dump-log`, `metadata-shell` without `--redact`,
`delegation-tokens --create`) show what Kafka shows. They prove here that the search finds secrets.
"""

import contextlib
import http.client
import io
import json
import os
import re
import signal
from base64 import b64decode, b64encode
from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509 import load_pem_x509_certificate

from e2e.test_sasl import jaas
from interop.kafka import HOST, Quorum, free_port, wait_for
from quorate.cli.main import run
from quorate.security.tls.authority import Authority

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("secrets")]

PROVIDERS = "org.apache.kafka.common.config.provider"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
SECRETS = {
    "password of the key store": "Ks1-hid/den+Kw8rTq",
    "password of the key": "Kp2-hid/den+Zm4xLd",
    "password of the trust store": "Ts3-hid/den+Bn7cYf",
    "PLAIN password of the controller": "Pc4-hid/den+Gh2vRs",
    "PLAIN password of the admin": "Pa5-hid/den+Wj9kUe",
    "SCRAM password of alice": "Sa6-hid/den+Xt3mOb",
    "new SCRAM password of alice": "Sn7-hid/den+Qy6pIl",
    "key of the delegation tokens": "Dk8-hid/den+Vf1nCa",
    "password in a dynamic config": "Dc9-hid/den+Eu5wHg",
    "wrong password": "Wp0-hid/den+Mr8sJx",
}
"""What -> the text. The characters differ in base64, URL and JSON forms."""


def forms(secret):
    """The bytes by which a secret may be written."""
    raw = secret if isinstance(secret, bytes) else secret.encode()
    texts = {raw, b64encode(raw).rstrip(b"="), raw.hex().encode()}
    if isinstance(secret, str):
        texts |= {quote(secret, safe="").encode(), secret.replace("/", "\\/").encode()}
    else:
        texts |= {b64encode(raw, b"-_").rstrip(b"="), repr(raw)[2:-1].encode()}
        signed = [byte - 256 if byte > 127 else byte for byte in raw]
        texts |= {", ".join(map(str, numbers)).encode() for numbers in (raw, signed)}
    return texts


class Searched:
    """What was written, by its source, and the secrets."""

    def __init__(self):
        self.secrets = {what: forms(secret) for what, secret in SECRETS.items()}
        self.written = {}

    def add(self, what, secret):
        self.secrets[what] = forms(secret)

    def found_in(self, data):
        return {what for what, texts in self.secrets.items() if any(t in data for t in texts)}

    def leaks(self):
        found = {source: self.found_in(data) for source, data in self.written.items()}
        return {source: leaked for source, leaked in found.items() if leaked}

    def tool(self, *words, keep=True):
        """Run a tool; exit code and what it wrote, with tracebacks of its errors."""
        line = [str(word) for word in words]
        text = io.TextIOWrapper(io.BytesIO(), write_through=True)
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            code = run(line)
        data = text.buffer.getvalue()
        if keep:
            shown = " ".join(line[:1] + [w for w in line if w.startswith("--")])
            name = f"{len(self.written)}: {shown}"
            self.written[name] = data
        return code, data.decode()

    def pages(self, listener, paths):
        for path in paths:
            client = http.client.HTTPConnection(listener, timeout=5)
            with contextlib.closing(client):
                client.request("GET", path)
                self.written[f"page {path}"] = client.getresponse().read()


class Files:
    """The stores of the quorum, and the files of its clients."""

    def __init__(self, directory, searched):
        self.directory = directory
        now = datetime.now(UTC)
        authority = Authority.create(now, 1)
        pem = authority.issue("controller", (HOST, "localhost"), now, 1)
        key, certificate = (
            serialization.load_pem_private_key(pem, None),
            load_pem_x509_certificate(pem[pem.index(b"-----BEGIN CERT") :]),
        )
        assert isinstance(key, EllipticCurvePrivateKey)
        ca = load_pem_x509_certificate(authority.certificate)
        self.keystore = self.write(
            "node.p12",
            pkcs12.serialize_key_and_certificates(
                b"node", key, certificate, None, lock("password of the key store")
            ),
        )
        self.truststore = self.write(
            "trust.p12",
            pkcs12.serialize_key_and_certificates(
                None, None, None, [ca], lock("password of the trust store")
            ),
        )
        sealed = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            lock("password of the key"),
        )
        numbers = key.private_numbers()
        searched.add("the private key", numbers.private_value.to_bytes(32, "big"))
        searched.add("the private key in DER", der_of(key))
        self.inline = {
            "ssl.keystore.key": one_line(sealed),
            "ssl.keystore.certificate.chain": one_line(certificate.public_bytes(PEM)),
            "ssl.key.password": SECRETS["password of the key"],
        }
        searched.add("the sealed private key", sealed.splitlines()[3])
        self.stores = {
            "ssl.truststore.location": self.truststore,
            "ssl.truststore.password": SECRETS["password of the trust store"],
        }

    def write(self, name, data):
        path = self.directory / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return str(path)

    def client(self, name, mechanism, user, secret, **changes):
        lines = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": jaas(mechanism, user, SECRETS.get(secret, secret)),
            **self.stores,
            **self.inline,
            **{key.replace("_", "."): value for key, value in changes.items()},
        }
        return self.write(
            f"{name}.properties", "".join(f"{key}={value}\n" for key, value in lines.items())
        )


PEM = serialization.Encoding.PEM


def lock(what):
    return serialization.BestAvailableEncryption(SECRETS[what].encode())


def one_line(pem):
    return pem.decode().replace("\n", " ").strip()


def der_of(key):
    return key.private_bytes(
        serialization.Encoding.DER,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )[40:70]


def node_config(files):
    plain = "".join(
        f' user_{user}="{SECRETS[f"PLAIN password of the {user}"]}"'
        for user in ("controller", "admin")
    )
    provided = files.write(
        "provided.properties", f"key.store={SECRETS['password of the key store']}\n"
    )
    (files.directory / "mounted").mkdir()
    (files.directory / "mounted" / "tokens").write_text(SECRETS["key of the delegation tokens"])
    providers = {"file": "File", "dir": "Directory", "env": "EnvVar"}
    return {
        "listener.security.protocol.map": "CONTROLLER:SASL_SSL",
        "config.providers": ",".join(providers),
        **{
            f"config.providers.{name}.class": f"{PROVIDERS}.{kind}ConfigProvider"
            for name, kind in providers.items()
        },
        "ssl.keystore.location": files.keystore,
        "ssl.keystore.password": f"${{file:{provided}:key.store}}",
        "ssl.truststore.location": files.truststore,
        "ssl.truststore.password": "${env:TRUST_STORE_PASSWORD}",
        "listener.name.controller.ssl.client.auth": "requested",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": jaas(
            "PLAIN", "controller", SECRETS["PLAIN password of the controller"], plain
        ),
        "listener.name.controller.scram-sha-512.sasl.jaas.config": SCRAM_MODULE,
        "delegation.token.secret.key": f"${{dir:{files.directory / 'mounted'}:tokens}}",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:controller;User:admin;User:alice",
        "quorate.metrics.listener": f"{HOST}:{free_port()}",
        "quorate.audit.dir": str(files.directory / "audit"),
    }


@pytest.fixture(scope="module")
def environment():
    patch = pytest.MonkeyPatch()
    patch.setenv("TRUST_STORE_PASSWORD", SECRETS["password of the trust store"])
    patch.setenv("QUORATE_DEBUG", "1")
    patch.setenv("PYTHONFAULTHANDLER", "1")
    yield
    patch.undo()


@pytest.fixture(scope="module")
def searched(tmp_path_factory, environment):
    """A node's life: formatted, used and misused, crashed and started again."""
    root = tmp_path_factory.mktemp("secrets")
    searched = Searched()
    files = Files(root, searched)
    with Quorum(root / "quorum", {1: "quorate"}, config=node_config(files)) as quorum:
        alice = f"SCRAM-SHA-512=[name=alice,password={SECRETS['SCRAM password of alice']}]"
        formatted = quorum.nodes[1].format(quorum.cluster_id, "--standalone", "--add-scram", alice)
        searched.written["storage format"] = (formatted.stdout + formatted.stderr).encode()
        node = quorum.nodes[1].start("--log-level", "debug")
        admin = files.client("admin", "PLAIN", "admin", "PLAIN password of the admin")
        to_node = ("--bootstrap-controller", node.address, "--command-config")

        def has_leader():
            return searched.tool("metadata-quorum", *to_node, admin, "describe", "--status")[0] == 0

        wait_for(has_leader, "a leader", every=0.3)
        use(searched, (*to_node, admin))
        tokens(searched, files, to_node)
        misuse(searched, files, to_node)
        searched.pages(
            node.config["quorate.metrics.listener"],
            ("/metrics", "/healthz", "/readyz", "/audit", "/nothing"),
        )
        searched.tool("cluster", "events", "--json", node.config["quorate.metrics.listener"])
        break_files(searched, files, node)
        node.kill(signal.SIGABRT)
        inspect(searched, node)
        node.start("--log-format", "json")
        wait_for(has_leader, "a leader after the crash", every=0.3)
        node.kill(signal.SIGTERM)
        searched.written["the log of the node"] = node.log_file.read_bytes()
        for place in (root / "audit", node.data):
            for path in filter(os.path.isfile, place.rglob("*")):
                if path.parent.name != "__cluster_metadata-0" and path.suffix != ".checkpoint":
                    searched.written[str(path)] = path.read_bytes()
    return searched


def use(searched, to_node):
    """The tools at work, as text and as JSON."""
    new = SECRETS["new SCRAM password of alice"]
    dynamic = SECRETS["password in a dynamic config"]
    commands = (
        ("configs", "--alter", "--broker-logger", 1, "--add-config", "root=TRACE"),
        (*("configs", "--alter", "--user", "alice"),
         "--add-config", f"SCRAM-SHA-512=[iterations=4096,password={new}]"),
        (*("configs", "--alter", "--broker", 1), "--add-config",
         f"listener.name.controller.ssl.keystore.password={dynamic},"
         f"ssl.truststore.password={dynamic},unknown.key={dynamic}"),
        ("configs", "--describe", "--broker", 1),
        ("configs", "--describe", "--broker", 1, "--all"),
        ("configs", "--describe", "--entity-type", "users"),
        ("acls", "--add", "--allow-principal", "User:bob", "--operation", "describe", "--cluster"),
        ("acls", "--list"),
        ("cluster", "registrations"),
        ("cluster", "list-endpoints"),
        ("features", "describe"),
    )  # fmt: skip
    for tool, *words in commands:
        first = [words.pop(0)] if tool == "cluster" else []
        for more in ((), ("--json",)):
            code, text = searched.tool(tool, *first, *to_node, *words, *more)
            assert code == 0, (tool, words, text)


def tokens(searched, files, to_node):
    """A token is made, used, shown to its owner, and refused to others."""
    alice = files.client("alice", "SCRAM-SHA-512", "alice", "new SCRAM password of alice")
    made = ("--create", "--max-life-time-period", -1, "--json")
    code, text = searched.tool("delegation-tokens", *to_node, alice, *made, keep=False)
    assert code == 0, text
    token = json.loads(text)
    searched.add("the HMAC of a token", b64decode(token["hmac"]))
    assert searched.found_in(text.encode()) == {"the HMAC of a token"}
    mechanism = "SCRAM-SHA-512"
    by_token = files.client("token", mechanism, token["tokenId"], token["hmac"])
    with open(by_token, "r+", encoding="utf-8") as file:
        changed = file.read().replace(";\n", ' tokenauth="true";\n', 1)
        file.seek(0)
        file.write(changed)
    assert searched.tool("metadata-quorum", *to_node, by_token, "describe", "--status")[0] == 0
    wrong = SECRETS["wrong password"]
    period = ("--renew-time-period", 1000)
    code, _ = searched.tool(
        "delegation-tokens", *to_node, alice, "--renew", "--hmac", token["hmac"], *period, "--json"
    )
    assert code == 0
    other = b64encode(wrong.encode()).decode()
    code, text = searched.tool(
        "delegation-tokens", *to_node, alice, "--renew", "--hmac", other, *period, "--json"
    )
    assert "DELEGATION_TOKEN_NOT_FOUND" in text or code == 1


def misuse(searched, files, to_node):
    """Logins and files of clients that are refused, each with its traceback."""
    right, wrong = "PLAIN password of the admin", SECRETS["wrong password"]
    broken = jaas("PLAIN", "admin", wrong).replace('"', "", 1)
    cases = {
        "wrong": ("PLAIN", "admin", wrong, {}),
        "unknown": ("PLAIN", wrong, wrong, {}),
        "scram": ("SCRAM-SHA-512", "alice", wrong, {}),
        "off": ("SCRAM-SHA-256", "alice", wrong, {}),
        "jaas": ("PLAIN", "admin", right, {"sasl_jaas_config": broken}),
        "unquoted": (
            "PLAIN",
            "admin",
            right,
            {"sasl_jaas_config": f"{MODULE} password={wrong} x;"},
        ),
        "key": ("PLAIN", "admin", right, {"ssl_key_password": wrong}),
        "pem": ("PLAIN", "admin", right, {"ssl_keystore_key": f"-----BEGIN {wrong}"}),
        "trust": ("PLAIN", "admin", right, {"ssl_truststore_password": wrong}),
        "plaintext": ("PLAIN", "admin", right, {"security_protocol": "SASL_PLAINTEXT"}),
    }
    for name, (mechanism, user, secret, changes) in cases.items():
        file = files.client(name, mechanism, user, secret, **changes)
        words = ("metadata-quorum", *to_node, file, "--timeout", 5, "describe", "--status")
        code, text = searched.tool(*words)
        assert code == 1, (name, text)
    admin = files.client("admin", "PLAIN", "admin", right)
    for credential in (
        f"SCRAM-SHA-512=[iterations=7,password={wrong}]",
        f"SCRAM-SHA-512=[passwort={wrong}]",
        f"SCRAM-SHA-1=[password={wrong}]",
        f"SCRAM-SHA-512={wrong}",
    ):
        words = ("--alter", "--user", "bob", "--add-config", credential)
        code, text = searched.tool("configs", *to_node, admin, *words)
        assert code == 1, (credential, text)


MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def break_files(searched, files, node):
    """What a start, a format and the check say of broken files of a node."""
    wrong = SECRETS["wrong password"]
    listener = "listener.name.controller.plain.sasl.jaas.config"
    changes = (
        {"ssl.keystore.password": wrong},
        {"ssl.truststore.password": wrong},
        {"ssl.keystore.location": files.write("broken.p12", wrong)},
        {"ssl.keystore.location": "", **files.inline, "ssl.key.password": wrong},
        {"ssl.keystore.location": "", **files.inline, "ssl.keystore.key": f"-----BEGIN {wrong}"},
        {"ssl.keystore.location": "", **files.inline, "ssl.keystore.certificate.chain": wrong},
        {listener: f'{MODULE} password="{wrong}'},
        {listener: f'{MODULE} "{wrong}" = {wrong};'},
        {listener: f"{MODULE} user_admin {wrong};"},
        {"delegation.token.secret.key": f"${{env:NO_SUCH_{wrong[:3]}}}"},
        {"node.id": "two", "sasl.jaas.config": wrong, "unknown.password": wrong},
    )
    for number, change in enumerate(changes):
        lines = {**node.config, "log.dirs": str(files.directory / f"other{number}"), **change}
        path = files.write(
            f"node{number}.properties",
            node.properties.read_text()
            + "".join(f"{key}={value}\n" for key, value in lines.items()),
        )
        for words in (("check", "-c", path), ("check", "-c", path, "--json"), ("info", "-c", path)):
            searched.tool("storage", *words)
        code, text = searched.tool("server-start", path)
        assert code == 1, (change, text)
    for argument in (
        f"SCRAM-SHA-512=[name=a,salt=c2FsdA==,saltedpassword={wrong}!]",
        f"SCRAM-SHA-512=[name=a,password=x,{wrong}]",
        f"SCRAM-SHA-512 name=a,password={wrong}",
        f"SCRAM-SHA-512=name=a,password={wrong}",
        f"SCRAM-SHA-512=[name=a,iterations=1,password={wrong}]",
        f"SCRAM-SHA-512=[name=a,{wrong}=1,password=x]",
        wrong,
    ):
        format_words = ("-t", "Auo5pIz_RXynyYRjkH2osA", "--standalone", "--add-scram", argument)
        code, text = searched.tool(
            "storage", "format", "-c", str(node.properties), "-g", *format_words
        )
        assert code == 1, (argument, text)


def inspect(searched, node):
    """What the tools say of the log; what shows it whole proves that the search works."""
    logs = ",".join(map(str, (*node.partition.glob("*.log"), *node.partition.glob("*.checkpoint"))))
    dump = ("dump-log", "--cluster-metadata-decoder", "--files", logs)
    code, text = searched.tool(*dump, keep=False)
    assert code == 0, text
    found = re.findall(r'"salt":"(.+?)","storedKey":"(.+?)","serverKey":"(.+?)"', text)
    assert len(found) >= 2, "the credentials of the format and of the tool"
    for number, credential in enumerate(found):
        for what, shown in zip(("salt", "stored key", "server key"), credential, strict=True):
            searched.add(f"{what} {number}", b64decode(shown))
    assert len(searched.found_in(text.encode())) == 3 * len(found) + 1
    shell = ("metadata-shell", "-d", node.partition, "--redact")
    for words in (("tree", "/"), ("--json", "diff", 0, 10**9), ("cat", "/image/scram")):
        code, text = searched.tool(*shell, *words)
        assert code == 0 or "diff" in words, text
    for more in ((), ("--json",)):
        searched.tool("storage", "check", "-c", node.properties, *more)
        searched.tool("storage", "info", "-c", node.properties, *more)


def test_no_output_page_or_file_has_a_secret(searched):
    assert searched.leaks() == {}


def test_what_happened_is_reported(searched):
    """The search was not of empty texts: each refusal and change left its words."""
    log = searched.written["the log of the node"].decode()
    assert "Authentication failed: Invalid username or password" in log
    assert "Fatal Python error: Aborted" in log
    everything = b"".join(searched.written.values()).decode(errors="replace")
    for words in (
        "SASL_AUTHENTICATION_FAILED",
        "Traceback",
        "the password is wrong",
        "AlterUserScramCredentials",
        "kafka_server_socket_server_metrics_failed_authentication_total",
    ):
        assert words in everything
