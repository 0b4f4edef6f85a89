"""Building and timing programs (Ansor §3, the "hardware measurer").

`device` is the protocol of every device, and `result` what it returns. `local_device` measures on
this machine: the parent's side is `local/`, the worker process is `child/`, and `protocol` is the
language between them. `fake` answers from a formula, for tests.

Read `device` first. This module imports no TVM.
"""

from ansor.measure.device import Device
from ansor.measure.fake import FakeDevice
from ansor.measure.result import ErrorKind, Measurement, Verification

__all__ = ["Device", "ErrorKind", "FakeDevice", "Measurement", "Verification"]
