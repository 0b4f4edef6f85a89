"""Links one object file to a shared library."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ansor.linking.library_file import (
    READ,
    READ_RUN,
    READ_WRITE,
    DynamicSymbol,
    Segment,
    dynamic_bytes,
    hash_bytes,
    headers_bytes,
    headers_size,
    names_bytes,
    relocations_bytes,
    symbols_bytes,
)
from ansor.linking.object_file import (
    LinkError,
    ObjectFile,
    Relocation,
    Section,
    Symbol,
    read_object,
)
from ansor.linking.processors import PROCESSORS, RangeError

_NEEDED = ("libm.so.6", "libc.so.6")


def link(data: bytes) -> bytes:
    """A shared library of an object file's code: it finds its own symbols in itself.

    Raises:
        LinkError: the file holds what our code never has.
    """
    return _Linker(read_object(data)).library()


class _Linker:
    """Lays out one library; addresses are places in the file.

    Attributes:
        image: the file.
        addresses: of sections, by number.
        table: places in the table of addresses, by number of the symbol.
        stubs: places of jumps to functions of other libraries, by number of the symbol.
        asked: number among the library's symbols of those that others define.
        fixed: relocations that are left to the loader.
    """

    def __init__(self, source: ObjectFile) -> None:
        self.source = source
        self.processor = PROCESSORS[source.architecture]
        self.image = bytearray(headers_size(segments=3))  # read, run, written
        self.addresses: dict[int, int] = {}
        self.table: dict[int, int] = {}
        self.stubs: dict[int, int] = {}
        self.asked: dict[int, int] = {}
        self.fixed: list[tuple[int, int, int, int]] = []

    def library(self) -> bytes:
        """The library's file."""
        self._collect()
        sections = self.source.sections
        self._place(lambda s: not s.is_code and not s.is_writable)
        first_code = self._align(self.processor.page_bytes)
        self._place(lambda s: s.is_code)
        self._reserve(self.stubs, self.processor.jump_bytes)
        end_code, first_data = len(self.image), self._align(self.processor.page_bytes)
        self._reserve(self.table, 8)
        self._place(lambda s: not s.is_code and s.is_writable)
        for number, section in sections.items():
            for relocation in section.relocations:
                self._relocate(self.addresses[number] + relocation.offset, relocation)
        self._fill_table()
        dynamic = self._append_tables()
        segments = [
            Segment(0, first_code, READ),
            Segment(first_code, end_code, READ_RUN),
            Segment(first_data, len(self.image), READ_WRITE),
        ]
        processor = self.processor
        headers = headers_bytes(segments, dynamic, processor.architecture, processor.page_bytes)
        self.image[: len(headers)] = headers
        return bytes(self.image)

    def _collect(self) -> None:
        """Finds out what needs an entry in the table, a stub, or another library."""
        for section in self.source.sections.values():
            for relocation in section.relocations:
                number = relocation.symbol
                is_call = relocation.kind in self.processor.calls
                is_far = self._section_of(number) is None
                if is_far:
                    self.asked.setdefault(number, len(self.asked) + 1)
                if is_call and is_far:
                    self.stubs[number] = 0
                if relocation.kind in self.processor.in_table or number in self.stubs:
                    self.table[number] = 0

    def _section_of(self, symbol: int) -> int | None:
        """Section of a symbol; None if another library defines it.

        Raises:
            LinkError: it is in a section that is not loaded.
        """
        section = self.source.symbols[symbol].section
        if section is not None and section not in self.source.sections:
            raise LinkError(f"the symbol {self.source.symbols[symbol].name!r} is not loaded")
        return section

    def _align(self, alignment: int) -> int:
        self.image.extend(bytes(-len(self.image) % alignment))
        return len(self.image)

    def _append(self, data: bytes, alignment: int = 8) -> int:
        """The address of the added data."""
        place = self._align(alignment)
        self.image += data
        return place

    def _place(self, chosen: Callable[[Section], bool]) -> None:
        for number, section in self.source.sections.items():
            if chosen(section):
                self.addresses[number] = self._append(section.data, section.alignment)

    def _reserve(self, places: dict[int, int], size: int) -> None:
        for number in places:
            places[number] = self._append(bytes(size))

    def _address(self, symbol: int) -> int:
        section = self._section_of(symbol)
        if section is None:
            return self.stubs[symbol]
        return self.addresses[section] + self.source.symbols[symbol].offset

    def _relocate(self, place: int, relocation: Relocation) -> None:
        """Raises LinkError for a kind that our code never has."""
        kind, number, addend = relocation.kind, relocation.symbol, relocation.addend
        processor = self.processor
        if kind == processor.address and number in self.asked:
            self.fixed.append((place, processor.address, self.asked[number], addend))
        elif kind == processor.address:
            self.fixed.append((place, processor.base, 0, self._address(number) + addend))
        elif kind in processor.writes:
            self._write(place, kind, self._value(kind, number) + addend)
        else:
            raise LinkError(f"a relocation of kind {kind}")

    def _value(self, kind: int, number: int) -> int:
        """The address that a relocation names: of an entry of the table, or of the symbol."""
        if kind in self.processor.in_table:
            return self.table[number]
        if number in self.asked and kind not in self.processor.calls:
            raise LinkError(f"a relocation of kind {kind} of another library's symbol")
        return self._address(number)

    def _write(self, place: int, kind: int, value: int) -> None:
        try:
            self.processor.writes[kind](self.image, place, value)
        except RangeError as error:
            raise LinkError(f"a relocation of kind {kind}: {error}") from error

    def _fill_table(self) -> None:
        processor = self.processor
        for number, place in self.table.items():
            if number in self.asked:
                self.fixed.append((place, processor.table_entry, self.asked[number], 0))
            else:
                self.fixed.append((place, processor.base, 0, self._address(number)))
        for number, place in self.stubs.items():
            jump = processor.jump(place, self.table[number])
            self.image[place : place + len(jump)] = jump

    def _append_tables(self) -> Segment:
        """Adds the sections for the loader; returns the place of the dynamic section."""
        symbols = [*map(self._asked_symbol, self.asked), *self._offered()]
        names, places = names_bytes([*_NEEDED, *(symbol.name for symbol in symbols)])
        fixed = relocations_bytes(self.fixed)
        count = len(_NEEDED)
        tables = [
            self._append(hash_bytes(symbols)),
            self._append(names),
            self._append(symbols_bytes(symbols, places[count:])),
            self._append(fixed),
        ]
        dynamic = dynamic_bytes(places[:count], tables, [len(names), len(fixed)])
        begin = self._append(dynamic)
        return Segment(begin, len(self.image), READ_WRITE)

    def _asked_symbol(self, number: int) -> DynamicSymbol:
        symbol = self.source.symbols[number]
        return DynamicSymbol(symbol.name, is_weak=symbol.is_weak)

    def _offered(self) -> Iterable[DynamicSymbol]:
        for number, symbol in enumerate(self.source.symbols):
            if _is_offered(symbol) and symbol.section in self.source.sections:
                address = self._address(number)
                yield DynamicSymbol(symbol.name, address, symbol.size, symbol.kind, symbol.is_weak)


def _is_offered(symbol: Symbol) -> bool:
    return bool(symbol.name) and not symbol.is_local
