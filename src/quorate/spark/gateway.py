"""Starts the JVM of a driver without the warning that each start of Spark 4 prints."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Final

_WARNING: Final = b"WARNING: Using incubator modules: jdk.incubator.vector\n"
"""The JVM prints it for an option that Spark's launcher always gives; no setting hides it."""


def start_jvm(settings: Mapping[str, str]) -> None:
    """Start the JVM of this process, as PySpark would, unless there is one.

    settings: Spark's; those of the JVM itself (memory, options) hold from the start
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    conf = SparkConf()
    for name, value in settings.items():
        conf.set(name, value)
    read, write = os.pipe()
    ends = (read, os.dup(2))  # the stderr of now, which the JVM would have inherited
    threading.Thread(target=_pass_on, args=ends, name="stderr of the JVM", daemon=True).start()
    try:
        gateway = launch_gateway(conf, {"stderr": write})  # type: ignore[no-untyped-call]
    finally:
        os.close(write)
    SparkContext._ensure_initialized(gateway=gateway)


def _pass_on(read: int, out: int) -> None:
    """Copy what the JVM writes, until it ends, without the warning."""
    held = b""
    while chunk := os.read(read, 1 << 16):
        text, held = without_warning(held + chunk)
        _write(out, text)
    _write(out, held)
    os.close(read)
    os.close(out)


def _write(out: int, text: bytes) -> None:
    while text:
        text = text[os.write(out, text) :]


def without_warning(text: bytes) -> tuple[bytes, bytes]:
    """The text without the warning, and a last line that may become it."""
    text = text.replace(_WARNING, b"")
    start = text.rfind(b"\n") + 1
    if start < len(text) and _WARNING.startswith(text[start:]):
        return text[:start], text[start:]
    return text, b""
