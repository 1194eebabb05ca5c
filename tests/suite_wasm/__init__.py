"""Runs the official WebAssembly test suite inside the model; ``python -m suite_wasm --help``."""
