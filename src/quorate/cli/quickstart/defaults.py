"""Numbers that the help names; importing the rest takes longer than printing it."""

from typing import Final

DEFAULT_CONTROLLERS: Final = 3
"""Of a new quorum."""
