"""Object files made into shared libraries, without a linker on the machine.

LLVM writes relocatable object files; the system loads shared libraries. What lies between is small
for our code: a few sections, four kinds of relocations. `object_file` reads the former, `link`
places and relocates, `library_file` writes the latter. `elf` has the numbers of the format.
"""
