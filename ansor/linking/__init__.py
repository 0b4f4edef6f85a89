"""Object files made into shared libraries, without a linker on the machine.

LLVM writes relocatable object files, and the system loads shared libraries. Linking is simple for
our code: it has a few sections and four kinds of relocations. Module `object_file` reads object
files, `link` places and relocates, and `library_file` writes libraries. Module `elf` has the
numbers of the format.
"""
