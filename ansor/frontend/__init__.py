"""Models in, tasks out; the best programs in, a callable network out.

`importers/` makes one Relax function of any model. `optimization` and `passes/` turn it into few
fused PrimFuncs, and `distinct_functions` lists them with the numbers of their calls. In `deploy/`,
`assembly` puts scheduled functions in their place and compiles, `runtime` calls the result, and
`storage` keeps it.
"""

from ansor.frontend.deploy.assembly import apply_programs, compile_module
from ansor.frontend.deploy.runtime import CompiledModel, compile_model, random_inputs
from ansor.frontend.deploy.storage import StorageError, StoredModel, load_model, save_model
from ansor.frontend.distinct_functions import ExtractedFunction, extract_functions
from ansor.frontend.importers.importer import from_te, import_model
from ansor.frontend.importers.source import ImportedModel
from ansor.frontend.optimization import optimize
from ansor.frontend.signature import InputSpec

__all__ = [
    "CompiledModel",
    "ExtractedFunction",
    "ImportedModel",
    "InputSpec",
    "StorageError",
    "StoredModel",
    "apply_programs",
    "compile_model",
    "compile_module",
    "extract_functions",
    "from_te",
    "import_model",
    "load_model",
    "optimize",
    "random_inputs",
    "save_model",
]
