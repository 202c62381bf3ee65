"""Facts for a node's log: a note is a str, and its class says how grave it is.

A plain str is information. Code that prints notes need not distinguish the classes.
"""

from __future__ import annotations


class Warn(str):
    """Something was repaired, ignored or forgotten, or an operator has something to do."""

    __slots__ = ()


class Fault(str):
    """Why the node stops, or cannot do what it should."""

    __slots__ = ()
