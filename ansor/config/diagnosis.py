"""Limits of the checks of `ansor.doctor`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DoctorConfig:
    """Diagnosis of a machine (`ansor.diagnosis`)."""

    # Least measured share of the peak at the highest clock. The peak assumes two units of 512
    # bits, and cores with one reach half of it. Other work, a quota or a low clock leave less.
    least_peak_share: float = 0.45
    # Least measured share of the machine's best measurement so far: the clocks of cool and warm
    # processors differ by a tenth.
    least_present_share: float = 0.85
    # Cores that other work may occupy: one shared core halves the speed of all.
    most_load: float = 0.2
    load_s: float = 1.0  # seconds over which other work is observed
    # Enough for workers, models and copies of the weights of a network such as VGG-16 (550 MB).
    least_memory_bytes: int = 2 << 30
    least_disk_bytes: int = 1 << 30  # for records, saved networks and temporary libraries


DOCTOR = DoctorConfig()
