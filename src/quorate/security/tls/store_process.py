"""Read the stores of a running node in a process of its own.

`cryptography` holds the interpreter lock while it opens a key, so a thread does not help. The check of an RSA
key takes 35 ms for 2,048 bits and 0.2 s for 4,096 bits. A key that is encrypted with many iterations takes
hours, and a client that may set dynamic configs can name one.

The process gets the keys of the configuration through a pipe and returns what the stores hold through
another: a line of JSON, then keys and certificates in DER.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from quorate.base.errors import QuorateError
from quorate.security.tls.contexts import client_context, server_context
from quorate.security.tls.reload import Maker, may_pass, read_here
from quorate.security.tls.stores import KeyEntry, StoreError, Stores, check_readable, key_place
from quorate.security.tls.streams import TlsContext

_CLIENT_AUTH: Final = "ssl.client.auth"
TIME_LIMIT_S: Final = 10.0
_PROGRAM: Final = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from quorate.security.tls.store_process import serve; serve()"
)
_MAKERS: Final[Mapping[str, Maker]] = {
    "server": server_context,
    "client": client_context,
}
_DER: Final = serialization.Encoding.DER
_LOWER_PRIORITY: Final = 5
_MOST_CPU_S: Final = int(2 * TIME_LIMIT_S)
_STARTED: Final = b"started\n"
"""What the process writes first."""
_CLOSING: Final = "the node is closing"


class RefusedStoreError(StoreError):
    """What the process says of stores that it cannot use."""

    def __init__(self, text: str, may_pass: bool) -> None:
        """text: the whole message, with the key of the configuration."""
        QuorateError.__init__(self, text)
        self.key = text.partition(":")[0]
        self.may_pass = may_pass


class StoreProcess:
    """Starts a process for each context that it makes."""

    def __init__(self, time_limit_s: float = TIME_LIMIT_S) -> None:
        self._time_limit_s = time_limit_s
        self._lock = threading.Lock()
        self._running: subprocess.Popen[bytes] | None = None
        self._is_closed = False

    def make(self, make: Maker, values: Mapping[str, str]) -> TlsContext:
        """Make a context. It waits for the process: call it in a thread. Raises StoreError, OSError.

        Where Python cannot be started as `sys.executable`, it reads the stores in this process.
        """
        names = [name for name, maker in _MAKERS.items() if maker is make]
        if not names or not sys.executable:
            return read_here(make, values)
        # A file that cannot be read is tried at each look, which should not cost a process.
        trust = make is client_context or values.get(_CLIENT_AUTH, "none").lower() != "none"
        check_readable(values, trust=trust)
        used = {key: text for key, text in values.items() if key.startswith(("ssl.", "security."))}
        request = json.dumps([names[0], used]).encode()
        reply = self._ask(request, key_place(values))
        if not reply.startswith(_STARTED):
            return read_here(make, values)
        return make(values, _stores(reply.removeprefix(_STARTED)))

    def close(self) -> None:
        """End the process that runs now; any thread may call it."""
        with self._lock:
            self._is_closed = True
            if self._running is not None:
                self._running.kill()

    def _ask(self, request: bytes, place: str) -> bytes:
        """What the process answers; nothing where no interpreter started."""
        process = self._start(place)
        try:
            reply = process.communicate(request, self._time_limit_s)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise StoreError(
                place,
                f"the stores are not read after {self._time_limit_s:g} s: use a key with fewer bits, and "
                "fewer iterations of its password",
            ) from None
        finally:
            with self._lock:
                self._running = None
        if self._is_closed:
            raise StoreError(place, _CLOSING)
        if reply == _STARTED or process.returncode < 0:
            raise StoreError(
                place, f"the process that reads the stores has failed: {process.returncode}"
            )
        return reply

    def _start(self, place: str) -> subprocess.Popen[bytes]:
        path = [part or os.getcwd() for part in sys.path]
        with self._lock:
            if self._is_closed:
                raise StoreError(place, _CLOSING)
            self._running = subprocess.Popen(
                [sys.executable, "-I", "-c", _PROGRAM, *path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            return self._running


def serve() -> None:
    """The process: read a request, answer it, and end."""
    sys.stdout.buffer.write(_STARTED)
    sys.stdout.buffer.flush()
    os.nice(_LOWER_PRIORITY)
    # It ends also where the node was killed meanwhile.
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_CPU_S, _MOST_CPU_S))
    name, values = json.load(sys.stdin.buffer)
    for block in _answer(_MAKERS[name], values):
        sys.stdout.buffer.write(block)


def _answer(make: Maker, values: Mapping[str, str]) -> Iterator[bytes]:
    try:
        context = read_here(make, values)
    except (QuorateError, OSError) as error:
        yield json.dumps({"error": str(error), "may_pass": may_pass(error)}).encode() + b"\n"
        return
    key: Sequence[bytes] = ()
    chain: Sequence[x509.Certificate] = ()
    entries: Sequence[x509.Certificate] = ()
    if context.entry is not None:
        form = serialization.PrivateFormat.PKCS8
        key = (context.entry.key.private_bytes(_DER, form, serialization.NoEncryption()),)
        chain, entries = context.entry.chain, context.entry.entries
    groups = [
        key,
        *([one.public_bytes(_DER) for one in of] for of in (chain, entries, context.trusted or ())),
    ]
    head = {
        "sizes": [[len(block) for block in group] for group in groups],
        "trusts": context.trusted is not None,
    }
    yield json.dumps(head).encode() + b"\n"
    for group in groups:
        yield from group


def _stores(reply: bytes) -> Stores:
    line, _, rest = reply.partition(b"\n")
    head: dict[str, Any] = json.loads(line)
    if "error" in head:
        raise RefusedStoreError(head["error"], head["may_pass"])
    blocks = [size for group in head["sizes"] for size in group]
    cuts = pairwise(accumulate(blocks, initial=0))
    found = (rest[start:end] for start, end in cuts)
    key, chain, entries, trusted = ([next(found) for _ in group] for group in head["sizes"])
    certificates = [
        [x509.load_der_x509_certificate(one) for one in of] for of in (chain, entries, trusted)
    ]
    entry = None
    if key:
        # The process has checked the key.
        opened = serialization.load_der_private_key(
            key[0], None, unsafe_skip_rsa_key_validation=True
        )
        entry = KeyEntry(opened, certificates[0], certificates[1])
    return Stores(entry, certificates[2] if head["trusts"] else None)
