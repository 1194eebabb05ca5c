"""From C, WebAssembly or token programs to tokens, and from a machine to weights."""
