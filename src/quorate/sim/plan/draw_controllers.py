"""Plans of worlds whose nodes run whole controllers.

They are a separate family, so the seeds of other worlds keep their plans. The same seed without
controllers gives the faults; `draw` describes them.
"""

from __future__ import annotations

from typing import Final

from quorate.sim.plan.draw import draw
from quorate.sim.plan.plan import Plan
from quorate.sim.plan.with_controllers import with_controllers

CONTROLLERS: Final = "controllers"
"""The name of the family, in place of a scenario's."""


def draw_controllers(seed: int) -> Plan:
    """The plan of a seed in this family."""
    return with_controllers(seed, draw(seed))
