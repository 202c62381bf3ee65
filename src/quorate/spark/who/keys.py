"""The keys by which changes and log lines are joined: equal keys may belong together.

A key begins with the name of the request as the authorizer logs it (`CreateTopics`).
"""

from __future__ import annotations

from typing import Final

BODY: Final = 3
"""The request's body (or response) names the object and its new value."""
NAMED: Final = 2
"""The authorizer allowed the operation that this change needs, on the resource that it needs."""
CLUSTER: Final = 1
"""The authorizer allowed the request for the whole cluster; the line names no topic."""
MENTION: Final = 0
"""A line of such a request names the topic, without allowing the change by itself."""
REPORTED: Final = -1
"""A line of the controller that says why it made a change; it names no principal."""

ANY: Final = "*"
THE_CLUSTER: Final = ("Cluster", "kafka-cluster")

ELECTIONS: Final = "controller\telections"
CONFIG_TYPES: Final = {"topic": "Topic", "group": "Group"}
"""Config resources that Kafka authorizes by name; the others need a right on the cluster."""


def key(request: str, *words: object) -> str:
    """One key made of words; None stands for no value."""
    return "\t".join([request, *("\0" if word is None else str(word) for word in words)])


def fence_key(broker: int | str) -> str:
    """The key of a line in which the controller fences a broker."""
    return key("controller", "fence", broker)


def clock_key(topic_id: str) -> str:
    """The key of a line in which a controller has applied the record of a new topic."""
    return key("clock", topic_id)
