"""What the tables do not keep: salts and keys of SCRAM, and values of configs that are secret."""

from __future__ import annotations

import json
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from quorate.spark.decode.columns import IN_RAW
from quorate.spark.tables.configs import is_secret_config
from quorate.spark.tables.kinds import HIDDEN

_MAY_HOLD_SECRETS: Final = ("UserScramCredentialRecord", "ConfigRecord", "DelegationTokenRecord")
"""Types of records, in a version of today or one to come."""
_SCRAM_SECRETS: Final = ("salt", "storedKey", "serverKey")
_COLUMNS: Final = ("record", "raw", "problem")


def without_secrets(table: pa.Table) -> pa.Table:
    """Rows of the source without secrets.

    The bytes of a record that could not be decoded are not kept where its type may hold secrets,
    or cannot be told.
    """
    types = pa.array((*_MAY_HOLD_SECRETS, None), pa.string())
    rows = pc.indices_nonzero(pc.is_in(table.column("type"), value_set=types)).to_pylist()
    if not rows:
        return table
    found = table.select(("type", *_COLUMNS)).to_pydict()
    for row in rows:
        text, raw, problem = (found[name][row] for name in _COLUMNS)
        found["record"][row] = text and shown_record(found["type"][row], text)
        if raw is not None and problem is not None:
            told = problem.removesuffix(IN_RAW)
            lost = f"its {len(raw)} bytes are not kept: they may hold a secret"
            found["problem"][row] = f"{told}; {lost}"
        found["raw"][row] = None
    for name in _COLUMNS:
        index = table.column_names.index(name)
        field = table.schema.field(index)
        table = table.set_column(index, field, pa.array(found[name], field.type))
    return table


def shown_record(type_name: str, text: str) -> str:
    """A record's JSON without salts and keys of SCRAM, and without values of secret configs."""
    if type_name not in _MAY_HOLD_SECRETS:
        return text
    fields: dict[str, Any] = json.loads(text)
    if type_name == "ConfigRecord":
        if fields["value"] is None or not is_secret_config(fields["resourceType"], fields["name"]):
            return text
        fields["value"] = HIDDEN
    for name in _SCRAM_SECRETS:
        fields.pop(name, None)
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
