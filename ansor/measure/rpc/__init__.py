"""The parent's side of `ansor.measure.rpc_device`: a tracker of TVM's RPC lends servers.

In: jobs, each a request to a worker process that is connected with a server. Out: their replies.
No call here opens a session with a server: a server that hangs blocks its client in native code.
Read `farm.py` first.
"""
