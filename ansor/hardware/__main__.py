"""``python -m ansor.hardware SPEC``: the micro-benchmark, in a process of its own."""

from __future__ import annotations

import sys

from ansor.hardware.probe import main

if __name__ == "__main__":
    main(sys.argv[1:])
