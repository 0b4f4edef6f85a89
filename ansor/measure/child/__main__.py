"""Where the fork server begins: ``python -m ansor.measure.child SOCKET_FD PARENT_PID``."""

import gc
import sys

if __name__ == "__main__":
    # TVM imports PyTorch where it is installed: a second and 200 MB, of no use to a worker.
    sys.modules["torch"] = None  # type: ignore[assignment]

    # What is imported is no garbage: to look for some takes a sixth of the time to start.
    gc.disable()
    from ansor.measure.child.forks import serve_forks

    gc.freeze()
    gc.enable()
    serve_forks(int(sys.argv[1]), int(sys.argv[2]))
