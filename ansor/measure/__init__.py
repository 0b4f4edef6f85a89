"""Building and timing programs (Ansor §3, the "hardware measurer").

`device` is the protocol of every device, and `result` its results. `local_device` measures on this
machine: `local/` is the parent's side and `child/` the worker process. `protocol` has the messages
between them. `fake` computes its answers by a formula, for tests.

Read `device` first. This module imports no TVM.
"""

from ansor.measure.device import Device
from ansor.measure.fake import FakeDevice
from ansor.measure.result import ErrorKind, Measurement, Verification

__all__ = ["Device", "ErrorKind", "FakeDevice", "Measurement", "Verification"]
