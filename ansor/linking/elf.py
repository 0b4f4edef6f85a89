"""Numbers and records of ELF files: 64 bits, little-endian, x86-64 and AArch64.

A comment has the name in the specification. Sources: "System V Application Binary Interface",
chapters "Object Files" and "Program Loading and Dynamic Linking"; its "AMD64 Architecture Processor
Supplement", chapter "Object Files"; "ELF for the Arm 64-bit Architecture"; for the stack's segment,
"Linux Standard Base Core".
"""

from __future__ import annotations

import struct
from enum import IntEnum, IntFlag

MAGIC = b"\x7fELF\x02\x01"  # e_ident: ELFCLASS64, ELFDATA2LSB

FILE_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")  # Elf64_Ehdr
PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")  # Elf64_Phdr
SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")  # Elf64_Shdr
SYMBOL = struct.Struct("<IBBHQQ")  # Elf64_Sym
RELOCATION = struct.Struct("<QQq")  # Elf64_Rela
DYNAMIC_ENTRY = struct.Struct("<qQ")  # Elf64_Dyn


class Version(IntEnum):
    """Version of the file format (e_version)."""

    CURRENT = 1  # EV_CURRENT


class FileType(IntEnum):
    """Kind of file (e_type)."""

    RELOCATABLE = 1  # ET_REL
    SHARED = 3  # ET_DYN


class Architecture(IntEnum):
    """Processor (e_machine)."""

    X86_64 = 62  # EM_X86_64
    AARCH64 = 183  # EM_AARCH64


class SectionType(IntEnum):
    """Content of a section (sh_type)."""

    SYMBOLS = 2  # SHT_SYMTAB
    RELOCATIONS = 4  # SHT_RELA
    NO_BITS = 8  # SHT_NOBITS: zeros, of which the file has none
    UNWINDING = 0x70000001  # SHT_X86_64_UNWIND


class SectionFlag(IntFlag):
    """Properties of a section (sh_flags)."""

    WRITE = 0x1  # SHF_WRITE
    ALLOCATE = 0x2  # SHF_ALLOC
    EXECUTE = 0x4  # SHF_EXECINSTR
    THREAD_LOCAL = 0x400  # SHF_TLS


class SectionIndex(IntEnum):
    """Section of a symbol that lies in none (st_shndx)."""

    UNDEFINED = 0  # SHN_UNDEF
    ABSOLUTE = 0xFFF1  # SHN_ABS
    COMMON = 0xFFF2  # SHN_COMMON


class Binding(IntEnum):
    """Visibility of a symbol to other files (the upper half of st_info)."""

    LOCAL = 0  # STB_LOCAL
    GLOBAL = 1  # STB_GLOBAL
    WEAK = 2  # STB_WEAK


class SegmentType(IntEnum):
    """Purpose of a segment (p_type)."""

    LOAD = 1  # PT_LOAD
    DYNAMIC = 2  # PT_DYNAMIC
    STACK = 0x6474E551  # PT_GNU_STACK


class SegmentFlag(IntFlag):
    """Permitted accesses to a segment (p_flags)."""

    EXECUTE = 0x1  # PF_X
    WRITE = 0x2  # PF_W
    READ = 0x4  # PF_R


class DynamicTag(IntEnum):
    """Meaning of an entry of the dynamic section (d_tag)."""

    END = 0  # DT_NULL
    NEEDED = 1  # DT_NEEDED: name of a library
    HASH = 4  # DT_HASH
    NAMES = 5  # DT_STRTAB
    SYMBOLS = 6  # DT_SYMTAB
    RELOCATIONS = 7  # DT_RELA
    RELOCATIONS_BYTES = 8  # DT_RELASZ
    RELOCATION_BYTES = 9  # DT_RELAENT: of one entry
    NAMES_BYTES = 10  # DT_STRSZ
    SYMBOL_BYTES = 11  # DT_SYMENT: of one entry
    FLAGS = 30  # DT_FLAGS


class DynamicFlag(IntFlag):
    """Wishes to the loader (the value of DT_FLAGS)."""

    BIND_NOW = 0x8  # DF_BIND_NOW: it looks up all symbols before any code runs


class RelocationType(IntEnum):
    """Calculation of a relocation of x86-64 (lower half of r_info), of 32 bits unless the comment
    says 64.

    The *table* is the global offset table: addresses that the loader fills in.
    """

    ADDRESS = 1  # R_X86_64_64: a symbol's address, 64 bits
    RELATIVE = 2  # R_X86_64_PC32: a symbol, relative to the place
    CALL = 4  # R_X86_64_PLT32: a function or a stub for it, relative to the place
    TABLE_ENTRY = 6  # R_X86_64_GLOB_DAT: a symbol's address in the table, 64 bits; of the loader
    BASE = 8  # R_X86_64_RELATIVE: an address in the library itself, 64 bits; of the loader
    IN_TABLE = 9  # R_X86_64_GOTPCREL: an entry of the table, relative to the place
    RELATIVE_64 = 24  # R_X86_64_PC64: a symbol, relative to the place, 64 bits
    IN_TABLE_RELAXABLE = 41  # R_X86_64_GOTPCRELX: as IN_TABLE; the linker may change the code
    IN_TABLE_RELAXABLE_REX = 42  # R_X86_64_REX_GOTPCRELX: the same for instructions with a prefix


class ArmRelocation(IntEnum):
    """Relocations of AArch64; comments give the number of bits in instructions."""

    ADDRESS = 257  # R_AARCH64_ABS64: a symbol's address, 64 bits
    RELATIVE_64 = 260  # R_AARCH64_PREL64: a symbol, relative to the place, 64 bits
    RELATIVE = 261  # R_AARCH64_PREL32: the same in 32 bits
    PAGE = 275  # R_AARCH64_ADR_PREL_PG_HI21: distance of pages of 4 KiB
    IN_PAGE_ADD = 277  # R_AARCH64_ADD_ABS_LO12_NC: place in a page
    IN_PAGE_8 = 278  # R_AARCH64_LDST8_ABS_LO12_NC: the same, of an access to 8 bits
    JUMP = 282  # R_AARCH64_JUMP26
    CALL = 283  # R_AARCH64_CALL26
    IN_PAGE_16 = 284  # R_AARCH64_LDST16_ABS_LO12_NC
    IN_PAGE_32 = 285  # R_AARCH64_LDST32_ABS_LO12_NC
    IN_PAGE_64 = 286  # R_AARCH64_LDST64_ABS_LO12_NC
    IN_PAGE_128 = 299  # R_AARCH64_LDST128_ABS_LO12_NC
    TABLE_PAGE = 311  # R_AARCH64_ADR_GOT_PAGE: distance of the page of an entry of the table
    IN_TABLE_PAGE = 312  # R_AARCH64_LD64_GOT_LO12_NC: place of the entry in its page
    TABLE_ENTRY = 1025  # R_AARCH64_GLOB_DAT: of the loader
    BASE = 1027  # R_AARCH64_RELATIVE: of the loader
