"""Functions that are one instruction on tiles each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ansor.lowering.tiles.registers import PREFIX, TileFunction, TileRegisters
from ansor.program.tile_instructions import TILE_FEATURE, TILES, TileInstruction


def is_native(instruction: TileInstruction, has: Callable[[str], bool]) -> bool:
    """Whether a target has an instruction; `has` tests its features by LLVM's names."""
    return has(TILE_FEATURE) and has(instruction.feature)


@dataclass(frozen=True)
class NativeTiles:
    """Functions for a processor that has the instruction, see `TileSet`.

    Attributes:
        instruction: name of the one that multiplies.
        registers: the contents of the tiles.
    """

    instruction: str
    registers: TileRegisters

    def zero(self, tile: int) -> TileFunction:
        """See `TileSet`."""
        return _instruction(f"zero_{tile}", "", "tilezero", [f"i8 {tile}"])

    def load(self, tile: int) -> TileFunction:
        """See `TileSet`."""
        return _move(f"load_{tile}", "tileloadd64", tile)

    def store(self, tile: int) -> TileFunction:
        """See `TileSet`."""
        return _move(f"store_{tile}", "tilestored64", tile)

    def multiply(self, result: int, left: int, right: int) -> TileFunction:
        """See `TileSet`."""
        tiles = (result, left, right)
        name = "_".join([self.instruction, *map(str, tiles)])
        return _instruction(name, "", self.instruction, [f"i8 {tile}" for tile in tiles])

    def begin(self) -> TileFunction:
        """Configures the tiles of a thread; before that the process gets the permission."""
        content = self._configuration().hex()
        name, table = f"{PREFIX}s_begin_{content.rstrip('0')}", f"@{PREFIX}s_{content.rstrip('0')}"
        text = "".join(f"\\{byte:02X}" for byte in self._configuration())
        lines = [
            f'{table} = private constant [64 x i8] c"{text}", align 64',
            f"define linkonce_odr void @{name}() alwaysinline nounwind {{",
            f"  call void @{PREFIX}s_permit()",
            f"  call void @llvm.x86.ldtilecfg(ptr {table})",
            "  ret void",
            "}",
        ]
        return TileFunction(name, "\n".join(lines), (_PERMIT, _LOAD_CONFIGURATION))

    @staticmethod
    def end() -> TileFunction:
        """Frees the tiles of a thread. The system then need not save them."""
        return _instruction("release", "", "tilerelease", [])

    def _configuration(self) -> bytes:
        """The palette, the bytes of each tile's rows, and the rows (Intel's manual of instructions,
        volume 2, LDTILECFG)."""
        sizes = [self.registers.size(tile) for tile in range(TILES)]
        columns = b"".join(size.to_bytes(2, "little") for _, size in sizes)
        rows = bytes(rows for rows, _ in sizes)
        return ((b"\x01".ljust(16, b"\0") + columns).ljust(48, b"\0") + rows).ljust(64, b"\0")


_LOAD_CONFIGURATION = "declare void @llvm.x86.ldtilecfg(ptr)"

# Linux, x86-64 (asm/prctl.h): system call 158, arch_prctl, asks with 0x1023 for the state of tiles,
# which has number 18. A process asks once. If the system refuses, the first tile ends the process.
_PERMIT = f"""
@{PREFIX}s_permitted = internal global i32 0, align 4
define linkonce_odr void @{PREFIX}s_permit() noinline nounwind {{
entry:
  %before = load atomic i32, ptr @{PREFIX}s_permitted monotonic, align 4
  %is_first = icmp eq i32 %before, 0
  br i1 %is_first, label %ask, label %done
ask:
  %status = call i64 asm sideeffect "syscall",
    "={{rax}},{{rax}},{{rdi}},{{rsi}},~{{rcx}},~{{r11}},~{{memory}}"(i64 158, i64 4131, i64 18)
  store atomic i32 1, ptr @{PREFIX}s_permitted monotonic, align 4
  br label %done
done:
  ret void
}}"""


def _move(name: str, intrinsic: str, tile: int) -> TileFunction:
    given = [f"i8 {tile}", "ptr %memory", "i64 %stride"]
    return _instruction(name, "ptr %memory, i64 %stride", intrinsic, given)


def _instruction(name: str, parameters: str, intrinsic: str, given: list[str]) -> TileFunction:
    """A function that is one intrinsic."""
    symbol, called = f"{PREFIX}_{name}", f"@llvm.x86.{intrinsic}"
    types = ", ".join(argument.partition(" ")[0] for argument in given)
    lines = [
        f"define linkonce_odr void @{symbol}({parameters}) alwaysinline nounwind {{",
        f"  call void {called}({', '.join(given)})",
        "  ret void",
        "}",
    ]
    return TileFunction(symbol, "\n".join(lines), (f"declare void {called}({types})",))
