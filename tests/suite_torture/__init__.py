"""GCC's torture tests inside the model: self-checking C programs of the Debian package."""
