"""`quorate`: the command line inside the test's process."""

from cli.conftest import quorate

__all__ = ["quorate"]
