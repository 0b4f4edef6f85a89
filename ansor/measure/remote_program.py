"""Objects that a device behind TVM's RPC exchanges with its worker processes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Server:
    """A server that the tracker has lent, and the key that opens one session with it."""

    host: str
    port: int
    match_key: str

    @property
    def address(self) -> str:
        """The address in messages."""
        return f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Parameter:
    """Static shape and dtype of a parameter."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Library:
    """A built program as a file.

    Attributes:
        code: the file.
        suffix: "so" for a shared library; "o" for an object file, which the server links.
        params: of its function, `ansor.targets.build.ENTRY`.
    """

    code: bytes
    suffix: str
    params: tuple[Parameter, ...]
