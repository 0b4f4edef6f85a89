"""Writes a compiled network to a folder from which C, C++ and Python run it without a compiler.

`write.py` is the file to read first. `files/` has the program texts of the folder.
"""
