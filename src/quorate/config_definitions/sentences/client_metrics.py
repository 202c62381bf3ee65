"""Client metrics subscriptions (KIP-714)."""

from __future__ import annotations

from typing import Final

SENTENCES: Final = """\
metrics: Prefixes of the metrics that clients send; * for all of them.
interval.ms: Time between two reports of a client, in milliseconds.
match: Which clients report: a list of name=expression, which all must match.
"""
