"""``python -m ansor`` is the command `ansor`."""

from __future__ import annotations

from ansor.cli.main import main

if __name__ == "__main__":
    main(prog_name="ansor")
