"""Quantisation of networks to 8 bits, by `onnxruntime.quantization`.

A float model and samples of its inputs come in (`quantize.py`). An ONNX model in the format QDQ
goes out, which `auto_schedule` takes. `quantizer.py` has the calls of ONNX Runtime, and `budget.py`
returns operators to float32 until an error bound holds.
"""
