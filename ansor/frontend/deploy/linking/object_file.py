"""Reads a relocatable object file (ELF, 64 bits, x86-64)."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

X86_64 = 62
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_RELOCATABLE = 1
_SYMBOLS, _RELOCATIONS, _NO_BITS, _UNWINDING = 2, 4, 8, 0x70000001
_WRITE, _ALLOC, _CODE, _THREAD_LOCAL = 1, 2, 4, 0x400
_LOCAL, _WEAK = 0, 2  # binding
_ABSOLUTE, _COMMON = 0xFFF1, 0xFFF2  # sections of symbols that have none


class LinkError(Exception):
    """An object file holds what cannot be linked here."""


@dataclass(frozen=True)
class Relocation:
    """A place in a section that depends on where a symbol lies."""

    offset: int
    kind: int
    symbol: int
    addend: int


@dataclass(frozen=True)
class Section:
    """A section that is loaded.

    Attributes:
        data: its bytes, zeros where the file has none.
        alignment: bytes.
    """

    data: bytes
    alignment: int
    is_code: bool
    is_writable: bool
    relocations: tuple[Relocation, ...] = ()


@dataclass(frozen=True)
class Symbol:
    """A name, or a nameless place; `section` is None for what other libraries define."""

    name: str
    section: int | None
    offset: int
    size: int
    kind: int
    is_local: bool
    is_weak: bool


@dataclass(frozen=True)
class ObjectFile:
    """What is to be linked: sections by their number in the file."""

    sections: dict[int, Section]
    symbols: tuple[Symbol, ...]


@dataclass(frozen=True)
class _Header:
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int


def read_object(data: bytes) -> ObjectFile:
    """The loaded sections of an object file, without tables for unwinding.

    Raises:
        LinkError: not an object file for x86-64, or something in it that our code never has.
    """
    magic, kind, machine, *_ = fields = _HEADER.unpack_from(data)
    if not magic.startswith(b"\x7fELF\x02\x01") or kind != _RELOCATABLE or machine != X86_64:
        raise LinkError("not an object file for x86-64")
    first, count = fields[6], fields[12]
    headers = [_section_header(data, first + i * _SECTION.size) for i in range(count)]
    sections = {i: _section(data, h) for i, h in enumerate(headers) if _is_loaded(h)}
    symbols: tuple[Symbol, ...] = ()
    for header in headers:
        if header.kind == _SYMBOLS:
            symbols = _symbols(data, header, headers[header.link])
        if header.kind == _RELOCATIONS and header.info in sections:
            own = tuple(_relocations(data, header))
            sections[header.info] = replace(sections[header.info], relocations=own)
    return ObjectFile(sections, symbols)


def _section_header(data: bytes, at: int) -> _Header:
    _, kind, flags, _, offset, size, link, info, alignment, _ = _SECTION.unpack_from(data, at)
    return _Header(kind, flags, offset, size, link, info, alignment)


def _is_loaded(header: _Header) -> bool:
    if header.flags & _THREAD_LOCAL:
        raise LinkError("variables of threads")
    return bool(header.flags & _ALLOC and header.size and header.kind != _UNWINDING)


def _section(data: bytes, header: _Header) -> Section:
    size, offset = header.size, header.offset
    content = bytes(size) if header.kind == _NO_BITS else data[offset : offset + size]
    is_code, is_writable = bool(header.flags & _CODE), bool(header.flags & _WRITE)
    return Section(content, max(1, header.alignment), is_code, is_writable)


def _symbols(data: bytes, header: _Header, names: _Header) -> tuple[Symbol, ...]:
    part = data[header.offset : header.offset + header.size]
    return tuple(_symbol(fields, data, names.offset) for fields in _SYMBOL.iter_unpack(part))


def _symbol(fields: tuple[int, ...], data: bytes, names: int) -> Symbol:
    name, info, _, section, offset, size = fields
    begin = names + name
    text = data[begin : data.index(b"\0", begin)].decode()
    if section == _COMMON:
        raise LinkError(f"the common symbol {text}")
    binding, kind = info >> 4, info & 0xF
    place = section if 0 < section < _ABSOLUTE else None
    return Symbol(text, place, offset, size, kind, binding == _LOCAL, binding == _WEAK)


def _relocations(data: bytes, header: _Header) -> list[Relocation]:
    part = data[header.offset : header.offset + header.size]
    return [
        Relocation(offset, info & 0xFFFFFFFF, info >> 32, addend)
        for offset, info, addend in _RELOCATION.iter_unpack(part)
    ]
