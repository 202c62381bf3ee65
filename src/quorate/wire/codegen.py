"""The source of the codec of one version of a message, as a pure function of its declaration."""

from __future__ import annotations

import re

from quorate.wire.schema import Message, Struct
from quorate.wire.source_decode import decoder_source, items_name
from quorate.wire.source_encode import encoder_source

__all__ = ["HEADER", "items_name", "names", "source_for", "step_decoder_source", "structs"]

HEADER = """\
from struct import Struct as Layout, pack, unpack_from

from quorate.wire.explain import explain
from quorate.wire.runtime import (
    DECODE_FAULTS,
    ENCODE_FAULTS,
    MAX_ARRAY_LENGTH,
    CodecFaultError,
    decode_error,
    long_varint,
    null,
    put_tags,
    put_varint,
    short,
    tag_count,
    too_long,
    too_many,
    unknown_tags,
)

new = object.__new__
"""


def names(cls: type[Message], version: int) -> tuple[str, str]:
    """The names of the encoder and the decoder of `version`."""
    stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
    return f"encode_{stem}_v{version}", f"decode_{stem}_v{version}"


def structs(cls: type[Struct]) -> list[type[Struct]]:
    """`cls` and the classes of all structs inside it, each once."""
    found = [cls]
    for field in cls.schema.fields:
        if field.holds_structs:
            found += [inner for inner in structs(field.struct) if inner not in found]
    return found


def source_for(cls: type[Message], version: int) -> str:
    """Source that defines the encoder and decoder of `version`.

    It needs the names of HEADER and the classes of `structs(cls)` in scope.
    """
    encoder_name, decoder_name = names(cls, version)
    encoder, encoder_layouts = encoder_source(cls, version, encoder_name)
    decoder, decoder_layouts = decoder_source(cls, version, decoder_name)
    layouts = sorted(encoder_layouts | decoder_layouts)
    return "\n".join([*layouts, "", "", *encoder, "", "", *decoder, ""])


def step_decoder_source(cls: type[Message], version: int) -> str:
    """Source that defines the decoder of `version` as a generator, which pauses.

    It needs the same names in scope, and for each struct what decodes many (`items_name`).
    """
    decoder, layouts = decoder_source(cls, version, names(cls, version)[1], in_steps=True)
    return "\n".join([*sorted(layouts), "", "", *decoder, ""])
