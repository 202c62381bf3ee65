"""Draws docs/states.md from the core's table of legal transitions: python tools/draw_states.py"""

from pathlib import Path

from quorate.raft.roles import LEGAL_TRANSITIONS, Unattached

PAGE = Path(__file__).resolve().parent.parent / "docs" / "states.md"
HEAD = """# The roles of a replica and the legal transitions between them

Drawn by `python tools/draw_states.py` from `LEGAL_TRANSITIONS` in `src/quorate/raft/roles.py`.
A transition that is not here is a broken invariant and stops the replica.
What a role means: [glossary](glossary.md).

```mermaid
stateDiagram-v2
"""


def page() -> str:
    """The whole page as text."""
    lines = [f"    [*] --> {Unattached.__name__}: first start"]
    lines += [
        f"    {old.__name__} --> {new.__name__}: {why}"
        for (old, new), why in LEGAL_TRANSITIONS.items()
    ]
    return HEAD + "\n".join(lines) + "\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page())
