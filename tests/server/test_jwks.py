"""The keys that sign tokens: logins use those that are there, whatever their web server does."""

import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from joserfc.jwk import ECKey

from interop import process
from quorate.security.sasl.mechanism import SaslError
from quorate.server.fetch_url import fetch_url
from quorate.server.jwks import JwksKeys, JwksTimes

LIMIT_S = 10.0
FAST = JwksTimes(refresh_s=0.05, backoff_s=0.1, backoff_max_s=0.1, unknown_s=0.05, total_s=0.3)


def key_set(*ids):
    keys = [ECKey.generate_key("P-256", {"kid": kid}).as_dict(private=False) for kid in ids]
    return json.dumps({"keys": keys}).encode()


class KeyServer(ThreadingHTTPServer):
    """Serves `body`, or hangs, sends a byte now and then, or fails, by `mode`."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.body, self.mode, self.end = key_set("1"), "serve", threading.Event()
        self.requests = 0
        self.asked = threading.Condition()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/jwks"

    def wait_for_requests(self, count):
        with self.asked:
            assert self.asked.wait_for(lambda: self.requests >= count, LIMIT_S)


class Handler(BaseHTTPRequestHandler):
    server: KeyServer

    def do_GET(self):
        server = self.server
        with server.asked:
            server.requests += 1
            server.asked.notify_all()
        if server.mode == "hang":
            server.end.wait()
        elif server.mode == "fail":
            self.send_error(503)
        elif server.mode == "drip head":
            self.drip(b"HTTP/1.1 200 OK\r\nX: ")
        else:
            self.send_response(200)
            length = 1000 if server.mode == "drip body" else len(server.body)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            if server.mode == "drip body":
                self.drip(b"{")
            else:
                self.wfile.write(server.body)

    def drip(self, first):
        try:
            self.wfile.write(first)
            while not self.server.end.wait(0.02):
                self.wfile.write(b" ")
                self.wfile.flush()
        except OSError:
            return

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    server = KeyServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.end.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def opened():
    made: list[JwksKeys] = []

    def opened(url, times=FAST):
        made.append(JwksKeys(url, times))
        return made[-1]

    yield opened
    for keys in made:
        keys.close()


def has(keys, kid):
    try:
        return kid in {key.kid for key in keys(None)}
    except SaslError:
        return False


def wait_for(keys, kid):
    process.wait_for(lambda: has(keys, kid), f"the key {kid}", timeout=LIMIT_S)


@pytest.mark.parametrize("mode", ["hang", "drip head", "drip body", "fail", "other"])
def test_logins_use_the_keys_that_are_there(server, opened, mode):
    keys = opened(server.url)
    wait_for(keys, "1")
    server.body, server.mode = key_set("2") if mode != "other" else b"[" * 100_000, mode
    server.wait_for_requests(server.requests + 2)
    began = time.monotonic()
    for kid in ("1", "unknown", None):
        assert has(keys, "1"), kid
        keys(kid)
    assert time.monotonic() - began < FAST.total_s
    server.body, server.mode = key_set("3"), "serve"
    wait_for(keys, "3")


def test_an_unknown_id_fetches_the_keys_and_not_too_often(server, opened):
    keys = opened(server.url, JwksTimes(refresh_s=3600, unknown_s=0.1))
    wait_for(keys, "1")
    server.body = key_set("1", "2")
    began, asked = time.monotonic(), server.requests
    while not has(keys, "2"):
        keys("2")
        assert time.monotonic() - began < LIMIT_S
    assert server.requests == asked + 1
    keys("2")
    for _ in range(1000):
        keys("3")
    assert server.requests - asked <= 1 + (time.monotonic() - began) / 0.1 + 1


def test_before_the_first_keys_a_login_is_refused_with_the_reason(server, opened):
    server.mode = "hang"
    keys = opened(server.url)
    with pytest.raises(SaslError, match=r"no keys to check tokens with: http://127.0.0.1"):
        keys("1")
    server.mode = "serve"
    wait_for(keys, "1")


def test_the_keys_of_a_file_are_there_at_once(tmp_path, opened):
    path = tmp_path / "jwks.json"
    path.write_bytes(key_set("1"))
    keys = opened(path.as_uri())
    assert has(keys, "1")
    path.write_bytes(key_set("2"))
    wait_for(keys, "2")


def test_a_key_that_is_not_used_is_logged_once(tmp_path, caplog):
    path = tmp_path / "jwks.json"
    broken = {"kty": "EC", "crv": "BP-256", "kid": "bp\n", "x": "AAAA", "y": "AAAA"}
    path.write_text(json.dumps({"keys": [broken, *json.loads(key_set("1"))["keys"]]}))
    keys = JwksKeys(path.as_uri(), JwksTimes(refresh_s=0.01))
    try:
        text = path.read_text()
        path.write_text(text.replace('"kid": "1"', '"kid": "2"'))
        wait_for(keys, "2")
    finally:
        keys.close()
    [line] = [each for each in caplog.messages if "Unusable" in each]
    assert line.startswith(f"Unusable keys of {path.as_uri()}: key 1 ('bp\\n'): ")


def test_a_content_that_is_too_large_is_refused(tmp_path):
    path = tmp_path / "large"
    path.write_bytes(bytes(11))
    with pytest.raises(ValueError, match="more than 10 bytes"):
        fetch_url(path.as_uri(), 1.0, 10)


@pytest.mark.parametrize("mode", ["hang", "drip head", "drip body"])
def test_a_fetch_ends_within_its_time(server, mode):
    server.mode = mode
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        fetch_url(server.url, 0.2, 1000)
    assert time.monotonic() - began < LIMIT_S / 2


def test_a_handshake_that_takes_too_long_ends_within_the_time():
    end = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def drip():
        with listener.accept()[0] as accepted:
            accepted.sendall(b"\x16\x03\x03\x3f\xff")
            try:
                while not end.wait(0.02):
                    accepted.sendall(b"\0")
            except OSError:
                return

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        with pytest.raises(TimeoutError):
            fetch_url(f"https://127.0.0.1:{listener.getsockname()[1]}/jwks", 0.2, 1000)
    finally:
        end.set()
        thread.join()
        listener.close()
