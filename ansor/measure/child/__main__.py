"""The entry point of the fork server: ``python -m ansor.measure.child SOCKET_FD PARENT_PID``."""

import gc
import sys

if __name__ == "__main__":
    # TVM imports PyTorch if it is installed: a second and 200 MB, which workers do not need.
    sys.modules["torch"] = None  # type: ignore[assignment]

    # Imported objects are no garbage: garbage collection takes a sixth of the time to start.
    gc.disable()
    from ansor.measure.child.forks import serve_forks

    gc.freeze()
    gc.enable()
    serve_forks(int(sys.argv[1]), int(sys.argv[2]))
