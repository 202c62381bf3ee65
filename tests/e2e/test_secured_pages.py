"""A node with an authorizer, its log, and an HTTP listener over TLS with passwords."""

import json
import re
from datetime import UTC, datetime

from interop.kafka import Quorum
from interop.process import QUORATE, run_tool, wait_for
from quorate.security.tls.authority import Authority
from quorate.server.authorizer_log import JSON_FILE, TEXT_FILE

SECRET = "Kx7-secret-of-pages"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def jaas(user, users=""):
    return f'{MODULE} username="{user}" password="{SECRET}"{users};'


def test_a_node_logs_its_authorizer_and_serves_secured_pages(tmp_path):
    now = datetime.now(UTC)
    authority = Authority.create(now, 1)
    (tmp_path / "node.pem").write_bytes(authority.issue("node", ["127.0.0.1"], now, 1))
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    (tmp_path / "users").write_text(f"prometheus:{SECRET}\n")
    (tmp_path / "users").chmod(0o644)
    log = tmp_path / "log"
    users = f' user_node="{SECRET}" user_guest="{SECRET}"'
    config = {
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": jaas("node", users),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:node",
        "quorate.authorizer.log.dir": log,
        "quorate.authorizer.log.level": "DEBUG",
        "quorate.authorizer.log.format": "text,json",
        "quorate.audit.dir": tmp_path / "audit",
        "quorate.metrics.listener": "127.0.0.1:0",
        "quorate.metrics.security.protocol": "SSL",
        "quorate.metrics.credentials.file": tmp_path / "users",
        "ssl.keystore.location": tmp_path / "node.pem",
    }
    tool = tmp_path / "guest.properties"
    tool.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f"sasl.jaas.config={jaas('guest')}\n"
    )
    pages = tmp_path / "pages.properties"
    pages.write_text(
        f"security.protocol=SSL\nssl.truststore.location={tmp_path / 'ca.pem'}\n"
        f"quorate.metrics.user=prometheus\nquorate.metrics.password={SECRET}\n"
    )
    with Quorum(tmp_path / "quorum", {1: "quorate"}, config=config) as quorum:
        quorum.format()
        quorum.start()
        quorum.wait_until_listening()
        node = quorum.nodes[1]
        words = ["--bootstrap-controller", quorum.bootstrap, "--command-config", str(tool)]
        refused = run_tool([*QUORATE, "metadata-quorum", *words, "describe", "--status"])
        assert refused.returncode == 1
        [page] = re.findall(r"Metrics on (\S+),", node.log)
        events = [*QUORATE, "cluster", "events", page, "--json"]
        seen = run_tool([*events, "--command-config", str(pages)])
        assert (seen.returncode, seen.stderr) == (0, "")
        assert run_tool(events).returncode == 1
        wait_for(lambda: "User:guest is Denied" in (log / TEXT_FILE).read_text(), "the refusal")
        assert "the passwords of quorate.metrics.credentials.file" in node.log
        assert "does not use" not in node.log
    denied = [
        one
        for one in map(json.loads, (log / JSON_FILE).read_text().splitlines())
        if one["result"] == "Denied"
    ]
    assert {(one["principal"], one["address"]) for one in denied} == {("User:guest", "127.0.0.1")}
    for text in (node.log, (log / TEXT_FILE).read_text(), refused.stderr, seen.stdout):
        assert SECRET not in text
