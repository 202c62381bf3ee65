"""The minimal HTTP server: requests of Prometheus, probes and curl, and invalid ones."""

import asyncio
import base64
import http.client
import random
import socket
from http import HTTPStatus

import pytest

from quorate.config.monitoring_settings import PagesSettings
from quorate.server.page_security import PageSecurity
from quorate.server.web import MAX_HEAD_BYTES, Page, WebServer


class Site:
    """A server with a page that shows the headers, one that breaks and one that is large."""

    def __init__(self, **options):
        self.options = options

    async def __aenter__(self):
        sock = socket.socket()
        sock.bind(("127.0.0.1", 0))
        self.port = sock.getsockname()[1]
        routes = {"/hello": self.hello, "/broken": self.broken, "/large": self.large}
        self.server = WebServer(asyncio.get_running_loop(), routes, **self.options)
        await self.server.listen(sock)
        return self

    async def __aexit__(self, *_):
        self.server.close()

    def hello(self, question):
        hello = f"hello {question.headers.get('accept', '')}{question.query.get('to', '')}"
        return Page(HTTPStatus.OK, "text/plain", hello.encode())

    def broken(self, question):
        raise ValueError("a defect")

    def large(self, question):
        return Page(HTTPStatus.OK, "text/plain", bytes(4 * 1024 * 1024))

    async def connect(self):
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def exchange(self, request):
        """Everything that comes back until the server closes; the client sends no more."""
        reader, writer = await self.connect()
        writer.write(request)
        async with asyncio.timeout(5):
            answer = await reader.read()
        writer.close()
        return answer


def get(path, *headers, method="GET", version="1.1"):
    return "\r\n".join([f"{method} {path} HTTP/{version}", *headers, "", ""]).encode()


LAST = "Connection: close"


def run(test):
    """A test as a coroutine with a site of its own."""

    def wrapper():
        async def main():
            async with Site() as site:
                await test(site)

        asyncio.run(main())

    wrapper.__name__ = test.__name__
    return wrapper


@run
async def test_a_page_comes_with_its_length(site):
    answer = await site.exchange(get("/hello?x=1", "Host: a", "ACCEPT: me", LAST))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Content-Length: 8" in head and b"Connection: close" in head
    assert body == b"hello me"


@run
async def test_head_has_no_body(site):
    answer = await site.exchange(get("/hello", LAST, method="HEAD"))
    assert b"Content-Length: 6" in answer and answer.endswith(b"\r\n\r\n")


@run
async def test_requests_of_one_connection_are_answered_in_order(site):
    requests = get("/hello", "Accept: 1") + get("/nope") + get("/hello", "Accept: 2", LAST)
    answer = await site.exchange(requests)
    places = [answer.index(part) for part in (b"hello 1", b"404", b"hello 2")]
    assert places == sorted(places)


@run
async def test_a_request_may_come_byte_by_byte(site):
    reader, writer = await site.connect()
    for byte in get("/hello", LAST):
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0)
    async with asyncio.timeout(5):
        assert b"200 OK" in await reader.read()


@run
async def test_http_1_0_gets_one_response(site):
    answer = await site.exchange(get("/hello", version="1.0") + get("/hello", version="1.0"))
    assert answer.count(b"200 OK") == 1


@run
async def test_a_standard_client_is_served(site):
    def ask():
        client = http.client.HTTPConnection("127.0.0.1", site.port, timeout=5)
        answers = []
        for _ in range(2):
            client.request("GET", "/hello", headers={"Accept": "x"})
            answer = client.getresponse()
            answers.append((answer.status, answer.read()))
        client.close()
        return answers

    assert await asyncio.to_thread(ask) == [(200, b"hello x")] * 2


@run
async def test_a_slow_reader_gets_everything(site):
    reader, writer = await site.connect()
    writer.write(get("/large") * 3 + get("/hello", LAST))
    async with asyncio.timeout(10):
        answer = await reader.read()
    assert answer.count(b"200 OK") == 4
    assert len(answer) > 12 * 1024 * 1024


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (get("/nope", LAST), 404),
        (get("/hello", LAST, method="DELETE"), 405),
        (get("/hello", "Content-Length: 3", method="POST") + b"abc", 405),
        (get("/hello", "Content-Length: 3") + b"abc", 400),
        (get("/hello", "Transfer-Encoding: chunked"), 400),
        (get("/hello", "no header"), 400),
        (get("/hello", "Space : before"), 400),
        (get("hello"), 400),
        (get("/hello", version="2.0"), 400),
        (b"\x16\x03\x01\x02\x00 a TLS client\r\n\r\n", 400),
        (b"\0\0\0\x1c\0\x12\0\x04 a client of Kafka's", 400),
        (get("/hello", "X: " + "x" * MAX_HEAD_BYTES), 431),
        (b"x" * (MAX_HEAD_BYTES + 1), 431),
        (get("/broken", LAST), 500),
    ],
)
def test_an_invalid_request_gets_an_error_and_closes_the_connection(request_bytes, status):
    async def main():
        async with Site() as site:
            answer = await site.exchange(request_bytes)
            assert answer.startswith(f"HTTP/1.1 {status} ".encode())
            assert answer.count(b"Content-Length: ") == 1
            assert (b"Allow: GET, HEAD" in answer) == (status == 405)
            assert b"200 OK" in await site.exchange(get("/hello", LAST))

    asyncio.run(main())


async def is_cut_off(reader):
    """Nothing comes any more: the server closed or reset the connection."""
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True


def test_a_silent_client_is_closed():
    async def main():
        async with Site(idle_s=0.1) as site:
            reader, writer = await site.connect()
            async with asyncio.timeout(5):
                assert await is_cut_off(reader)
            writer.close()

    asyncio.run(main())


def test_an_endless_request_is_closed():
    async def main():
        async with Site(idle_s=0.1) as site:
            reader, writer = await site.connect()
            ended = asyncio.create_task(is_cut_off(reader))
            async with asyncio.timeout(5):
                while not ended.done():
                    writer.write(b"x")
                    await asyncio.sleep(0.001)
            assert await ended
            writer.close()

    asyncio.run(main())


def test_a_new_connection_replaces_an_idle_one():
    """64 connections with half a request each kept every probe out for a minute."""

    async def main():
        async with Site(max_connections=2) as site:
            silent, _ = await site.connect()
            used, writer = await site.connect()
            await until(lambda: len(site.server.connections) == 2)
            writer.write(b"GET /hello HT")
            assert b"200 OK" in await site.exchange(get("/hello", LAST))
            async with asyncio.timeout(5):
                assert await is_cut_off(silent)
                writer.write(b"TP/1.1\r\n\r\n")
                assert b"200 OK" in await used.readline()
            writer.close()

    asyncio.run(main())


def test_the_least_recently_active_connection_is_closed():
    async def main():
        async with Site(max_connections=2) as site:
            first, asks = await site.connect()
            second, waits = await site.connect()
            await until(lambda: len(site.server.connections) == 2)
            asks.write(get("/hello"))
            async with asyncio.timeout(5):
                assert b"200 OK" in await first.readline()
                _, goes = await site.connect()
                assert await is_cut_off(second)
            assert len(site.server.connections) == 2
            for writer in (asks, waits, goes):
                writer.close()

    asyncio.run(main())


async def until(condition):
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.001)


@run
async def test_a_page_gets_the_parameters_of_the_query(site):
    answer = await site.exchange(get("/hello?to=a%20b&x", LAST))
    assert answer.endswith(b"hello a b")


# -- whatever arrives ----------------------------------------------------------------------------
SECRET = base64.b64encode(b"prometheus:not to be guessed")
PIECES = (
    *(b"GET ", b"get ", b"POST ", b"/hello", b"/nope?", b" HTTP/1.1", b" HTTP/1.0", b"\r\n", b"\n"),
    *(
        b"Authorization: ",
        b"authorization:",
        b"Basic ",
        b"basic\t",
        b"Bearer ",
        SECRET,
        SECRET[:-2],
    ),
    *(
        b"Content-Length: ",
        b"Transfer-Encoding: chunked",
        b"Connection: close",
        b"0",
        b"\xb2",
        b"9" * 40,
    ),
    *(b"\xe9", b"\xff\xfe", b"\0", b"\x85", b"%", b"%ff", b"&&=", b":", b"\xc3\xa9:\xc3\xa9", b" "),
)


def arbitrary(rng):
    """A request of the right form whose parts are anything, or bytes of no form."""

    def some():
        return b"".join(rng.choice(PIECES) for _ in range(rng.randrange(6))) + rng.randbytes(
            rng.choice((0, 0, 3, 30))
        )

    if rng.random() < 0.2:
        return some() + some() + b"\r\n\r\n"
    header = rng.choice((b"Authorization: ", b"Authorization: Basic ", b"Content-Length: ", b"X: "))
    target = b"/hello" + rng.choice((b"", b"?", b"?" + some().replace(b" ", b"")))
    return b"GET " + target + b" HTTP/1.1\r\n" + header + some() + b"\r\n\r\n"


def test_whatever_arrives_without_a_login_gets_no_page_and_no_traceback(tmp_path, caplog):
    """A header that was not ASCII wrote a traceback, and was neither counted nor bounded in the log."""
    users = tmp_path / "users"
    users.write_text("prometheus:not to be guessed, too\n")

    async def main():
        rng, refused, failures = random.Random(26), [], []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: failures.append(what))
        async with Site(security=PageSecurity(PagesSettings(credentials=users))) as site:
            site.server.on_refused = lambda: refused.append(1)
            denied = 0
            for _ in range(400):
                request = arbitrary(rng)
                # Two requests: the first may leave the connection open.
                answer = await site.exchange(request + get("/hello", LAST))
                assert b"200 OK" not in answer, request
                assert not failures, request
                denied += answer.count(b"HTTP/1.1 401 ")
            assert len(refused) == denied > 100

    asyncio.run(main())
    assert not [record for record in caplog.records if record.exc_info]
    assert len(caplog.records) <= 11, "ten lines in a minute, and their count"
