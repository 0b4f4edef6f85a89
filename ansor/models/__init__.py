"""Built-in models, made with `tvm.relax.frontend.nn`; PyTorch is not needed.

In: a name, a batch size, a seed. Out: a Relax module and its random parameters. Every family has a
file, e.g. `resnet.py`; `registry.py` is the door. `torch_twin` (needs PyTorch, import it
explicitly) holds the same networks in PyTorch, as peers and references.
"""

from ansor.models.registry import (
    BuiltInModel,
    build_from_config,
    build_model,
    model_config,
    model_names,
)
from ansor.models.resnet import ResNetConfig

__all__ = [
    "BuiltInModel",
    "ResNetConfig",
    "build_from_config",
    "build_model",
    "model_config",
    "model_names",
]
