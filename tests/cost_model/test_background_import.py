"""XGBoost is not imported before there may be something to learn, and then in the background."""

from __future__ import annotations

import os
import subprocess
import sys

from ansor.targets.host.threads import module_path

PROGRAM = """
import sys, threading
import ansor.calls
from ansor.config import CostModelConfig
from ansor.cost_model.gbdt import ResidualModel
assert "xgboost" not in sys.modules
model = ResidualModel(CostModelConfig())
model.prepare()
for thread in threading.enumerate():
    if thread is not threading.main_thread() and not thread.daemon:
        thread.join()
assert hasattr(sys.modules["xgboost"], "train")
before = threading.active_count()
model.prepare()
assert threading.active_count() == before
"""


def test_it_is_imported_once_and_late() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | module_path(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
