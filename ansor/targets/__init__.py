"""Kinds of targets: one `Backend` for each, with all that depends on the kind.

In: a target as a user writes it (`target.resolve_target`). Out: its backend
(`registry.backend_of`) with the machine's parameters, rules, limits, draft, compiler and execution.
The built-in kinds are `cpu/` and `cuda/`. Folder `host/` has the threads and the memory of the
process that runs kernels. Read `backend.py` first, then `cpu/backend.py`.
"""
