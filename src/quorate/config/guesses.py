"""The likeliest values behind a fault, so that the rules for other keys can still be asked.

The file is taken for that of a controller, whose listeners and `controller.listener.names` agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quorate.base.file_errors import is_file_name
from quorate.base.ids import Listener, Listeners
from quorate.config import listeners as addresses
from quorate.config.settings import Settings
from quorate.config_definitions.java_text import COMMA


def controller_names(settings: Settings, valid: Sequence[str]) -> tuple[str, ...]:
    """The valid `controller.listener.names`, or the names of `listeners`; at least one."""
    entries = COMMA.split(settings.values.get(addresses.LISTENERS, ""))
    bound = (entry.partition(":")[0].upper() for entry in entries)
    return tuple(valid) or tuple(filter(None, bound)) or ("CONTROLLER",)


def bound_listeners(
    valid: Listeners, names: Sequence[str], protocols: Mapping[str, str]
) -> Listeners:
    """The valid `listeners`, and those of the controller on every interface."""
    known = {one.name for one in valid}
    missing = (name.upper() for name in names)
    return (*valid, *(Listener(n, "", 0) for n in missing if n in protocols and n not in known))


def protocols_of(valid: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """The valid entries, and PLAINTEXT for the other listeners, of which nothing can be said."""
    return {**dict.fromkeys((name.upper() for name in names), "PLAINTEXT"), **valid}


def directories(settings: Settings, key: str) -> tuple[str, ...]:
    """The entries of a key that can name directories."""
    entries = COMMA.split(settings.values.get(key, ""))
    return tuple(entry for entry in entries if entry and is_file_name(entry))
