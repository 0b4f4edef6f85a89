"""``python -m ansor.targets.cpu.probe SPEC``: the micro-benchmark, in a separate process."""

from __future__ import annotations

import sys

from ansor.targets.cpu.probe.benchmark import main

if __name__ == "__main__":
    main(sys.argv[1:])
