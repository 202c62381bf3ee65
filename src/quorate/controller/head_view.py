"""What a decision reads of the head: the write queue alone changes it."""

from __future__ import annotations

from typing import Protocol

from quorate.controller.partition_index import PartitionIndex
from quorate.controller.token_secrets import TokenSecrets
from quorate.metadata.image import Image
from quorate.metadata.loader import Transaction


class HeadView(Protocol):
    """The uncommitted image and its index; `Head` is one."""

    @property
    def image(self) -> Image:
        """Everything that was decided, committed or not, open transaction included."""

    @property
    def committed(self) -> Image:
        """Everything that is committed, without the records of an open transaction."""

    @property
    def transaction(self) -> Transaction | None:
        """The open transaction; its offset is -1 when it began here and is not committed."""

    @property
    def index(self) -> PartitionIndex:
        """Return the index of the topics of `image`."""

    @property
    def token_secrets(self) -> TokenSecrets:
        """Return the secrets of the delegation tokens of `image`."""
