"""`server-start` on a directory with a feature level that this release does not support."""

import pytest

from quorate.server.ports import free_ports

CLUSTER = "Auo5pIz_RXynyYRjkH2osA"


@pytest.mark.parametrize("quorum", ["dynamic", "static"])
def test_a_directory_that_begins_at_an_unsupported_level_is_not_started(tmp_path, quorate, quorum):
    (port,) = free_ports(1)
    address = f"localhost:{port}"
    values = {
        "process.roles": "controller",
        "node.id": "1",
        "listeners": f"CONTROLLER://{address}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(tmp_path / "log"),
    }
    if quorum == "static":
        values["controller.quorum.voters"] = f"1@{address}"
    else:
        values["controller.quorum.bootstrap.servers"] = address
    text = "".join(f"{key}={value}\n" for key, value in values.items())
    stable, unstable = tmp_path / "stable", tmp_path / "unstable"
    stable.write_text(text)
    unstable.write_text(f"{text}unstable.feature.versions.enable=true\n")
    flags = ("--standalone",) if quorum == "dynamic" else ()
    words = ("-c", unstable, "-t", CLUSTER, "-f", "metadata.version=34", *flags)
    assert quorate("storage", "format", *words).code == 0
    refused = quorate("server-start", stable)
    assert refused.code == 1
    said = refused.out + refused.err
    assert (
        "00000000000000000000-0000000000.checkpoint: feature metadata.version has level 34" in said
    )
    assert "(4.5-IV0), and this node supports levels 7 to 33 (3.3-IV3 to 4.4-IV2)" in said
    assert "Kafka 4.5 has it: run this node with a release that supports it" in said
    assert "Traceback" not in said
