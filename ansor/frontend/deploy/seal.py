"""A zip file that ends with the SHA-256 of all its other bytes."""

from __future__ import annotations

import hashlib
import mmap
import zipfile
from typing import IO

_LABEL = b"ansor-sha256:"
_DIGITS = 2 * hashlib.sha256().digest_size
# A zip file ends with its comment (APPNOTE 4.3.16).
_PLACEHOLDER = _LABEL + b"0" * _DIGITS


class SealError(Exception):
    """The file has no checksum, or a wrong one."""


def leave_room(archive: zipfile.ZipFile) -> None:
    """Reserves the place of the checksum in an archive that is open for writing."""
    archive.comment = _PLACEHOLDER


def seal(file: IO[bytes]) -> None:
    """Writes the checksum of a closed archive to its place."""
    file.flush()
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data, memoryview(data) as view:
        digest = _digest(view)
    file.seek(-_DIGITS, 2)
    file.write(digest)


def sealed(file: IO[bytes]) -> memoryview:
    """The bytes of a file, mapped for reading, after the comparison with its checksum.

    Raises:
        SealError: the checksum is missing or wrong.
        OSError: the file cannot be read.
    """
    if file.seek(0, 2) < len(_PLACEHOLDER):
        raise SealError("it is too short")
    data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    if data[-len(_PLACEHOLDER) : -_DIGITS] != _LABEL:
        raise SealError("it has no checksum at its end")
    if data[-_DIGITS:] != _digest(data):
        raise SealError("its checksum (SHA-256) is not that of its bytes")
    return data


def _digest(data: memoryview) -> bytes:
    """The digits of the SHA-256 of all bytes before them."""
    return hashlib.sha256(data[:-_DIGITS]).hexdigest().encode()
