"""Arrays in a member of a zip file, in their layout in memory: a reader maps the file."""

from __future__ import annotations

import math
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from ansor.frontend.deploy.detached_weights import Array

_HEADER = struct.Struct("<4s22xHH")  # of a member: signature, lengths of its name and extra field
_SIGNATURE = b"PK\3\4"


def write_arrays(archive: zipfile.ZipFile, member: str, arrays: Mapping[str, Array]) -> None:
    """Writes the arrays one after the other, uncompressed."""
    with archive.open(member, "w", force_zip64=True) as file:
        for array in arrays.values():
            file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def index_of(arrays: Mapping[str, Array]) -> list[list[Any]]:
    """Name, shape and dtype of each array, as JSON has them."""
    return [[name, list(array.shape), str(array.dtype)] for name, array in arrays.items()]


def read_arrays(
    data: memoryview, info: zipfile.ZipInfo, index: Sequence[Sequence[Any]]
) -> dict[str, Array]:
    """The arrays of a member, read-only, in pages of the file that are read when they are touched.

    Args:
        data: the file, whose checksum is right.
        info: the member.
        index: of the arrays; see `index_of`.

    Raises:
        zipfile.BadZipFile: the member has another size than the arrays.
    """
    return dict(_cut(_member(data, info), index))


def _cut(data: memoryview, index: Sequence[Sequence[Any]]) -> Iterator[tuple[str, Array]]:
    first = 0
    for name, shape, dtype_name in index:
        dtype = _dtype(dtype_name)
        size = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or first + size > len(data):
            raise zipfile.BadZipFile(f"{name} is larger than what was written")
        part = np.frombuffer(data[first : first + size], np.uint8)
        yield name, part.view(dtype).reshape(shape)
        first += size
    if first != len(data):
        raise zipfile.BadZipFile("arrays of another size than was written")


def _dtype(name: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def _member(data: memoryview, info: zipfile.ZipInfo) -> memoryview:
    """The bytes of an uncompressed member."""
    signature, name, extra = _HEADER.unpack_from(data, info.header_offset)
    first = info.header_offset + _HEADER.size + name + extra
    found = data[first : first + info.file_size]
    if signature != _SIGNATURE or not len(found) == info.file_size == info.compress_size:
        raise zipfile.BadZipFile(f"{info.filename} is not what was written")
    return found
