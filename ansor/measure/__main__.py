"""Where a worker process begins: ``python -m ansor.measure READ_FD WRITE_FD UNTIL_FD AFTER_FD``.

The last two, -1 for none, are ends of pipes, see `ansor.measure.process.WorkerProcess.start`.
"""

import gc
import os
import sys

if __name__ == "__main__":
    read_fd, write_fd, until_fd, after_fd = map(int, sys.argv[1:])
    if after_fd >= 0:
        os.read(after_fd, 1)
        os.close(after_fd)

    # TVM imports PyTorch where it is installed: a second and 200 MB, of no use to a worker.
    sys.modules["torch"] = None  # type: ignore[assignment]

    # What is imported is no garbage: to look for some takes a sixth of the time to start.
    gc.disable()
    from ansor.measure.worker import main

    gc.freeze()
    gc.enable()
    if until_fd >= 0:
        os.close(until_fd)
    main(read_fd, write_fd)
    sys.stderr.flush()
    os._exit(0)  # TVM's threads and LLVM's destructors have nothing left to do
