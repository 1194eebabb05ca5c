"""Programs to try first: see README.md in this folder."""
