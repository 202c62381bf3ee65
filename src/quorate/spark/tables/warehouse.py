"""Opens a warehouse; its folders show its format."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from pyarrow import fs

from quorate.spark.files.paths import as_local
from quorate.spark.tables.delta import DeltaStore
from quorate.spark.tables.files import open_root
from quorate.spark.tables.parquet import PLANS, ParquetStore
from quorate.spark.tables.store import TableStore, WarehouseError


def open_store(
    root: str, table_format: str = "delta", storage_options: Mapping[str, str] | None = None
) -> TableStore:
    """The warehouse at `root`; its first run creates it. Raises WarehouseError.

    table_format: 'delta' or 'parquet'; an existing warehouse must have that format
    """
    root = as_local(root)
    system, base = open_root(root.rstrip("/"))
    delta_log = posixpath.join(base, "control", "runs", "_delta_log")
    plans = posixpath.join(base, PLANS)
    is_delta = system.get_file_info(delta_log).type == fs.FileType.Directory
    has_plans = system.get_file_info(plans).type == fs.FileType.Directory
    existing = "delta" if is_delta else "parquet" if has_plans else table_format
    if existing != table_format:
        raise WarehouseError(f"{root}: the warehouse is {existing}, not {table_format}")
    if table_format == "delta":
        return DeltaStore(root, storage_options)
    if table_format == "parquet":
        return ParquetStore(root)
    raise WarehouseError(f"'{table_format}' is no table format: delta or parquet")
