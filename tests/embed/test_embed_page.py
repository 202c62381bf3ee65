"""The programs of docs/embed.md run as they are printed."""

import re
import sys
from datetime import UTC, datetime
from pathlib import Path

from interop.process import free_port, run_tool
from quorate.security.tls.authority import Authority

PAGE = Path(__file__).resolve().parents[2] / "docs" / "embed.md"


def test_the_first_program_of_the_page_runs(tmp_path):
    program = tmp_path / "counter.py"
    program.write_text(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)[0])
    run = run_tool([sys.executable, str(program)])
    assert (run.stdout, run.returncode) == ("1\n", 0), run.stderr


def test_the_program_with_tls_and_logins_runs(tmp_path):
    """Only the ports are others."""
    program, now = tmp_path / "secured.py", datetime.now(UTC)
    [text] = [
        one
        for one in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
        if "SASL_SSL" in one
    ]
    ports = {number: free_port() for number in (1, 2, 3)}
    text = text.replace("{7000 + number}", "{PORTS[number]}")
    program.write_text(f"PORTS = {ports}\n{text}")
    authority = Authority.create(now, 1)
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    for number in ports:
        pem = authority.issue(f"member-{number}", ["localhost"], now, 1)
        (tmp_path / f"member-{number}.pem").write_bytes(pem)
    run = run_tool(["env", "-C", str(tmp_path), sys.executable, str(program)])
    assert (run.stdout, run.returncode) == ("committed over SASL_SSL\n", 0), run.stderr
    assert "a secret" not in run.stderr
