"""One controller of the pair: its process, its log as it grows, names for what it chose at random."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from differential.channel import CLIENT, DIRECT, TOKEN_MECHANISMS, Asker, Channel
from differential.tokens import Tokens, is_expired
from interop.process import Node, wait_for
from quorate.base.ids import Uuid
from quorate.formats.batch import iter_batches, whole_batches_size
from quorate.formats.batch_records import values
from quorate.formats.metadata_records import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    NoOpRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from quorate.formats.records import decode_record
from quorate.metadata.image import Image
from quorate.metadata.loader import Loader, log_batch
from quorate.wire.messages import ApiVersionsRequest, ApiVersionsResponse
from quorate.wire.schema import Message

_PLAINTEXT: Final = ""
"""The channel without a login; the others are called by their users."""


class Side:
    """A running controller, alone in its quorum. `name` is "java" or "quorate"."""

    def __init__(self, node: Node, cluster_id: str, login_port: int, *, sweeps: bool) -> None:
        """sweeps: it removes expired tokens at once."""
        self.node = node
        self.sweeps = sweeps
        self.name = node.kind
        self.cluster_id = cluster_id
        self.names: dict[Uuid, str] = {}
        """What each id that the controller chose is called: the same on both sides."""
        self.epochs: dict[int, str] = {}
        """Broker epoch -> its name."""
        self.topic_ids: dict[str, list[Uuid]] = {}
        """By topic name, in the order of creation."""
        self.tokens = Tokens()
        self.directories_of_removed: set[Uuid] = set()
        self.eligible_of_removed: set[int] = set()
        """Where replicas of removed topics were, and which brokers were eligible to lead them. Kafka keeps
        them in its indexes, and a failure of the directory, or a new incarnation of the broker, then
        ends the leadership (decision 7)."""
        self._loader = Loader()
        self._position = 0
        self.login_port = login_port
        self._channels: dict[str, Channel] = {}

    @property
    def image(self) -> Image:
        return self._loader.published.image

    @property
    def end_offset(self) -> int:
        return self._loader.next_offset

    def topic_id(self, name: str) -> Uuid:
        """The newest id of a topic, removed or not; zero when there was none."""
        ids = self.topic_ids.get(name)
        return ids[-1] if ids else Uuid(bytes(16))

    def epoch_of(self, broker: int) -> int:
        found = self.image.cluster.brokers.get(broker)
        return -1 if found is None else found.epoch

    # The log

    def new_records(self) -> list[tuple[Message, int]]:
        """Each record that the log got since the last call, and its version. No NoOpRecord."""
        path = self.node.partition / f"{0:020}.log"
        size = path.stat().st_size if path.exists() else 0
        if size <= self._position:
            return []
        with path.open("rb") as file:
            data = os.pread(file.fileno(), size - self._position, self._position)
        whole = whole_batches_size(data, self._position)
        found = list(self._read(data[:whole]))
        self._position += whole
        return found

    def _read(self, data: bytes) -> Iterator[tuple[Message, int]]:
        for view in iter_batches(data, self._position):
            before = self.image
            self._loader.feed(log_batch(view))
            for value in () if view.is_control else values(view):
                record, version = decode_record(value)[:2]
                self._learn(record)
                if isinstance(record, RemoveTopicRecord):
                    self._note_removed(before, record.topic_id)
                if isinstance(record, NoOpRecord) or self._is_swept(record, before):
                    continue
                if not self._is_its_own(record):
                    yield record, version

    def _is_its_own(self, record: Message) -> bool:
        """The registration of the controller itself."""
        return isinstance(record, RegisterControllerRecord) and record.controller_id == self.node.id

    def _is_swept(self, record: Message, before: Image) -> bool:
        """The controller removes a token by itself, sooner or later, because it has expired."""
        if not (self.sweeps and isinstance(record, RemoveDelegationTokenRecord)):
            return False
        token = before.delegation_tokens.get(record.token_id)
        return token is not None and is_expired(token)

    def _note_removed(self, before: Image, topic_id: Uuid) -> None:
        topic = before.topics.by_id.get(topic_id)
        for partition in topic.partitions.values() if topic else ():
            self.directories_of_removed.update(partition.directories)
            self.eligible_of_removed.update(partition.elr)

    def _learn(self, record: Message) -> None:
        match record:
            case TopicRecord():
                ids = self.topic_ids.setdefault(record.name, [])
                ids.append(record.topic_id)
                self.names[record.topic_id] = f"<topic {record.name} #{len(ids)}>"
            case RegisterBrokerRecord():
                name = f"<epoch of {record.broker_id} #{len(self.epochs) + 1}>"
                self.epochs.setdefault(record.broker_epoch, name)
            case AccessControlEntryRecord():
                content = (
                    *(record.resource_type, record.resource_name, record.pattern_type),
                    *(record.principal, record.host, record.operation, record.permission_type),
                )
                self.names[record.id] = f"<acl {content}>"
            case DelegationTokenRecord():
                self.tokens.note(record)

    def wait_until_ready(self) -> None:
        """Wait until it leads and has its own registration in the log."""
        self.node.wait_until_listening()

        def registered() -> bool:
            assert self.node.is_alive, f"{self.node} died:\n{self.node.log[-3000:]}"
            self.new_records()
            return self.is_registered

        wait_for(registered, f"{self.node} to lead", 60)

    @property
    def is_registered(self) -> bool:
        """The controller's own registration is in the log, or this metadata.version has none."""
        level = self.image.features.metadata_version
        return level is not None and (level < 15 or self.node.id in self.image.cluster.controllers)

    # Requests

    def versions(self) -> dict[int, tuple[int, int]]:
        """Lowest and highest version of each API that the controller offers."""
        rows = self._api_versions().api_keys
        return {row.api_key: (row.min_version, row.max_version) for row in rows}

    def features(self) -> dict[str, tuple[int, int]]:
        """Lowest and highest level of each feature that the controller supports."""
        rows = self._api_versions().supported_features
        return {row.name: (row.min_version, row.max_version) for row in rows}

    def _api_versions(self) -> ApiVersionsResponse:
        request = ApiVersionsRequest(client_software_name="d", client_software_version="1")
        answer = self.ask(request, 4)
        assert isinstance(answer, ApiVersionsResponse)
        return answer

    def ask(
        self, message: Message, version: int, asker: Asker = DIRECT, client: str = CLIENT
    ) -> Message:
        """The response.

        Raises OSError when the controller closes the connection, SaslError when it refuses the login.
        """
        if asker.token is not None:
            return self._ask_by_token(message, version, asker.token, client)
        name = asker.user or _PLAINTEXT
        try:
            channel = self._channels.get(name) or self._open(name)
            if asker.principal is not None:
                return channel.forward(message, version, asker, client)
            return channel.ask(message, version, client)
        except OSError:
            self._channels.pop(name).close()
            raise

    def _open(self, name: str) -> Channel:
        port = self.node.port if name == _PLAINTEXT else self.login_port
        channel = self._channels[name] = Channel(port)
        if name != _PLAINTEXT:
            channel.log_in_with_password(name)
        return channel

    def _ask_by_token(self, message: Message, version: int, number: int, client: str) -> Message:
        """On a connection of its own: the session ends with the token."""
        channel = Channel(self.login_port)
        try:
            mechanism = TOKEN_MECHANISMS[number % len(TOKEN_MECHANISMS)]
            channel.log_in_with_token(mechanism, *self.tokens.all[number])
            return channel.ask(message, version, client)
        finally:
            channel.close()

    def close(self) -> None:
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()
