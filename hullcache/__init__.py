"""KV caches for transformers whose heads have two dimensions.

The winner of a hard maximum of q·k over planar keys is a vertex of their convex hull, so a cache
may forget all other keys and find the winner by bisection, in O(log n). Scores are compared
exactly; ties go to the latest key or are averaged, by each head's mode. The package knows nothing
of the model around it.

>>> cache = HullKVCache(n_layers=1, n_heads=1, modes="latest")
>>> for index, value in [(3, 30.0), (5, 50.0), (3, 31.0)]:   # memory: index -> latest value
...     cache.append(0, keys=[[2.0 * index, -1.0 * index**2]], values=[[value, 0.0]])
>>> cache.attend(0, [[3.0, 1.0]]).tolist()
[[31.0, 0.0]]
"""

from __future__ import annotations

from hullcache.base import KVCache
from hullcache.head import HullHead
from hullcache.hull import HullKVCache
from hullcache.record import MODES, Mode, Value
from hullcache.standard import StandardKVCache
from hullcache.standard_head import StandardHead

__all__ = [
    "MODES",
    "HullHead",
    "HullKVCache",
    "KVCache",
    "Mode",
    "StandardHead",
    "StandardKVCache",
    "Value",
]
