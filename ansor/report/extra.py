"""The packages that reports need, of the extra `report`."""

from __future__ import annotations

from importlib.util import find_spec

from ansor.errors import UserError


class MissingPackageError(UserError):
    """A package of an extra is not installed."""


def require(*packages: str) -> None:
    """Checks that packages are installed.

    Raises:
        MissingPackageError: some are not.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        remedy = "pip install 'ansor[report]'"
        raise MissingPackageError(f"a report needs {' and '.join(missing)}", remedy)
