"""All mutants, by room of the house."""

from __future__ import annotations

from quorate.sim.mutants.answers import ANSWERS
from quorate.sim.mutants.changing import CHANGING
from quorate.sim.mutants.debts import DEBTS
from quorate.sim.mutants.elections import ELECTIONS
from quorate.sim.mutants.goodbyes import GOODBYES
from quorate.sim.mutants.margins import MARGINS
from quorate.sim.mutants.mutant import Mutant
from quorate.sim.mutants.policies import POLICIES
from quorate.sim.mutants.replication import REPLICATION
from quorate.sim.mutants.storage import STORAGE
from quorate.sim.mutants.strangers import STRANGERS
from quorate.sim.mutants.timers import TIMERS
from quorate.sim.mutants.versions import VERSIONS

MUTANTS: tuple[Mutant, ...] = (
    *ELECTIONS,
    *REPLICATION,
    *STORAGE,
    *MARGINS,
    *ANSWERS,
    *DEBTS,
    *GOODBYES,
    *TIMERS,
    *STRANGERS,
    *VERSIONS,
    *CHANGING,
    *POLICIES,
)
