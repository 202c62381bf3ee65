"""Client quotas ahead of the image: decisions must see what is written but not committed yet."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.formats.records import ClientQuotaRecord
from quorate.metadata.settings import Quotas, set_client_quota


class Ahead:
    """The quotas as they will be once everything in flight is committed.

    Losing leadership settles every write, so nothing stays ahead of a log that others lead.
    """

    def __init__(self) -> None:
        self._in_flight = 0
        self._quotas: Quotas | None = None

    def over(self, committed: Quotas) -> Quotas:
        """What to decide on, `committed` being what the image holds."""
        return committed if self._quotas is None else self._quotas

    def begin(self, committed: Quotas, records: Iterable[ClientQuotaRecord]) -> None:
        """These records are being written."""
        quotas = self.over(committed)
        for record in records:
            quotas = set_client_quota(quotas, record)
        self._quotas = quotas
        self._in_flight += 1

    def settle(self) -> None:
        """One write is committed or lost; after the last of them the image rules again."""
        self._in_flight -= 1
        if self._in_flight == 0:
            self._quotas = None
