"""Calls about client quotas (KIP-546)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from quorate.client.admin.routing import Calls
from quorate.client.results import check

ANY_NAME: Final = object()
"""In a filter: every entity of the type, the default entity too."""
_EXACT: Final = 0
_DEFAULT: Final = 1
_SPECIFIED: Final = 2


class EntityQuotas(NamedTuple):
    """The quotas of one entity. A name of None is the default entity of its type."""

    entity: Mapping[str, str | None]
    quotas: Mapping[str, float]


class QuotaCalls(Calls):
    """describeClientQuotas and alterClientQuotas."""

    async def describe_client_quotas(
        self, components: Mapping[str, str | object | None], strict: bool = False
    ) -> tuple[EntityQuotas, ...]:
        """The entities that match every component, a type with a name, None or ANY_NAME.

        `strict` leaves out entities that have other types too. A controller of Kafka does not serve
        this call (UnsupportedVersionError), one of Quorate does.
        """
        from quorate.wire.messages.quotas import (
            DescribeClientQuotasRequest,
            DescribeClientQuotasResponse,
        )

        component = DescribeClientQuotasRequest.ComponentData
        asked = []
        for kind, name in components.items():
            if isinstance(name, str):
                asked.append(component(entity_type=kind, match_type=_EXACT, match=name))
            else:
                match_type = _DEFAULT if name is None else _SPECIFIED
                asked.append(component(entity_type=kind, match_type=match_type, match=None))
        request = DescribeClientQuotasRequest(components=asked, strict=strict)

        async def ask() -> tuple[EntityQuotas, ...]:
            answer = await self.router.ask_active(request, DescribeClientQuotasResponse)
            check(answer.error_code, answer.error_message)
            return tuple(
                EntityQuotas(
                    {each.entity_type: each.entity_name for each in entry.entity},
                    {each.key: each.value for each in entry.values},
                )
                for entry in answer.entries or ()
            )

        return await self.router.retry(ask)

    async def alter_client_quota(
        self, entity: Mapping[str, str | None], quotas: Mapping[str, float | None]
    ) -> None:
        """Set the quotas of one entity, and remove those whose value is None.

        An entity name of None is the default entity. Returns when the change is committed. Raises
        RequestFailedError with the controller's reason.
        """
        from quorate.wire.messages.quotas import (
            AlterClientQuotasRequest,
            AlterClientQuotasResponse,
        )

        entry = AlterClientQuotasRequest.EntryData
        request = AlterClientQuotasRequest(
            entries=[
                entry(
                    entity=[
                        entry.EntityData(entity_type=kind, entity_name=name)
                        for kind, name in entity.items()
                    ],
                    ops=[
                        entry.OpData(key=key, value=value or 0.0, remove=value is None)
                        for key, value in quotas.items()
                    ],
                )
            ]
        )

        async def send() -> None:
            answer = await self.router.ask_active(request, AlterClientQuotasResponse)
            for result in answer.entries:
                check(result.error_code, result.error_message)

        await self.router.retry(send)
