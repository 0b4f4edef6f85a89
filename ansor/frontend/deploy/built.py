"""A network that is compiled, but not loaded in a process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import tvm
from tvm import relax, tirx
from tvm.target import Target

from ansor.frontend.deploy.assembly import compile_module
from ansor.frontend.deploy.detached_weights import Array, bind_weights, detach_weights
from ansor.frontend.deploy.machine_code import MachineCode, machine_code
from ansor.frontend.signature import InputSpec, entry_of, input_specs
from ansor.targets.build import pass_context
from ansor.targets.registry import backend_of
from ansor.targets.target import runs_here


@dataclass(frozen=True, eq=False)
class DeployableNetwork:
    """A network and its compiled form.

    Attributes:
        bare: the scheduled module, with its weights as further parameters.
        target: of the code.
        entry: name of the module's Relax function.
        inputs: of the network.
        weights: by the names of their parameters.
        code: machine code that any process can load; None if there is none yet.
        executable: the code in this process, if `code` is None.
    """

    bare: Callable[[], tvm.IRModule]
    target: Target
    entry: str
    inputs: tuple[InputSpec, ...]
    weights: Mapping[str, Array]
    code: MachineCode | None = None
    executable: relax.VMExecutable | None = None

    @property
    def mod(self) -> tvm.IRModule:
        """The scheduled module with its weights."""
        return bind_weights(self.bare(), self.weights)


def uncompiled(mod: tvm.IRModule, target: Target) -> DeployableNetwork:
    """An optimised module without compilation."""
    bare, weights = detach_weights(mod)
    entry = entry_of(mod)
    return DeployableNetwork(lambda: bare, target, entry, input_specs(mod[entry]), weights)


def built(mod: tvm.IRModule, target: Target, threads: int | None = None) -> DeployableNetwork:
    """Compiles an optimised module. Runs nothing, so that any thread may call it.

    Args:
        threads: that it will run on; by default those of this process.
    """
    return with_code(uncompiled(mod, target), threads)


def with_code(model: DeployableNetwork, threads: int | None = None) -> DeployableNetwork:
    """The network compiled, under TVM's present settings; see `rebuilt`."""
    executable = compile_module(model.bare(), model.target, threads)
    if not backend_of(model.target).execution.on_host:
        return replace(model, executable=executable)
    code = machine_code(executable)
    if code is None and not runs_here(model.target):
        return model  # it is compiled where it is loaded
    if code is None:
        _make_machine_code(executable, model.bare())
        return replace(model, executable=executable)
    return replace(model, code=code)


def rebuilt(
    model: DeployableNetwork, target: Target, threads: int | None = None
) -> DeployableNetwork:
    """The network compiled for a target, under the settings that its functions need."""
    functions = [f for f in model.bare().functions.values() if isinstance(f, tirx.PrimFunc)]
    with pass_context(functions):
        return with_code(replace(model, target=target, code=None, executable=None), threads)


def _make_machine_code(executable: relax.VMExecutable, mod: tvm.IRModule) -> None:
    """Lets LLVM generate code now instead of at the first look-up of a function."""
    names = [v.name_hint for v, f in mod.functions.items() if isinstance(f, tirx.PrimFunc)]
    for library in executable.mod.imports:
        for name in names[:1]:
            library.get_function(name)
