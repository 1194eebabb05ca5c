"""The base machine as a value: weights and configuration from the stored plan."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from compiler.build import Machine, make_machine
from compiler.machine_base import MAX_MEMORY, build_base_graph
from compiler.schedule import load_plan


@lru_cache(maxsize=1)
def build_base_machine() -> Machine:
    """The base machine, in well under a second.

    Its configuration names the memory that it is exact for; a program with more is refused, as
    is one with an opcode that the vocabulary lacks.
    """
    machine = make_machine(build_base_graph(), load_plan("base"))
    return replace(machine, config={**machine.config, "max_memory": MAX_MEMORY})
