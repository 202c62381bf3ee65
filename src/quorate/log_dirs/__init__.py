"""A node's log directories: their meta.properties files, and formatting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.log_dirs.format_plan import (
        FormatPlan,
        FormatRequest,
        FormatterError,
        NoDirectoriesError,
        PlannedDirectory,
    )
    from quorate.log_dirs.meta_properties import (
        IdentityError,
        MetaPropertiesEnsemble,
        NodeIdentity,
        load_ensemble,
        load_identity,
        new_directory_id,
        write_durably,
        write_meta_properties,
    )
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "format_plan": "FormatPlan FormatRequest FormatterError NoDirectoriesError "
            "PlannedDirectory",
            "meta_properties": "IdentityError MetaPropertiesEnsemble NodeIdentity load_ensemble "
            "load_identity new_directory_id write_durably write_meta_properties",
        },
    )

__all__ = [
    "FormatPlan",
    "FormatRequest",
    "FormatterError",
    "IdentityError",
    "MetaPropertiesEnsemble",
    "NoDirectoriesError",
    "NodeIdentity",
    "PlannedDirectory",
    "load_ensemble",
    "load_identity",
    "new_directory_id",
    "write_durably",
    "write_meta_properties",
]
