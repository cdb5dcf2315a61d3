"""The phases of rewriting, with that of loops."""

from __future__ import annotations

from symcomp.rewrite.phases import CANONICALIZE, FULL, PHASES, Phase
from symcomp.rewrite.rule import RuleSet
from symcomp.scan.rules import SCAN_RULES

LOOPS = RuleSet(SCAN_RULES, ["scan", *FULL])
PHASES_WITH_LOOPS = tuple(
    part
    for phase in PHASES
    for part in (
        [phase, Phase("scan", "loops do only what each step needs", LOOPS + CANONICALIZE)]
        if phase.name == "stabilize"
        else [phase]
    )
)
