"""Check a commit message by the rules of CONTRIBUTING.md: `python tools/check_commit.py FILE`.

The hook `commit-msg` runs it. Exit codes: 0 the message keeps the rules, 1 it does not.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

MOST: Final = 72
SUBJECT: Final = re.compile(r"[a-z0-9_.,/-]+: \S")
GENERATED: Final = ("Merge ", "Revert ", "fixup! ", "squash! ")
"""How the subjects begin that git writes itself."""


def problems(message: str) -> list[str]:
    """What breaks the rules in this message, as git hands it to a hook, with its comments."""
    lines = [line.rstrip() for line in message.split("\n") if not line.startswith("#")]
    subject, *others = lines
    if subject.startswith(GENERATED):
        return []
    found = []
    if not SUBJECT.match(subject):
        found.append(f"{subject!r}: begin with the package, as in 'replica: bound the delay'")
    if len(subject) > MOST:
        found.append(f"the subject has {len(subject)} characters: {MOST} at most")
    if others and others[0]:
        found.append("leave the second line empty")
    if not any(others):
        found.append("say why in the body")
    return found


def main() -> int:
    found = problems(Path(sys.argv[1]).read_text())
    for problem in found:
        print(f"commit message: {problem}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
