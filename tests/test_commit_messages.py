"""The hook that checks commit messages."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parent.parent / "tools/check_commit.py"
BODY = "\n\nClients wait for it.\n"


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ("replica: bound the delay" + BODY, None),
        ("sim/world: draw a clock" + BODY + "# Please enter the message\n", None),
        ("Revert 'replica: bound the delay'\n", None),
        ("Bound the delay" + BODY, "begin with the package"),
        ("replica: " + "x" * 64 + BODY, "the subject has 73 characters: 72 at most"),
        ("replica: bound the delay\nClients wait.\n", "leave the second line empty"),
        ("replica: bound the delay\n\n# a comment\n", "say why in the body"),
    ],
)
def test_a_message_keeps_the_rules_or_the_hook_names_them(
    tmp_path: Path, message: str, problem: str | None
) -> None:
    file = tmp_path / "COMMIT_EDITMSG"
    file.write_text(message)
    ran = subprocess.run([sys.executable, TOOL, file], capture_output=True, text=True)
    if problem is None:
        assert (ran.returncode, ran.stderr) == (0, "")
    else:
        assert ran.returncode == 1 and problem in ran.stderr
