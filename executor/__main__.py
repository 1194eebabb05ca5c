"""``python -m executor`` is the command ``transputer``."""

from __future__ import annotations

import sys

from executor.cli import main

sys.exit(main())
