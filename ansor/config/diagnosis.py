"""Limits of what `ansor.doctor` calls right."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DoctorConfig:
    """Diagnosis of a machine (`ansor.diagnosis`)."""

    # Of the peak at the highest clock. Cores with one unit of 512 bits, where most have two, reach
    # half of what is computed for two; other work, a quota or a low clock leave less.
    least_peak_share: float = 0.45
    # Of the best that was ever measured of the machine: clocks of cool and warm processors differ
    # by a tenth.
    least_present_share: float = 0.85
    # Cores that other work takes from the programs: one core that is shared halves what all reach.
    most_load: float = 0.2
    load_s: float = 1.0  # seconds over which other work is observed
    # Workers, models and the copies of weights of a network such as VGG-16 (550 MB).
    least_memory_bytes: int = 2 << 30
    least_disk_bytes: int = 1 << 30  # records, saved networks and temporary libraries of a run


DOCTOR = DoctorConfig()
