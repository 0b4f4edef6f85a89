"""A network compiled for another kind of machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import tvm
from tvm.target import Target

from ansor.errors import UnsupportedError
from ansor.frontend.deploy.built import DeployableNetwork
from ansor.frontend.signature import InputSpec
from ansor.targets.target import target_text


@dataclass(frozen=True, eq=False)
class ForeignModel:
    """A network that can be saved and exported, and runs on the machine that loads it. See
    `CompiledModel`.

    Attributes:
        complete: the network with its weights.
        threads: that it runs on.
    """

    complete: DeployableNetwork
    threads: int

    @property
    def target(self) -> Target:
        """The target of the code."""
        return self.complete.target

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        """The inputs of the network."""
        return self.complete.inputs

    @property
    def mod(self) -> tvm.IRModule:
        """The scheduled module, with its weights."""
        return self.complete.mod

    def __call__(self, *arrays: Any) -> NoReturn:
        """Raises an UnsupportedError."""
        self._refuse()

    def latency(self, min_time_s: float = 0.5, repeats: int = 5) -> NoReturn:
        """Raises an UnsupportedError."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        text = target_text(self.target, self.threads)
        remedy = "save the model, and load the file on such a machine"
        raise UnsupportedError(f"the model is compiled for {text}, which is not here", remedy)
