"""How the tests start Spark's JVMs, which live for minutes, not for days."""

from __future__ import annotations

from typing import Final

QUICK_JVM: Final = (
    *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
    "-XX:ReservedCodeCacheSize=256m",
)
"""Without the second compiler, which costs more of two cores than it gives back in a test.

Without it there are 48 MB for compiled code, and the queries of a whole session need more: a sixth
of the processor's time went into throwing code away, and more into compiling it again.
"""
