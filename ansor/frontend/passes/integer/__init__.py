"""Quantised networks in integers.

Importers write `relax.quantize` and `relax.dequantize`, or operands less their zero points in
int32. `form.py` turns operators on them into products of 8-bit integers with one epilogue.
"""
