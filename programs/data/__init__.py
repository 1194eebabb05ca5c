"""Input for the programs."""
