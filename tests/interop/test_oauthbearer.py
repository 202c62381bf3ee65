"""OAUTHBEARER beside Kafka: its unmodified client fetches a token and logs in at our controller."""

import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from e2e.test_sasl import PASSWORD, USERS, client_file, jaas
from interop.java import QUICK_JVM
from interop.kafka import METADATA_QUORUM, Quorum, java_command, run_tool, wait_for
from interop.process import QUORATE

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("sasl")]

PACKAGE = "org.apache.kafka.common.security.oauthbearer"
AUDIENCE = "quorum"
TRUSTED, OTHER = (RSAKey.generate_key(2048, {"kid": "1"}) for _ in range(2))
KEYS = {"alice": TRUSTED, "bob": TRUSTED, "mallory": OTHER}


class TokenEndpoint(BaseHTTPRequestHandler):
    """RFC 6749, section 4.4: a token for the name that the client gives with HTTP Basic."""

    def do_POST(self):
        credentials = base64.b64decode(self.headers["Authorization"].split()[1]).decode()
        name = credentials.partition(":")[0]
        now = int(time.time())
        claims = {"sub": name, "aud": AUDIENCE, "iat": now, "exp": now + 300, "scope": "kafka"}
        token = jwt.encode({"alg": "RS256", "kid": "1"}, claims, KEYS[name])
        body = json.dumps({"access_token": token, "token_type": "Bearer"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Nothing on stderr."""


@pytest.fixture(scope="module")
def token_url():
    server = ThreadingHTTPServer(("127.0.0.1", 0), TokenEndpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/token"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def quorum(tmp_path_factory):
    folder = tmp_path_factory.mktemp("oauth")
    jwks = folder / "jwks.json"
    jwks.write_text(json.dumps({"keys": [TRUSTED.as_dict(private=False)]}))
    config = {
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": jaas(
            "PLAIN", "controller", PASSWORD, USERS
        ),
        "listener.name.controller.oauthbearer.sasl.jaas.config": (
            f"{PACKAGE}.OAuthBearerLoginModule required;"
        ),
        "sasl.oauthbearer.jwks.endpoint.url": jwks.as_uri(),
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:controller;User:alice",
    }
    with Quorum(folder, {1: "quorate"}, config=config) as made:
        made.format()
        made.start()
        made.wait_until_listening()
        yield made


def java_describes(quorum, folder, url, name):
    """Kafka's tool as this client of the token endpoint."""
    file = folder / f"{name}.properties"
    module = f'{PACKAGE}.OAuthBearerLoginModule required clientId="{name}" clientSecret="secret";'
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\n"
        "sasl.mechanism=OAUTHBEARER\n"
        f"sasl.jaas.config={module}\n"
        f"sasl.login.callback.handler.class={PACKAGE}.OAuthBearerLoginCallbackHandler\n"
        f"sasl.oauthbearer.token.endpoint.url={url}\n"
    )
    words = (
        *("--bootstrap-controller", quorum.bootstrap, "--command-config", str(file)),
        *("describe", "--status"),
    )
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}"
    return run_tool(java_command(METADATA_QUORUM, *words, jvm=(*QUICK_JVM, allowed)))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("alice", "LeaderId"),
        ("bob", "ClusterAuthorizationException"),  # logged in, and may do nothing
        ("mallory", "SaslAuthenticationException"),
    ],
)
def test_the_client_of_kafka_logs_in_with_a_token(quorum, tmp_path, token_url, name, shown):
    file = client_file(tmp_path / "plain.properties", "PLAIN", "controller", PASSWORD)
    servers = ("--bootstrap-controller", quorum.bootstrap, "--command-config", file)
    ours = [*QUORATE, "metadata-quorum", *servers, "describe", "--status"]
    wait_for(lambda: run_tool(ours).returncode == 0, "a leader", 60)
    run = java_describes(quorum, tmp_path, token_url, name)
    assert shown in run.stdout + run.stderr, run.stdout + run.stderr
    assert (run.returncode == 0) is (name == "alice")
    log = quorum.nodes[1].log
    assert ("the token of OAUTHBEARER was refused" in log) is (name == "mallory")
    assert "eyJ" not in log  # a token
