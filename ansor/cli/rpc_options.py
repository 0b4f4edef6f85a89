"""Options for devices behind TVM's RPC."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from ansor.config import MeasureConfig
from ansor.errors import ArgumentError

if TYPE_CHECKING:
    from ansor.measure.rpc_device import RpcDevice

Command = TypeVar("Command", bound=Callable[..., object])

_MOST_PORT = 65535
_RPC = click.option("--rpc", metavar="HOST:PORT", help="Tracker of TVM's RPC, see docs/farm.md.")
_KEY = click.option("--key", help="Of the servers that run the programs; with --rpc.")
_LINKER = click.option(
    "--linker", metavar="COMMAND", help="Links for the servers, e.g. riscv64-linux-gnu-g++."
)


def rpc_options(command: Command) -> Command:
    """Gives a command the options `--rpc`, `--key` and `--linker`."""
    return _RPC(_KEY(_LINKER(command)))


def rpc_device(
    rpc: str | None,
    key: str | None,
    linker: str | None,
    target: str,
    threads: int | None,
    config: MeasureConfig | None = None,
) -> RpcDevice | None:
    """The device that the options name; None for this machine.

    Raises:
        ArgumentError: one option without the other, or not of its form.

    Other errors are those of `RpcDevice`.
    """
    if rpc is None:
        for name, value in (("key", key), ("linker", linker)):
            if value is not None:
                raise ArgumentError(name, value, "give --rpc with it")
        return None
    if key is None:
        raise ArgumentError("rpc", rpc, "give the --key of the servers with it")
    host, _, port = rpc.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) <= _MOST_PORT:
        raise ArgumentError("rpc", rpc, "write it as HOST:PORT")
    from ansor.measure.rpc_device import RpcDevice

    return RpcDevice(host, int(port), key, target, threads, linker=linker, config=config)
