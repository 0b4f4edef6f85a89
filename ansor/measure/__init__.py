"""Building and timing programs: in go programs of one task, out come `Measurement`s (design: "build
where you run"; Ansor §3, the "hardware measurer").

`result` says what a measurement is, `device` what every device can do. `local` measures on this
machine, in worker processes (in the parent `pool`, `process`, `batch`; in the child `worker`,
`runner`, `timing`, `inputs`; between them `protocol` and `channel`). `build` is how a function is
compiled, for a candidate and for the final network alike. `fake` answers from a formula, for tests.

Read `device` first. This module imports no TVM; `ansor.measure.local_device` has `LocalDevice`.
"""

from ansor.measure.device import Device
from ansor.measure.fake import FakeDevice
from ansor.measure.result import ErrorKind, Measurement, Verification

__all__ = ["Device", "ErrorKind", "FakeDevice", "Measurement", "Verification"]
