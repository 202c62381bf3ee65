"""Calls of one client at the same time: none breaks, resends or outlives what is another's."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from client.fake_node import HANG_UP, FakeNode
from quorate.base.errors import ErrorCode
from quorate.client import (
    Admin,
    AsyncAdmin,
    ClientClosedError,
    ClientConfig,
    ClientError,
    RequestFailedError,
)
from quorate.client.admin.io import BlockingIo, finish
from quorate.client.admin.routing import Router
from quorate.client.admin.topics import TopicCalls, TopicCreation
from quorate.client.connection import Connection
from quorate.client.errors import (
    InvalidValueError,
    LoginError,
    RequestNotSentError,
    UnsupportedVersionError,
)
from quorate.wire.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DescribeClusterResponse,
    UnregisterBrokerResponse,
)


class TopicsNode(FakeNode):
    """Creates topics: each request waits for `may_answer`, and says in `has_come` that it came."""

    def __init__(self, **answers: Any) -> None:
        self.may_answer, self.has_come = threading.Event(), threading.Event()
        own = {"DescribeClusterRequest": self._describe, "CreateTopicsRequest": self._create}
        super().__init__({**own, **answers})

    def _describe(self, request: object) -> DescribeClusterResponse:
        broker = DescribeClusterResponse.DescribeClusterBroker
        own = broker(broker_id=1, host=self.address.host, port=self.address.port)
        return DescribeClusterResponse(
            endpoint_type=2, cluster_id="c", controller_id=1, brokers=[own]
        )

    def _create(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        self.has_come.set()
        assert self.may_answer.wait(20)
        result = CreateTopicsResponse.CreatableTopicResult
        return CreateTopicsResponse(topics=[result(name=each.name) for each in request.topics])

    @property
    def created(self) -> list[str]:
        """The topics of the requests that came, in order."""
        return [each.name for one in self.asked("CreateTopicsRequest") for each in one.topics]


@pytest.fixture
def node() -> Iterator[TopicsNode]:
    up = TopicsNode()
    with up:
        yield up
        up.may_answer.set()


def topic(name: str) -> list[TopicCreation]:
    return [TopicCreation(name, 1, 1)]


async def soon(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


Creation = asyncio.Task[Mapping[str, object]]


async def two_creations(admin: AsyncAdmin, node: TopicsNode) -> tuple[Creation, Creation]:
    """The first one is with the node, the second one waits for it."""
    await admin.describe_cluster()
    first = asyncio.create_task(admin.create_topics(topic("one")))
    await soon(node.has_come.is_set)
    second = asyncio.create_task(admin.create_topics(topic("two")))
    await asyncio.sleep(0)
    return first, second


def test_a_call_that_is_cancelled_while_it_waits_harms_no_other(node: TopicsNode) -> None:
    async def main() -> None:
        async with AsyncAdmin.open(bootstrap_controllers=str(node.address)) as admin:
            first, second = await two_creations(admin, node)
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            node.may_answer.set()
            assert "one" in await first

    asyncio.run(main())
    assert node.created == ["one"]


def test_a_client_that_is_closed_during_a_call_ends_it_and_sends_nothing_again(
    node: TopicsNode,
) -> None:
    async def main() -> None:
        admin = AsyncAdmin.open(bootstrap_controllers=str(node.address))
        sent, waits = await two_creations(admin, node)
        admin.close()
        with pytest.raises(ClientClosedError, match="the change may have been applied") as found:
            await sent
        assert found.value.note
        with pytest.raises(ClientClosedError) as closed:
            await waits
        assert not closed.value.note, "it was not sent"

    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        asyncio.run(main())
        gc.collect()
    node.may_answer.set()
    assert node.created == ["one"]


def test_a_client_that_is_closed_while_it_connects_again_keeps_the_note(node: TopicsNode) -> None:
    """`close` falls between the end of a connect and its caller."""

    class ClosingIo(BlockingIo):
        async def run(
            self, connection: Connection | None, work: Any, *args: Any, **words: Any
        ) -> Any:
            found = work()
            if connection is None and node.has_come.is_set():
                router.close()
            return found

    def lose(request: CreateTopicsRequest) -> object:
        node.has_come.set()
        return HANG_UP

    node.answers["CreateTopicsRequest"] = lose
    router = Router(ClientConfig((node.address,), controllers=True), ClosingIo())
    with pytest.raises(ClientClosedError, match="the change may have been applied") as found:
        finish(TopicCalls(router).create_topics(topic("one")))
    assert found.value.note


def test_a_client_that_was_closed_opens_new_connections(node: TopicsNode) -> None:
    async def main() -> None:
        admin = AsyncAdmin.open(bootstrap_controllers=str(node.address))
        for _ in range(2):
            assert (await admin.describe_cluster()).controller_id == 1
            admin.close()

    asyncio.run(main())


def test_a_client_serves_one_event_loop_after_another(node: TopicsNode) -> None:
    node.may_answer.set()
    admin = AsyncAdmin.open(bootstrap_controllers=str(node.address))

    async def main(number: int) -> None:
        names = [f"{number}-{each}" for each in range(3)]
        await asyncio.gather(*(admin.create_topics(topic(name)) for name in names))

    for number in range(2):
        asyncio.run(main(number))
    admin.close()
    assert len(node.created) == 6


def test_threads_that_share_a_client_wait_for_each_other(node: TopicsNode) -> None:
    node.may_answer.set()
    wrong: list[object] = []

    def create(thread: int) -> None:
        for number in range(10):
            name = f"{thread}-{number}"
            try:
                found = list(admin.create_topics(topic(name)))
            except ClientError as error:
                wrong.append(error)
            else:
                wrong.extend(found if found != [name] else [])

    with Admin.open(bootstrap_controllers=str(node.address)) as admin:
        threads = [threading.Thread(target=create, args=(number,)) for number in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert not wrong
    assert len(node.created) == len(set(node.created)) == 40


def test_threads_wait_for_each_other_no_longer_than_their_timeout() -> None:
    """One after the other, the calls take 4 s."""
    took: list[float] = []
    failed: list[ClientError] = []

    def answer(request: CreateTopicsRequest) -> CreateTopicsResponse:
        time.sleep(0.2)
        result = CreateTopicsResponse.CreatableTopicResult
        return CreateTopicsResponse(topics=[result(name=each.name) for each in request.topics])

    def create(number: int) -> None:
        began = time.monotonic()
        try:
            admin.create_topics(topic(str(number)))
        except ClientError as error:
            failed.append(error)
        took.append(time.monotonic() - began)

    with (
        TopicsNode(CreateTopicsRequest=answer) as node,
        Admin.open(bootstrap_controllers=str(node.address), timeout_s=0.5) as admin,
    ):
        admin.describe_cluster()
        threads = [threading.Thread(target=create, args=(number,)) for number in range(20)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert len(took) == 20 and max(took) < 3.5
    assert any(isinstance(each, RequestNotSentError) for each in failed)


def test_a_client_that_another_thread_closes_ends_its_call(node: TopicsNode) -> None:
    found: list[ClientError] = []

    def create() -> None:
        try:
            admin.create_topics(topic("one"))
        except ClientError as error:
            found.append(error)

    admin = Admin.open(bootstrap_controllers=str(node.address))
    admin.describe_cluster()
    first = threading.Thread(target=create)
    first.start()
    assert node.has_come.wait(20)
    admin.close()
    first.join()
    [error] = found
    assert isinstance(error, ClientClosedError) and "may have been applied" in error.note
    assert node.created == ["one"]


def test_a_change_on_a_connection_that_the_node_has_closed_was_not_sent() -> None:
    """It is sent once, on a new connection: an unknown id is not taken for a change that was made."""
    unknown = UnregisterBrokerResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED)
    with TopicsNode(UnregisterBrokerRequest=[unknown]) as node:
        with Admin.open(bootstrap_controllers=str(node.address)) as admin:
            admin.describe_cluster()
            node.hang_up()
            with pytest.raises(RequestFailedError, match="BROKER_ID_NOT_REGISTERED"):
                admin.unregister_broker(99)
        assert len(node.asked("UnregisterBrokerRequest")) == 1


def test_a_node_that_closes_every_first_request_is_not_asked_for_a_minute() -> None:
    """A listener with SASL does so, where the client does not log in."""
    with TopicsNode(DescribeClusterRequest=[HANG_UP]) as node:
        began = time.monotonic()
        config = ClientConfig((node.address,), controllers=True, unreachable_after_ms=500)
        with (
            Admin(config) as admin,
            pytest.raises(ClientError, match="is it a SASL listener"),
        ):
            admin.describe_cluster()
        assert time.monotonic() - began < 20


def test_an_interrupted_change_says_that_it_may_have_been_applied(
    node: TopicsNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Connection, *args: object) -> None:
        raise KeyboardInterrupt

    with Admin.open(bootstrap_controllers=str(node.address)) as admin:
        admin.describe_cluster()
        monkeypatch.setattr(Connection, "receive", interrupted)
        with pytest.raises(KeyboardInterrupt) as change:
            admin.create_topics(topic("one"))
        monkeypatch.undo()
        admin.describe_cluster()  # on a new connection
        monkeypatch.setattr(Connection, "receive", interrupted)
        with pytest.raises(KeyboardInterrupt) as read:
            admin.describe_cluster()
    [note] = change.value.__notes__
    assert note.startswith("the change may have been applied: check the topics")
    assert not hasattr(read.value, "__notes__")


@pytest.mark.parametrize(
    ("error", "is_dropped"),
    [
        (LoginError("the session could not be renewed"), True),
        (UnsupportedVersionError("not sent"), False),
        (InvalidValueError("not sent"), False),
    ],
)
def test_a_connection_is_used_again_only_where_nothing_was_sent(
    node: TopicsNode, monkeypatch: pytest.MonkeyPatch, error: ClientError, is_dropped: bool
) -> None:
    def failed(self: Connection, *args: object) -> None:
        raise error

    def connections() -> int:
        return len(node.asked("ApiVersionsRequest"))

    with Admin.open(bootstrap_controllers=str(node.address)) as admin:
        admin.describe_cluster()
        made = connections()
        monkeypatch.setattr(Connection, "call", failed)
        with pytest.raises(type(error)):
            admin.describe_cluster()
        monkeypatch.undo()
        admin.describe_cluster()
        assert connections() == made + is_dropped
