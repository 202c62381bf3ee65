"""Generates the encoder of one version of a message: straight-line source, no loops over a schema.

Wrong values are not looked for field by field: struct, `encode` and `len` refuse them, and only
then `explain` names the field.
"""

from __future__ import annotations

from quorate.wire.schema import FORMATS, Field, Message, Struct
from quorate.wire.source import Lines, differs, is_classic, length_letter


def encoder_source(cls: type[Message], version: int, name: str) -> tuple[list[str], set[str]]:
    """Lines that define function `name(m, out) -> None`, and the layouts they use."""
    encoder = _Encoder(cls, version)
    encoder.struct(cls, "m")
    encoder.flush()
    lines = [
        f"def {name}(m: {cls.__name__}, out: bytearray) -> None:",
        "    try:",
        *(encoder.code.lines or ["        pass"]),
        "    except ENCODE_FAULTS as error:",
        f"        raise explain(m, {version}, error) from error",
    ]
    return lines, encoder.code.layouts


class _Encoder:
    def __init__(self, cls: type[Message], version: int) -> None:
        self.schema = cls.schema
        self.version = version
        self.flexible = cls.schema.is_flexible(version)
        self.code = Lines(indent=2)
        self.out = "out"
        self._run: list[tuple[str, str]] = []

    # -- fixed sizes

    def fixed(self, value: str, letter: str) -> None:
        """Write a value of fixed size, together with its neighbours."""
        if letter == "16s":
            with self.code.block(f"if len({value}) != 16:"):
                self.code.add('raise CodecFaultError("a uuid has 16 bytes")')
        self._run.append((value, letter))

    def flush(self) -> None:
        run, self._run = self._run, []
        self._pack(run, "")

    def _pack(self, run: list[tuple[str, str]], tail: str) -> None:
        if run:
            pack = self.code.layout("pack", "".join(letter for _, letter in run) + tail)
            self.code.add(f"{self.out} += {pack}({', '.join(value for value, _ in run)})")

    # -- structs

    def struct(self, cls: type[Struct], var: str) -> None:
        schema = cls.schema
        for field in schema.absent(self.version):
            if not field.ignorable:
                with self.code.block(f"if {differs(field, f'{var}.{field.name}')}:"):
                    self.code.add(
                        'raise CodecFaultError("a field that this version does not have")'
                    )
        for field in schema.untagged(self.version):
            self.field(field, f"{var}.{field.name}")
        if self.flexible:
            self.tags(schema.tagged(self.version), var)
        else:
            with self.code.block(f"if {var}.unknown_tags:"):
                self.code.add('raise CodecFaultError("this version has no tagged fields")')

    def tags(self, fields: list[Field], var: str) -> None:
        if not fields:
            run, self._run = self._run, []
            with self.code.block(f"if {var}.unknown_tags:"):
                self._pack(run, "")
                self.code.add(f"put_tags({self.out}, [], {var}.unknown_tags)")
            with self.code.block("else:"):
                self._pack(run, "x")
                if not run:
                    self.code.add(f"{self.out}.append(0)")
            return
        self.flush()
        tags = self.code.new_name("tags")
        self.code.add(f"{tags} = []")
        for field in fields:
            value = f"{var}.{field.name}"
            with self.code.block(f"if {differs(field, value)}:"):
                outer, self.out = self.out, self.code.new_name("out")
                self.code.add(f"{self.out} = bytearray()")
                self.field(field, value)
                self.flush()
                self.code.add(f"{tags}.append(({field.tag}, {self.out}))")
                self.out = outer
        with self.code.block(f"if {tags} or {var}.unknown_tags:"):
            self.code.add(f"put_tags({self.out}, {tags}, {var}.unknown_tags)")
        with self.code.block("else:"):
            self.code.add(f"{self.out}.append(0)")

    # -- fields

    def field(self, field: Field, value: str) -> None:
        if field.type_name in FORMATS:
            self.fixed(value, FORMATS[field.type_name])
        elif field.type_name == "struct":
            self.inner_struct(field, value)
        else:
            self.variable(field, field.type_name, value)

    def inner_struct(self, field: Field, value: str) -> None:
        var = self.code.new_name("s")
        self.code.add(f"{var} = {value}")
        if not field.nullable_in(self.version):
            self.struct(field.struct, var)
            return
        self.flush()
        with self.code.block(f"if {var} is None:"):
            self.code.add(f"{self.out}.append({255 if field.tag is None else 0})")
        with self.code.block("else:"):
            self.code.add(f"{self.out}.append(1)")
            self.struct(field.struct, var)
            self.flush()

    def variable(self, field: Field, type_name: str, value: str) -> None:
        """A string, bytes, records or array; `type_name` is the element's in an array of them."""
        if not (field.nullable_in(self.version) and type_name == field.type_name):
            self.content(field, type_name, value)
            return
        self.flush()
        classic = is_classic(field, self.schema, self.version)
        null = '"' + r"\xff" * (2 if type_name == "string" else 4) + '"' if classic else ""
        with self.code.block(f"if {value} is None:"):
            self.code.add(f"{self.out} += b{null}" if classic else f"{self.out}.append(0)")
        with self.code.block("else:"):
            self.content(field, type_name, value)
            self.flush()

    def content(self, field: Field, type_name: str, value: str) -> None:
        content = self.code.new_name("v")
        self.code.add(f"{content} = {value}{'.encode()' if type_name == 'string' else ''}")
        if is_classic(field, self.schema, self.version):
            self.fixed(f"len({content})", length_letter(type_name))
            self.flush()
        else:
            self.flush()
            self.compact_length(type_name, content)
        if type_name == "array":
            self.array(field, content)
        else:
            self.code.add(f"{self.out} += {content}")

    def compact_length(self, type_name: str, content: str) -> None:
        length = self.code.new_name("n")
        self.code.add(f"{length} = len({content}) + 1")
        with self.code.block(f"if {length} > 127:"):
            if type_name == "string":
                with self.code.block(f"if {length} > 32768:"):
                    self.code.add('raise CodecFaultError("a string has at most 32767 bytes")')
            self.code.add(f"put_varint({self.out}, {length})")
        with self.code.block("else:"):
            self.code.add(f"{self.out}.append({length})")

    def array(self, field: Field, content: str) -> None:
        element = field.element
        if isinstance(element, str) and element in FORMATS and element != "uuid":
            letter = FORMATS[element]
            self.code.add(f'{self.out} += pack(f">{{len({content})}}{letter}", *{content})')
            return
        item = self.code.new_name("e")
        with self.code.block(f"for {item} in {content}:"):
            if not isinstance(element, str):
                self.struct(field.struct, item)
            elif element == "uuid":
                self.fixed(item, "16s")
            else:
                self.variable(field, element, item)
            self.flush()
            self.code.add("pass")
