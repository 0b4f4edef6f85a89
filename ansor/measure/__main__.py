"""Where a worker process begins: ``python -m ansor.measure READ_FD WRITE_FD``."""

import gc
import os
import sys

# TVM imports PyTorch where it is installed: a second and 200 MB, and no worker has a use for it.
sys.modules["torch"] = None  # type: ignore[assignment]

# What is imported is no garbage: to look for some takes a sixth of the time to start.
gc.disable()
from ansor.measure.worker import main  # noqa: E402

gc.freeze()
gc.enable()

if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
    sys.stderr.flush()
    os._exit(0)  # TVM's threads and LLVM's destructors have nothing left to do
