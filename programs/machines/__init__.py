"""Machines in the graph language, for ``transputer build --machine``; docs/tutorial.md."""
