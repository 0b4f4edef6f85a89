"""Arrays of NumPy and PyTorch to TVM tensors and back, without a copy where that is possible."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import tvm

from ansor.errors import ArgumentError
from ansor.frontend.signature import InputSpec
from ansor.measure.function_arguments import on_host
from ansor.targets.host.memory import ALIGNMENT_BYTES, plain_block


def is_torch_tensor(value: object) -> bool:
    """Whether the value is a torch tensor, found without importing torch."""
    return any(
        t.__name__ == "Tensor" and t.__module__.split(".")[0] == "torch"
        for t in type(value).__mro__
    )


def dtype_name(value: Any) -> str:
    """NumPy's name of an array's or tensor's dtype."""
    return str(value.dtype).removeprefix("torch.")


def check_array(value: Any, spec: InputSpec) -> None:
    """Raises ArgumentError unless the value has the input's kind, shape and dtype."""
    if not (isinstance(value, np.ndarray | np.generic) or is_torch_tensor(value)):
        kind = type(value).__name__
        raise ArgumentError(spec.name, kind, "give a NumPy array or a torch tensor")
    if tuple(value.shape) != spec.shape:
        raise ArgumentError(spec.name, tuple(value.shape), f"the shape must be {spec.shape}")
    if dtype_name(value) != spec.dtype:
        raise ArgumentError(spec.name, dtype_name(value), f"the dtype must be {spec.dtype}")


@dataclass(frozen=True, eq=False)
class Staging:
    """Aligned memory on the host, to which every call copies an input. New memory for each call
    would cost more than the copy.

    Attributes:
        array: to write to.
        tensor: the same as a TVM tensor.
    """

    array: Any
    tensor: Any

    @classmethod
    def of(cls, spec: InputSpec) -> Staging | None:
        """Memory for an input; None for a dtype that NumPy does not share."""
        dtype = np.dtype(spec.dtype)
        if dtype.kind == "V":
            return None
        size = math.prod(spec.shape) * dtype.itemsize
        shaped = plain_block(max(1, size))[:size].view(dtype).reshape(spec.shape)
        return cls(shaped, tvm.runtime.from_dlpack(shaped))


def to_tvm(value: Any, device: tvm.runtime.Device, staging: Staging | None = None) -> Any:
    """The value as a TVM tensor on the device; shares memory if dense, aligned and already there.

    A torch tensor on another device than the network's is copied through the host.

    Args:
        staging: memory for a copy on the host, if one is needed; new memory for None.
    """
    if is_torch_tensor(value):
        return _from_torch(value, device, staging)
    return _from_numpy(value, device, staging)


def _from_torch(value: Any, device: tvm.runtime.Device, staging: Staging | None) -> Any:
    dense = value.detach().contiguous()
    here = dense.__dlpack_device__() == (device.dlpack_device_type(), device.index)
    if here and dense.data_ptr() % ALIGNMENT_BYTES == 0:
        return tvm.runtime.from_dlpack(dense)
    return _copied(_host_array(dense.cpu()), device, staging)


def _host_array(tensor: Any) -> Any:
    """A torch tensor's memory as a NumPy array; torch exports no bfloat16 to NumPy."""
    if dtype_name(tensor) != "bfloat16":
        return tensor.numpy()
    import torch  # optional; the caller gave a torch tensor

    return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)


def _copied(array: Any, device: tvm.runtime.Device, staging: Staging | None) -> Any:
    if staging is None or not _is_host(device):
        return tvm.runtime.tensor(array, device)
    staging.array[...] = array
    return staging.tensor


def _from_numpy(value: Any, device: tvm.runtime.Device, staging: Staging | None) -> Any:
    dense = np.asarray(value, order="C")
    aligned = dense.ctypes.data % ALIGNMENT_BYTES == 0
    if _is_host(device) and dense.flags.writeable and aligned and dense.dtype.kind != "V":
        return tvm.runtime.from_dlpack(dense)
    return _copied(dense, device, staging)


def _is_host(device: tvm.runtime.Device) -> bool:
    return bool(device.dlpack_device_type() == tvm.cpu().dlpack_device_type())


def from_tvm(result: Any, *, to_torch: bool) -> Any:
    """A result, or a tuple of results, as torch tensors or NumPy arrays."""
    if not isinstance(result, tvm.runtime.Tensor):
        return tuple(from_tvm(part, to_torch=to_torch) for part in result)
    return _as_torch(result) if to_torch else on_host(result)


def _as_torch(result: Any) -> Any:
    from torch.utils.dlpack import from_dlpack  # optional; the caller gave a torch tensor

    return from_dlpack(result)
