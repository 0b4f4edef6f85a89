"""Reads a relocatable object file (ELF, 64 bits, x86-64 or AArch64)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ansor.linking.elf import (
    FILE_HEADER,
    MAGIC,
    RELOCATION,
    SECTION_HEADER,
    SYMBOL,
    Architecture,
    Binding,
    FileType,
    SectionFlag,
    SectionIndex,
    SectionType,
)


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
    """The parts to be linked: sections by their number in the file."""

    architecture: Architecture
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
        LinkError: not an object file for x86-64 or AArch64, or something in it that our code never
            has.
    """
    magic, kind, machine, *_ = fields = FILE_HEADER.unpack_from(data)
    is_object = magic.startswith(MAGIC) and kind == FileType.RELOCATABLE
    if not is_object or machine not in set(Architecture):
        raise LinkError("not an object file for x86-64 or AArch64")
    first, count = fields[6], fields[12]
    headers = [_section_header(data, first + i * SECTION_HEADER.size) for i in range(count)]
    sections = {i: _section(data, h) for i, h in enumerate(headers) if _is_loaded(h)}
    symbols: tuple[Symbol, ...] = ()
    for header in headers:
        if header.kind == SectionType.SYMBOLS:
            symbols = _symbols(data, header, headers[header.link])
        if header.kind == SectionType.RELOCATIONS and header.info in sections:
            own = tuple(_relocations(data, header))
            sections[header.info] = replace(sections[header.info], relocations=own)
    return ObjectFile(Architecture(machine), sections, symbols)


def _section_header(data: bytes, at: int) -> _Header:
    _, kind, flags, _, offset, size, link, info, alignment, _ = SECTION_HEADER.unpack_from(data, at)
    return _Header(kind, flags, offset, size, link, info, alignment)


def _is_loaded(header: _Header) -> bool:
    if header.flags & SectionFlag.THREAD_LOCAL:
        raise LinkError("variables of threads")
    if header.kind == SectionType.UNWINDING:
        return False
    return bool(header.flags & SectionFlag.ALLOCATE and header.size)


def _section(data: bytes, header: _Header) -> Section:
    size, offset = header.size, header.offset
    content = bytes(size) if header.kind == SectionType.NO_BITS else data[offset : offset + size]
    is_code = bool(header.flags & SectionFlag.EXECUTE)
    is_writable = bool(header.flags & SectionFlag.WRITE)
    return Section(content, max(1, header.alignment), is_code, is_writable)


def _symbols(data: bytes, header: _Header, names: _Header) -> tuple[Symbol, ...]:
    part = data[header.offset : header.offset + header.size]
    return tuple(_symbol(fields, data, names.offset) for fields in SYMBOL.iter_unpack(part))


def _symbol(fields: tuple[int, ...], data: bytes, names: int) -> Symbol:
    name, info, _, section, offset, size = fields
    begin = names + name
    text = data[begin : data.index(b"\0", begin)].decode()
    if section == SectionIndex.COMMON:
        raise LinkError(f"the common symbol {text}")
    binding, kind = info >> 4, info & 0xF
    place = section if SectionIndex.UNDEFINED < section < SectionIndex.ABSOLUTE else None
    is_local, is_weak = binding == Binding.LOCAL, binding == Binding.WEAK
    return Symbol(text, place, offset, size, kind, is_local, is_weak)


def _relocations(data: bytes, header: _Header) -> list[Relocation]:
    part = data[header.offset : header.offset + header.size]
    return [
        Relocation(offset, info & 0xFFFFFFFF, info >> 32, addend)
        for offset, info, addend in RELOCATION.iter_unpack(part)
    ]
