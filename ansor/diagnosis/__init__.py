"""Diagnosis of this machine for tuning: findings and remedies.

In: the system's files, the packages, a measurement. Out: a frozen `DoctorReport`. Read `doctor.py`
first; every other file has the findings of one subject, as functions of the figures.
"""
