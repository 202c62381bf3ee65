"""Generates the decoder of one version of a message: straight-line source, no loops over a schema.

1. Fixed-size fields that follow each other are read with one `unpack_from`, together with the first
   byte of a length behind them: most of the time of a decoder is calls, not bytes.
2. Most varints are one byte: it is read inline, and `long_varint` is called above 127 only.
3. `at` is the index of the field being read in NAME_FIELDS, so that an error can name it.
4. Every length is compared with the bytes left before memory is allocated for it: a request of
   100 bytes must not make a list of 2**31 elements. Kafka's limits of counts apply too.
"""

from __future__ import annotations

from typing import Final

from quorate.wire.schema import FORMATS, NEW, SIZES, Field, Message, Struct
from quorate.wire.source import (
    Lines,
    is_classic,
    length_letter,
    literal,
    min_element_size,
    min_struct_size,
)

_BEGIN_STEPS: Final = (
    "    due = pos",
    "    if due < 0:",
    "        yield None  # also where no list can be long it is a generator",
)
STEP_BYTES: Final = 16_384
"""Bytes of lists that a decoder in steps reads at once: thousands of items, some milliseconds."""


def items_name(cls: type[Struct]) -> str:
    """The name of what decodes many structs of a class in C (`native.items_decoder`), or of None."""
    return f"ITEMS_{cls.__name__}"


def decoder_source(
    cls: type[Message],
    version: int,
    name: str,
    *,
    as_java: bool = False,
    in_steps: bool = False,
) -> tuple[list[str], set[str]]:
    """Lines that define function `name(buf, pos) -> (message, pos)`, and the layouts they use.

    `as_java`: take what Kafka's generated readers take (`java_decoder`); needs `java_text` in scope.
    `in_steps`: a generator, which yields None after STEP_BYTES of a list and returns the same.
    """
    decoder = _Decoder(cls, version, as_java, in_steps)
    decoder.struct(cls, "m", "")
    decoder.flush()
    fields = "".join(f"({path!r}, {size}), " for path, size in decoder.fields)
    message = (cls.schema.name, version)
    lines = [
        f"{name}_FIELDS = ({fields})",
        "",
        "",
        f"def {name}(buf: bytes, pos: int)"
        + ("" if in_steps else f" -> tuple[{cls.__name__}, int]")
        + ":",
        *(_BEGIN_STEPS if in_steps else ()),
        "    at = 0",
        "    end = len(buf)",
        "    try:",
        *decoder.code.lines,
        "        return m, pos",
        "    except DECODE_FAULTS as error:",
        "        place = (buf, pos)",
        f"        raise decode_error(error, place, {message!r}, {name}_FIELDS, at) from None",
    ]
    return lines, decoder.code.layouts


class _Decoder:
    def __init__(
        self, cls: type[Message], version: int, as_java: bool, in_steps: bool = False
    ) -> None:
        self.as_java = as_java
        self.in_steps = in_steps
        self.schema = cls.schema
        self.version = version
        self.flexible = cls.schema.is_flexible(version)
        self.code = Lines(indent=2)
        self.fields: list[tuple[str, int]] = []
        self._run: list[tuple[str, str]] = []
        self._run_at = 0

    # -- fixed sizes

    def fixed(self, target: str, letter: str, path: str, size: int) -> None:
        """Read a value of fixed size into `target`, together with its neighbours."""
        if not self._run:
            self._run_at = len(self.fields)
        self.fields.append((path, size))
        self._run.append((target, letter))

    def flush(self) -> None:
        """Emit the read of the fixed values gathered so far."""
        if not self._run:
            return
        run, self._run = self._run, []
        letters = "".join(letter for _, letter in run)
        targets = ", ".join(target for target, _ in run)
        self.code.add(f"at = {self._run_at}")
        if letters == "B":
            self.code.add(f"{targets} = buf[pos]", "pos += 1")
        else:
            read = self.code.layout("unpack_from", letters)
            comma = "," if len(run) == 1 else ""
            size = sum(1 if x == "B" else _SIZE_OF[x] for _, x in run)
            self.code.add(f"{targets}{comma} = {read}(buf, pos)", f"pos += {size}")
        if len(run) > 1 and self._run_at != len(self.fields) - 1:
            self.code.add(f"at = {len(self.fields) - 1}")

    # -- structs

    def new_struct(self, cls: type[Struct], var: str, path: str) -> None:
        self.code.add(f"{var} = new({cls.__name__})")
        self.struct(cls, var, path, made=True)

    def struct(self, cls: type[Struct], var: str, path: str, made: bool = False) -> None:
        if not made:
            self.code.add(f"{var} = new({cls.__name__})")
        self.code.add(f"{var}.unknown_tags = ()")
        schema = cls.schema
        for field in schema.fields:
            if field.tag is not None or not field.in_version(self.version):
                self.default(field, f"{var}.{field.name}")
        for field in schema.untagged(self.version):
            self.field(field, f"{var}.{field.name} = {{}}", f"{path}{field.name}")
        if self.flexible:
            self.tags(cls, var, path)

    def default(self, field: Field, target: str) -> None:
        """Assign the default of a field that is not in the body."""
        if field.default is not NEW or field.type_name != "struct":
            self.code.add(f"{target} = {literal(field)}")
            return
        var = self.code.new_name("s")
        self.code.add(f"{target} = {var} = new({field.struct.__name__})")
        self.code.add(f"{var}.unknown_tags = ()")
        for inner in field.struct.schema.fields:
            self.default(inner, f"{var}.{inner.name}")

    def tags(self, cls: type[Struct], var: str, path: str) -> None:
        """The tagged section (KIP-482): unknown tags are kept, a known tag that this version does not
        have is refused, as in Kafka's generated readers."""
        count = self.code.new_name("n")
        self.fixed(count, "B", f"{path}tagged fields", 0)
        self.flush()
        with self.code.block(f"if {count}:"):
            self.code.add(f"{count}, pos = tag_count(buf, {count}, pos)")
            known = [field for field in cls.schema.fields if field.tag is not None]
            if known:
                self.known_tags(known, count, var, path)
            else:
                self.code.add(f"{var}.unknown_tags, pos = unknown_tags(buf, {count}, pos)")

    def known_tags(self, known: list[Field], count: str, var: str, path: str) -> None:
        at = len(self.fields) - 1
        tag, size, stop, unknown, index = (
            self.code.new_name(stem) for stem in ("tag", "size", "stop", "unknown", "i")
        )
        self.code.add(f"{unknown} = {{}}")
        with self.code.block(f"for {index} in range({count}):"):
            self.code.add(f"at = {at}")
            self._varint(tag)
            self._varint(size)
            self.code.add(f"{stop} = pos + {size}")
            if not self.as_java:
                self._check_stop(stop, size)
            word = "if"
            for field in known:
                with self.code.block(f"{word} {tag} == {field.tag}:"):
                    self.known_tag(field, var, path)
                word = "elif"
            with self.code.block("else:"):
                if self.as_java:
                    self._check_stop(stop, size)
                self.code.add(f"{unknown}[{tag}] = buf[pos:{stop}]", f"pos = {stop}")
            if not self.as_java:
                with self.code.block(f"if pos != {stop}:"):
                    fault = '"a tagged field is not as long as it says"'
                    self.code.add(f"raise CodecFaultError({fault})")
        with self.code.block(f"if {unknown}:"):
            self.code.add(f"{var}.unknown_tags = tuple(sorted({unknown}.items()))")

    def known_tag(self, field: Field, var: str, path: str) -> None:
        if not field.in_version(self.version):
            self.code.add('raise CodecFaultError("it holds a tag that this version does not have")')
            return
        self.field(field, f"{var}.{field.name} = {{}}", f"{path}{field.name}")
        self.flush()

    # -- fields

    def field(self, field: Field, assign: str, path: str) -> None:
        """Read `field` and hand it to `assign`, a statement with a hole."""
        if field.type_name in FORMATS:
            self.fixed(
                assign.split(" =")[0], FORMATS[field.type_name], path, SIZES[field.type_name]
            )
        elif field.type_name == "struct":
            self.inner_struct(field, assign, path)
        else:
            self.variable(field, field.type_name, assign, path)

    def inner_struct(self, field: Field, assign: str, path: str) -> None:
        var = self.code.new_name("s")
        if not field.nullable_in(self.version):
            self.new_struct(field.struct, var, f"{path}.")
            self.code.add(assign.format(var))
            return
        present = self.code.new_name("n")
        self.fixed(present, "b", path, 1)
        self.flush()
        # Before a tagged struct stands a varint that is 0 for null, before others a byte below 0.
        with self.code.block(f"if {present} < {0 if field.tag is None else 1}:"):
            self.code.add(assign.format("None"))
        with self.code.block("else:"):
            self.new_struct(field.struct, var, f"{path}.")
            self.flush()
            self.code.add(assign.format(var))

    def variable(self, field: Field, type_name: str, assign: str, path: str) -> None:
        """A string, bytes, records or array; `type_name` is the element's in an array of them."""
        length = self.code.new_name("n")
        classic = is_classic(field, self.schema, self.version)
        self.fixed(length, length_letter(type_name) if classic else "B", path, 0)
        self.flush()
        if not classic:
            self._long(length)
            # KIP-482: compact lengths are length + 1, and 0 is null.
            self.code.add(f"{length} -= 1")
        nullable = field.nullable_in(self.version) and type_name == field.type_name
        with self.code.block(f"if {length} < 0:"):
            self.code.add(assign.format("None") if nullable else "raise null()")
        with self.code.block("else:"):
            if type_name == "array":
                self.array(field, length, assign, path)
            else:
                self.content(type_name, length, assign)

    def content(self, type_name: str, length: str, assign: str) -> None:
        stop = self.code.new_name("stop")
        self.code.add(f"{stop} = pos + {length}")
        self._check_stop(stop, length)
        value = f"buf[pos:{stop}]"
        if type_name == "string":
            # Kafka's generated readers refuse longer strings in flexible versions too.
            with self.code.block(f"if {length} > 32767:"):
                self.code.add('raise CodecFaultError("the string is longer than 32767 bytes")')
            value = f"java_text({value})" if self.as_java else f"{value}.decode()"
        self.code.add(assign.format(value), f"pos = {stop}")

    def array(self, field: Field, count: str, assign: str, path: str) -> None:
        element = field.element
        classic = is_classic(field, self.schema, self.version)
        if isinstance(element, str):
            least = min_element_size(element, classic)
        else:
            least = min_struct_size(field.struct, self.schema, self.version)
        with self.code.block(f"if {count} * {least} > end - pos:"):
            self.code.add(f"raise too_many({count}, end - pos)")
        with self.code.block(f"if {count} > MAX_ARRAY_LENGTH:"):
            self.code.add(f"raise too_long({count})")
        if isinstance(element, str) and element in FORMATS:
            self.fixed_array(element, count, assign)
            return
        items = self.code.new_name("items")
        self.code.add(f"{items} = []")
        if self.in_steps and not isinstance(element, str):
            self.items_in_steps(field, count, items, path)
        else:
            index = self.code.new_name("i")
            with self.code.block(f"for {index} in range({count}):"):
                if self.in_steps:
                    self.pause()
                self.item(field, items, path)
        self.code.add(assign.format(items))

    def item(self, field: Field, items: str, path: str) -> None:
        """Read one element of an array."""
        if isinstance(field.element, str):
            self.variable(field, field.element, f"{items}.append({{}})", f"{path}[]")
            return
        var = self.code.new_name("s")
        self.new_struct(field.struct, var, f"{path}[].")
        self.flush()
        self.code.add(f"{items}.append({var})")

    def items_in_steps(self, field: Field, count: str, items: str, path: str) -> None:
        """Read structs: in C as many as come before the next pause. One that is longer, or unusual, is read
        here."""
        decode, found = items_name(field.struct), self.code.new_name("found")
        with self.code.block(f"while len({items}) < {count}:"):
            self.pause()
            with self.code.block(f"if {decode} is not None:"):
                stop, left = f"min(end, pos + {STEP_BYTES})", f"{count} - len({items})"
                self.code.add(f"{found}, pos = {decode}(buf, pos, {stop}, {left})")
                with self.code.block(f"if {found}:"):
                    self.code.add(f"{items} += {found}", "continue")
            self.item(field, items, path)

    def pause(self) -> None:
        with self.code.block("if pos > due:"):
            self.code.add("yield None", f"due = pos + {STEP_BYTES}")

    def fixed_array(self, element: str, count: str, assign: str) -> None:
        size = SIZES[element]
        if element == "uuid":
            stop = self.code.new_name("stop")
            self.code.add(f"{stop} = pos + {count} * 16")
            value = f"[buf[i : i + 16] for i in range(pos, {stop}, 16)]"
        else:
            value = f'list(unpack_from(f">{{{count}}}{FORMATS[element]}", buf, pos))'
        self.code.add(assign.replace("{}", value), f"pos += {count} * {size}")

    # -- varints and bounds

    def _long(self, name: str) -> None:
        with self.code.block(f"if {name} > 127:"):
            self.code.add(f"{name}, pos = long_varint(buf, {name}, pos)")

    def _varint(self, name: str) -> None:
        self.code.add(f"{name} = buf[pos]", "pos += 1")
        self._long(name)

    def _check_stop(self, stop: str, length: str) -> None:
        with self.code.block(f"if {stop} > end:"):
            self.code.add(f"raise short({length}, end - pos)")


_SIZE_OF = {letter: SIZES[name] for name, letter in FORMATS.items()}
