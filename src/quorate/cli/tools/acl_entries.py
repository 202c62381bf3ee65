"""Resources and entries that the options of `quorate acls` name, and their text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from quorate.cli.flat_options import FlatToolError
from quorate.security.acl import AclOperation, AclResource

if TYPE_CHECKING:
    from quorate.client.admin.acls import AclBinding, AclFilter

ALL: Final = 2
"""The operation that stands for all."""
ALLOW: Final = 3
_DENY: Final = 2
PATTERN_TYPES: Final[Mapping[str, int]] = {"any": 1, "match": 2, "literal": 3, "prefixed": 4}
OPERATIONS: Final[Mapping[str, int]] = {
    "All": ALL,
    **{"".join(p.capitalize() for p in op.name.split("_")): int(op) for op in AclOperation},
}
"""Names of operations, as `--operation` and Kafka's help have them."""
_LOWER: Final = {name.lower(): code for name, code in OPERATIONS.items()}
_OPERATION_TEXT: Final = {1: "ANY", ALL: "ALL", **{int(op): op.name for op in AclOperation}}
_RESOURCE_TEXT: Final = {1: "ANY", **{int(each): each.name for each in AclResource}}
_PATTERN_TEXT: Final = {code: name.upper() for name, code in PATTERN_TYPES.items()}
_PERMISSION_TEXT: Final = {1: "ANY", _DENY: "DENY", ALLOW: "ALLOW"}
_Op = AclOperation
_SUPPORTED: Final[Mapping[int, frozenset[int]]] = {
    AclResource.TOPIC: frozenset(
        {
            *(_Op.READ, _Op.WRITE, _Op.CREATE, _Op.DESCRIBE, _Op.DELETE, _Op.ALTER),
            *(_Op.DESCRIBE_CONFIGS, _Op.ALTER_CONFIGS),
        }
    ),
    AclResource.GROUP: frozenset(
        {_Op.READ, _Op.DESCRIBE, _Op.DELETE, _Op.DESCRIBE_CONFIGS, _Op.ALTER_CONFIGS}
    ),
    AclResource.CLUSTER: frozenset(
        {
            *(_Op.CREATE, _Op.CLUSTER_ACTION, _Op.DESCRIBE_CONFIGS, _Op.ALTER_CONFIGS),
            *(_Op.IDEMPOTENT_WRITE, _Op.ALTER, _Op.DESCRIBE),
        }
    ),
    AclResource.TRANSACTIONAL_ID: frozenset({_Op.DESCRIBE, _Op.WRITE, _Op.TWO_PHASE_COMMIT}),
    AclResource.DELEGATION_TOKEN: frozenset({_Op.DESCRIBE}),
    AclResource.USER: frozenset({_Op.CREATE_TOKENS, _Op.DESCRIBE_TOKENS}),
}
"""`AclEntry.supportedOperations`."""


class AclEntry(NamedTuple):
    """Who may do what (`AccessControlEntry`)."""

    principal: str
    host: str
    operation: int
    permission: int


class AclPatternFilter(NamedTuple):
    """Which resources (`ResourcePatternFilter`)."""

    resource_type: int
    name: str
    pattern_type: int

    def __str__(self) -> str:
        return _pattern_text(*self)

    def binding(self, entry: AclEntry) -> AclBinding:
        """The entry on the resource of this name."""
        from quorate.client.admin.acls import AclBinding

        return AclBinding(self.resource_type, self.name, self.pattern_type, *entry)

    def filter(self, entry: AclEntry) -> AclFilter:
        """The filter for this entry on these resources."""
        from quorate.client.admin.acls import AclFilter

        return AclFilter(self.resource_type, self.name, self.pattern_type, *entry)

    def all_entries(self) -> AclFilter:
        """The filter for every entry on these resources."""
        from quorate.client.admin.acls import ANY, AclFilter

        return AclFilter(*self, None, None, ANY, ANY)


AclRules = dict[AclPatternFilter, list[AclEntry]]
_CLUSTER: Final = AclPatternFilter(AclResource.CLUSTER, "kafka-cluster", PATTERN_TYPES["literal"])


def rules_of(given: Collection[str], options: Mapping[str, Any]) -> AclRules:
    """The entries of each resource; no entries where no principal is named.

    Raises UsageError if an action needs a resource and has none, or an operation does not fit.
    """
    patterns = _patterns(options)
    if "list" in given:
        return {pattern: [] for pattern in patterns}
    if not patterns:
        raise click.UsageError(
            "You must provide at least one resource: --topic <topic> or --cluster or --group <group> "
            "or --delegation-token <Delegation Token ID>"
        )
    rules: AclRules = {}
    if not options["producer"] and not options["consumer"]:
        operations = [_operation(text) for text in options["operation"]] or [ALL]
        entries = _entries(options, operations)
        rules = {pattern: list(entries) for pattern in patterns}
    if options["producer"]:
        _add_roles(
            rules,
            patterns,
            {
                AclResource.TOPIC: _entries(options, (_Op.WRITE, _Op.DESCRIBE, _Op.CREATE)),
                AclResource.TRANSACTIONAL_ID: _entries(options, (_Op.WRITE, _Op.DESCRIBE)),
            },
        )
        if options["idempotent"]:
            rules[_CLUSTER] = _entries(options, (_Op.IDEMPOTENT_WRITE,))
    if options["consumer"]:
        _add_roles(
            rules,
            patterns,
            {
                AclResource.TOPIC: _entries(options, (_Op.READ, _Op.DESCRIBE)),
                AclResource.GROUP: _entries(options, (_Op.READ,)),
            },
        )
    _check_operations(rules)
    return rules


def _add_roles(
    rules: AclRules,
    patterns: Iterable[AclPatternFilter],
    entries: Mapping[AclResource, list[AclEntry]],
) -> None:
    for pattern in patterns:
        for entry in entries.get(AclResource(pattern.resource_type), ()):
            found = rules.setdefault(pattern, [])
            if entry not in found:
                found.append(entry)
        if pattern.resource_type in entries:
            rules.setdefault(pattern, [])


def _patterns(options: Mapping[str, Any]) -> list[AclPatternFilter]:
    code = PATTERN_TYPES[options["resource_pattern_type"].lower()]
    found = [AclPatternFilter(AclResource.TOPIC, each.strip(), code) for each in options["topic"]]
    if options["resource_pattern_type"] == "literal" and (
        options["cluster"] or options["idempotent"]
    ):
        found.append(_CLUSTER)
    for name, resource in (
        ("group", AclResource.GROUP),
        ("transactional_id", AclResource.TRANSACTIONAL_ID),
        ("delegation_token", AclResource.DELEGATION_TOKEN),
        ("user_principal", AclResource.USER),
    ):
        found += [AclPatternFilter(resource, each.strip(), code) for each in options[name]]
    return list(dict.fromkeys(found))


def _entries(options: Mapping[str, Any], operations: Iterable[int]) -> list[AclEntry]:
    found = []
    for verb, permission in (("allow", ALLOW), ("deny", _DENY)):
        principals = [principal_of(text) for text in options[f"{verb}_principal"]]
        hosts = [host.strip() for host in options[f"{verb}_host"]] or ["*"]
        found += [
            AclEntry(principal, host, int(operation), permission)
            for principal in principals
            for operation in operations
            for host in hosts
        ]
    return list(dict.fromkeys(found))


def principal_of(text: str) -> str:
    """Parse TYPE:NAME as `SecurityUtils.parseKafkaPrincipal`. Raises FlatToolError."""
    kind, colon, name = text.strip().partition(":")
    if not colon:
        raise FlatToolError(
            f"expected a string in format principalType:principalName but got {text.strip()}"
        )
    return f"{kind}:{name}"


def _operation(text: str) -> int:
    """The code of an operation. Raises UsageError."""
    code = _LOWER.get(text.strip().replace("_", "").lower())
    if code is None:
        raise click.UsageError(
            f"Unknown operation '{text}': it must be one of {', '.join(OPERATIONS)}"
        )
    return code


def _check_operations(rules: AclRules) -> None:
    for pattern, entries in rules.items():
        allowed = {ALL, *_SUPPORTED[pattern.resource_type]}
        if any(entry.operation not in allowed for entry in entries):
            names = ", ".join(_OPERATION_TEXT[code] for code in sorted(allowed))
            raise click.UsageError(
                f"ResourceType {_RESOURCE_TEXT[pattern.resource_type]} only supports operations "
                f"[{names}]"
            )


# -- text ----------------------------------------------------------------------------------------
def resource_text(binding: AclBinding) -> str:
    """Return the text of `ResourcePattern.toString`."""
    return _pattern_text(binding.resource_type, binding.resource_name, binding.pattern_type)


def _pattern_text(resource_type: int, name: str, pattern_type: int) -> str:
    kind, pattern = _name(_RESOURCE_TEXT, resource_type), _name(_PATTERN_TEXT, pattern_type)
    return f"ResourcePattern(resourceType={kind}, name={name}, patternType={pattern})"


def filter_text(wanted: AclFilter) -> str:
    """Name the entries of a filter: those of a principal, or all of the resources."""
    where = _pattern_text(wanted.resource_type, wanted.resource_name or "*", wanted.pattern_type)
    if wanted.principal is None or wanted.host is None:
        return f"all entries of {where}"
    entry = entry_text(wanted.principal, wanted.host, wanted.operation, wanted.permission)
    return f"(pattern={where}, entry={entry})"


def entry_text(principal: str, host: str, operation: int, permission: int) -> str:
    """Return the text of `AccessControlEntry.toString`."""
    return (
        f"(principal={principal}, host={host}, operation={_name(_OPERATION_TEXT, operation)}, "
        f"permissionType={_name(_PERMISSION_TEXT, permission)})"
    )


def names_of(binding: AclBinding) -> dict[str, Any]:
    """The binding with names for codes, as JSON has it."""
    return {
        "resourceType": _name(_RESOURCE_TEXT, binding.resource_type),
        "resourceName": binding.resource_name,
        "patternType": _name(_PATTERN_TEXT, binding.pattern_type),
        "principal": binding.principal,
        "host": binding.host,
        "operation": _name(_OPERATION_TEXT, binding.operation),
        "permissionType": _name(_PERMISSION_TEXT, binding.permission),
    }


def _name(names: Mapping[int, str], code: int) -> str:
    return names.get(code, "UNKNOWN")
