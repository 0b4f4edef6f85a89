"""The kept measurements of a task."""

from __future__ import annotations

import pytest
from database_records import FAILED, program, took
from hypothesis import given
from hypothesis import strategies as st

from ansor.config import ExplainConfig
from ansor.database.record import Origin, Record
from ansor.explain.trials import Trials, trials_of
from ansor.measure.result import ErrorKind, Measurement

WRONG = Measurement(error=ErrorKind.WRONG, message="no")


def records_of(*outcomes: tuple[int, float | Measurement], host: str = "here") -> list[Record]:
    """Records of programs by their number, with seconds or a failure."""
    return [
        Record(
            *("key", "target", program(number)),
            took(outcome) if isinstance(outcome, float) else outcome,
            Origin(host, {}, float(place)),
        )
        for place, (number, outcome) in enumerate(outcomes)
    ]


def test_the_fastest_measurement_of_each_program_is_kept() -> None:
    found = trials_of(records_of((1, 3.0), (2, 2.0), (1, 1.0), (3, FAILED)))
    assert [(one.program, one.latency_s, one.time_s) for one in found.fastest] == [
        (program(1), 1.0, 2.0),
        (program(2), 2.0, 1.0),
    ]
    assert found.best == (3, 1.0)
    assert found.failures == {"build": 1}
    assert [one.latency_s for one in found.each] == [3.0, 2.0, 1.0, None]


def test_a_wrong_program_counts_as_failed_however_fast_it_was() -> None:
    found = trials_of(records_of((1, 1.0), (2, 2.0), (1, WRONG)))
    assert [one.program for one in found.fastest] == [program(2)]
    assert found.failures == {"wrong": 2}


def test_only_the_fastest_programs_are_kept() -> None:
    found = trials_of(records_of((1, 3.0), (2, 2.0), (3, 1.0)), ExplainConfig(fastest=2))
    assert [one.program for one in found.fastest] == [program(3), program(2)]
    assert len(found.each) == 3


def test_hosts_stand_by_their_number_of_records() -> None:
    here, there = records_of((1, 1.0)), records_of((1, 1.0), (2, 1.0), host="there")
    assert trials_of([*here, *there]).hosts == ("there", "here")


@pytest.mark.parametrize(
    ("seconds", "count", "gain"),
    [((4.0, 3.0, 2.0), 1, 1 / 3), ((4.0, 3.0, 5.0), 1, 0.0), ((4.0, 1.0, 2.0), 2, 0.75)],
)
def test_gain_of_the_last_trials(seconds: tuple[float, ...], count: int, gain: float) -> None:
    found = trials_of(records_of(*enumerate(seconds)))
    assert found.gain_of_last(count) == pytest.approx(gain)


@pytest.mark.parametrize("trials", [Trials(), trials_of(records_of((1, FAILED), (2, 1.0)))])
def test_no_gain_is_known_without_an_earlier_success(trials: Trials) -> None:
    assert trials.gain_of_last(1) is None


@given(st.lists(st.floats(1e-6, 1.0), min_size=2, max_size=20), st.data())
def test_more_trials_gain_no_less(seconds: list[float], data: st.DataObject) -> None:
    found = trials_of(records_of(*enumerate(seconds)))
    few = data.draw(st.integers(1, len(seconds) - 1))
    gains = [found.gain_of_last(count) for count in range(1, few + 1)]
    assert all(gain is not None and 0 <= gain < 1 for gain in gains)
    assert gains == sorted(gains)  # type: ignore[type-var]
    assert found.fastest[0].latency_s == min(seconds)
