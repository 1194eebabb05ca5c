"""An engine generated as C from a model's weights and configuration alone.

Nothing here knows what a token or slot means. :mod:`forms` keeps what is known of every quantity,
:mod:`classify` says what kind of lookup a head is, :mod:`families` what the output head is made of;
:mod:`generate` writes the C, on the runtime in ``runtime/``; :mod:`build` compiles and keeps it;
:mod:`describe` says what was found. A start that finds all in the cache imports little of this.
"""

from executor.native.engine import NativeEngine
from executor.native.errors import NativeUnavailable

__all__ = ["NativeEngine", "NativeUnavailable"]
