"""Quorate: the KRaft metadata quorum of Apache Kafka, in Python."""

__version__ = "0.1.0"

import os

if os.environ.get("QUORATE_PURE_PYTHON"):
    from quorate._pure import prefer_sources

    prefer_sources()
else:
    from quorate._stale import leave_aside

    leave_aside(os.path.dirname(__file__))
