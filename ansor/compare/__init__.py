"""A tuned network beside other systems, on the same inputs, weights and number of threads.

In: a built-in network's name and its tuned form. Out: latencies, ratios and errors. Every system
has its own process (`child`), because idle threads of a pool spin for a while and disturb the next
measurement. Module `turns` times the systems in many short turns of less than a second, so that
other work on the machine affects all of them. Module `systems` lists the systems. Those that need
PyTorch are in `torch_systems`, the others in `onnx_systems` and `openvino_system`. Read `rounds`
first.
"""
