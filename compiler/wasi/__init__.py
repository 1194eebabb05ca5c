"""C sources that put the WASI system calls on the machine's byte output and input."""
