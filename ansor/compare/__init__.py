"""A tuned network beside other systems, on the same inputs, weights and number of threads.

In: a built-in network's name and its tuned form. Out: latencies, ratios and errors. Every system
stays in a process of its own (`child`), since pools of threads that have just been idle keep
spinning and disturb whoever is timed next; `turns` times them one after the other, for less than a
second each, many times, so that what else happens on the machine meets all of them. `systems` lists
what can be compared; those that need PyTorch are in `torch_systems`, the others in `onnx_systems`
and `openvino_system`. Read `rounds` first.
"""
