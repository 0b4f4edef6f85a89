"""What is right and wrong with this machine for tuning, and what to do about it.

In: the system's files, the packages, a measurement. Out: a frozen `DoctorReport`. Read `doctor.py`
first; every other file has the findings of one subject, as functions of what was read.
"""
