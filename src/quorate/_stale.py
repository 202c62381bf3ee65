"""Has a source changed since it was compiled? Imported by every start, so it imports little."""

from __future__ import annotations

import os


def changed_sources(package: str) -> list[str]:
    """Names of sources below the folder `package` that are not what was compiled from them.

    Known from the manifest that `tools/build_native.py` leaves in a checkout; where there is none
    (an installed wheel) nothing has changed. Only what is newer than the manifest is read.
    """
    manifest = os.path.join(package, "_native.json")
    try:
        made_ns = os.stat(manifest).st_mtime_ns
    except (FileNotFoundError, NotADirectoryError):  # the latter within a zip
        return []
    from json import load

    with open(manifest, encoding="utf-8") as file:
        sources: dict[str, str] = load(file)["sources"]

    def same(name: str, digest: str) -> bool:
        path = os.path.join(package, name)
        try:
            if os.stat(path).st_mtime_ns <= made_ns:
                return True
            from hashlib import sha256  # slow to import, and seldom needed

            with open(path, "rb") as source:
                return sha256(source.read()).hexdigest() == digest
        except (FileNotFoundError, NotADirectoryError):  # the latter within a zip
            return False

    return [name for name, digest in sources.items() if not same(name, digest)]


def leave_aside(package: str) -> None:
    """Let no stale module be imported from the folder `package`, and none that calls one.

    Modules that mypyc compiled call each other past what is imported: it is all or none of them.
    """
    changed = changed_sources(package)
    if changed:
        from quorate._pure import prefer_sources

        codec = any(name.startswith("wire/") for name in changed)
        prefer_sources(None if codec else "quorate.wire._native")
