"""The words in which changes look for evidence and log lines offer it: equal keys may belong.

A key begins with the request's name in the authorizer's words (`CreateTopics`).
"""

from __future__ import annotations

from typing import Final

BODY: Final = 3
"""The request's own body (or answer) names the thing and its new value."""
NAMED: Final = 2
"""The authorizer allowed what this change needs, on what it would check for it."""
CLUSTER: Final = 1
"""The authorizer allowed the request for the whole cluster; it names no topic."""
MENTION: Final = 0
"""A line of such a request names the topic, without allowing the change by itself."""
TOLD: Final = -1
"""A line that names nobody: the controller says why it did it."""

ANY: Final = "*"
THE_CLUSTER: Final = ("Cluster", "kafka-cluster")

ELECTIONS: Final = "controller\telections"
CONFIG_TYPES: Final = {"topic": "Topic", "group": "Group"}
"""Types of config resources that are authorized by their name; others by the cluster."""


def key(request: str, *words: object) -> str:
    """One key of words; None is the word for nothing."""
    return "\t".join([request, *("\0" if word is None else str(word) for word in words)])


def fence_key(broker: int | str) -> str:
    """The controller says that it fences a broker."""
    return key("controller", "fence", broker)


def clock_key(topic_id: str) -> str:
    """The controller says that it has applied the record of a new topic."""
    return key("clock", topic_id)
