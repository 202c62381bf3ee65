"""How the tests start Spark's JVMs, which live for minutes, not for days."""

from __future__ import annotations

from typing import Final

QUICK_JVM: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Without the second compiler, which costs more of two cores than it gives back in a test."""
