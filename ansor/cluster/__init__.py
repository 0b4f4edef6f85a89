"""Measurements on clusters of equal machines.

`ClusterDevice` (`device.py`) divides the work among nodes: `node_pool.py` follows nodes that join,
leave and slow down, and asks them through the protocol `Nodes` (`nodes.py`). Each node runs one
`Measurer` (`measurer.py`). Only `ray_nodes.py` imports Ray.

Read `nodes` first.
"""
