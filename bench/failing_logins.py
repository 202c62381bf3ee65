"""Sends logins with a wrong password, as fast as it can: `python -m bench.failing_logins PORT SECONDS`.

Prints how many were refused, a second, and how many processors it used.
"""

from __future__ import annotations

import asyncio
import sys
import time

import uvloop

from quorate.wire.header import encode_request
from quorate.wire.messages.security import SaslAuthenticateRequest, SaslHandshakeRequest

HOST = "127.0.0.1"
CONNECTIONS = 256
"""At once: each is answered after connection.failed.authentication.delay.ms."""
_LOGIN = encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 1, 1, "flood") + encode_request(
    SaslAuthenticateRequest(auth_bytes=b"\0admin\0wrong"), 1, 2, "flood"
)


async def _one(end: float) -> int:
    count = 0
    while time.monotonic() < end:
        try:
            reader, writer = await asyncio.open_connection(HOST, int(sys.argv[1]))
            writer.write(_LOGIN)
            await reader.read()
            writer.close()
        except OSError:
            await asyncio.sleep(0.01)
            continue
        count += 1
    return count


async def main() -> None:
    seconds = float(sys.argv[2])
    end = time.monotonic() + seconds
    refused = sum(await asyncio.gather(*(_one(end) for _ in range(CONNECTIONS))))
    print(refused / seconds, time.process_time() / seconds)


if __name__ == "__main__":
    uvloop.run(main())
