"""ONNX models: reading, folding, conversion to Relax. Needs the optional package `onnx`."""
