"""The small C library: headers and sources that are linked into every C program."""
