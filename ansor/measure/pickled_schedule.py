"""A schedule that a user wrote, on its way to a worker process.

Only the running process makes these bytes. A database has the name of a schedule and numbers.
"""

from __future__ import annotations

import pickle
import sys

import cloudpickle

from ansor.errors import ArgumentError
from ansor.program.hand_schedule import HandSchedule


def pickled(schedule: HandSchedule) -> bytes:
    """The schedule with its function by value, so that a worker need not import its module.

    Raises:
        ArgumentError: the function refers to a value that cannot be sent to another process.
    """
    module = sys.modules.get(schedule.module)
    if module is not None:
        cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps(schedule))
    except (pickle.PicklingError, TypeError, ValueError) as error:
        remedy = f"let its function refer only to what can be sent to a worker process: {error}"
        raise ArgumentError("templates", schedule.name, remedy) from error
    finally:
        if module is not None:
            cloudpickle.unregister_pickle_by_value(module)


def unpickled(data: bytes) -> HandSchedule:
    """The schedule that the parent process sent."""
    schedule = pickle.loads(data)
    assert isinstance(schedule, HandSchedule)
    return schedule
