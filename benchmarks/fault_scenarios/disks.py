"""File systems that are small or read-only (Linux, as root)."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FILLER = "filler"
_BLOCK_BYTES = 4096


class CannotMountError(Exception):
    """This machine does not allow a mount; the text is the system's."""


@contextmanager
def small_disk(size_bytes: int) -> Iterator[Path]:
    """The folder of a file system in memory.

    Raises:
        CannotMountError: it cannot be mounted.
    """
    with tempfile.TemporaryDirectory() as folder:
        _mount("-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", folder)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Allows no write to a small disk meanwhile, not even to root."""
    _mount("-o", "remount,ro", str(folder))
    try:
        yield
    finally:
        _mount("-o", "remount,rw", str(folder))


def fill(folder: Path) -> None:
    """Writes to a small disk until it is full."""
    with (folder / _FILLER).open("ab", buffering=0) as stream:
        try:
            while True:
                stream.write(bytes(_BLOCK_BYTES))
        except OSError:  # no space is left
            return


def empty(folder: Path) -> None:
    """Undoes `fill`."""
    (folder / _FILLER).unlink()


def _mount(*arguments: str) -> None:
    try:
        subprocess.run(["mount", *arguments], check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise CannotMountError(str(error)) from error
    except subprocess.CalledProcessError as error:
        raise CannotMountError(error.stderr.strip()) from error
