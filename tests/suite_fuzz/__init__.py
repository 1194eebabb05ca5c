"""Random C programs inside the model: Csmith's, compared with wasmtime."""
