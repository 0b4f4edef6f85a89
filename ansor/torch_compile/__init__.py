"""The backend "ansor" of `torch.compile`. Needs the optional PyTorch.

In: graphs that TorchDynamo captures, with parameters and buffers as inputs. Out: functions of torch
tensors. File `backend.py` checks the options. File `captured.py` compiles a graph for each size of
its inputs and runs it. File `functional.py` lets AOTAutograd remove writes to inputs. File
`parts.py` separates views from the tuned network, and `weights.py` notices changed weights. Read
`captured.py` first.
"""
