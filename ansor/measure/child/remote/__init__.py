"""The worker's side of a device behind TVM's RPC: a session with one server, and runs there."""
