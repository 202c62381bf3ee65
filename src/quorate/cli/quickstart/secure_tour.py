"""A quorum with TLS and SASL: who is let in, who is refused, and what an ACL denies."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import click

from quorate.base.errors import QuorateError
from quorate.cli.quickstart.commands import command_text
from quorate.cli.quickstart.quorum_client import admin_of, describe_or_none
from quorate.cli.quickstart.secure_files import NO_CERTIFICATE, REFUSED_LOGIN, USER, SecureFiles
from quorate.cli.quickstart.steps import running_quorum, show_line, show_step
from quorate.cli.quickstart.supervisor import Supervisor, wait_for
from quorate.client import Admin, QuorumInfo
from quorate.client.admin.acls import AclFilter

_PATIENCE_MS: Final = 15_000
_PATIENCE_S: Final = 15.0
_LINES: Final = 4
_DESCRIBE: Final = ("describe", "--status")
_DENIED: Final = "CLUSTER_AUTHORIZATION_FAILED"


class SecureTourError(QuorateError):
    """Somebody was let in or refused who should not be. The message has the command and its output."""


def run_secure_tour(data: Path | None, controllers: int | None) -> int:
    """Run a quorum with TLS and SASL, show who is refused, and stop it; returns 0.

    Raises QuorateError at the first step that fails.
    """
    with (
        running_quorum(data, controllers, "secure", secure=True) as quorum,
        admin_of(quorum, _PATIENCE_MS) as admin,
    ):
        show_security(quorum, admin)
    click.secho("\nAll steps succeeded.", bold=True)
    return 0


def show_security(quorum: Supervisor, admin: Admin) -> None:
    """Run tools that are let in and tools that are refused, and print both.

    Raises QuorateError when one of them ends otherwise.
    """
    files = quorum.secured
    assert files is not None

    def led() -> QuorumInfo | None:
        quorum.check()
        return describe_or_none(admin)

    found = wait_for("a leader", led)
    admin.delete_acls([AclFilter(principal=f"User:{USER}")])  # of an earlier run
    click.echo(
        f"   leader {found.leader_id} in epoch {found.leader_epoch}; controllers reach each other "
        f"with mutual TLS and SCRAM, too\n   keys, certificates and client files: {files.directory}"
    )
    show_step("A tool with a client certificate and a password")
    _run(_quorum_words(files.admin_file), None)
    show_step("Refused: a tool without TLS")
    plain = ["metadata-quorum", "--bootstrap-controller", quorum.bootstrap, *_DESCRIBE]
    _run(plain, "expects TLS")
    show_step("Refused: the right password, but no client certificate")
    _run(_quorum_words(files.client_file(NO_CERTIFICATE)), "ssl.client.auth=required there")
    show_step("Refused: the right certificate, but a wrong password")
    _run(_quorum_words(files.client_file(REFUSED_LOGIN)), "SASL_AUTHENTICATION_FAILED")
    _show_acls(files)


def _show_acls(files: SecureFiles) -> None:
    as_user = _quorum_words(files.client_file(USER))
    show_step(f"Denied: {USER} has a certificate and a password, but no ACL allows her anything")
    _run(as_user, _DENIED)
    # Who asks a controller where the leader is needs Alter (`ControllerApis.handleDescribeCluster`).
    show_step(f"An ACL allows {USER} to alter the cluster, and so to describe it")
    _run(_acl_words(files, "--allow-principal", "Alter"), None)
    _run(as_user, None)
    show_step("An ACL that denies goes before one that allows")
    _run(_acl_words(files, "--deny-principal", "Describe"), None)
    _run(as_user, _DENIED)


def _quorum_words(client_file: Path) -> list[str]:
    return ["metadata-quorum", "--command-config", str(client_file), *_DESCRIBE]


def _acl_words(files: SecureFiles, who: str, operation: str) -> list[str]:
    entry = (who, f"User:{USER}", "--operation", operation, "--cluster")
    return ["acls", "--command-config", str(files.admin_file), "--add", *entry]


def _run(words: list[str], refusal: str | None) -> None:
    """Run a command until it ends as expected: with `refusal` on stderr, or with exit code 0.

    A controller that is asked may be one Fetch behind the leader, and know an ACL later.
    """
    click.echo(f"   $ {command_text(words)}")
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        run = subprocess.run(
            (sys.executable, "-m", "quorate", *words), capture_output=True, text=True
        )
        refused = run.returncode != 0
        if refused == (refusal is not None) and (refusal or "") in run.stderr + run.stdout:
            break
        if time.monotonic() > deadline:
            raise SecureTourError(
                f"expected {'success' if refusal is None else refusal!r} of {command_text(words)}, "
                f"but it ended with exit code {run.returncode}: {(run.stderr or run.stdout).strip()}"
            )
    shown = (run.stderr if refused else run.stdout).strip().splitlines()
    if refusal is not None:  # what Kafka's tool says before it is no part of the tour
        first = next((at for at, line in enumerate(shown) if refusal in line), -1)
        shown = shown[first:]
    for line in shown[:_LINES]:
        show_line(line)
