"""Passes: each turns a graph into a cheaper one that computes the same, and logs every change.

`optimise` runs `simplify` (exact algebra, constant folding), `fold_views`, `common` (common subexpressions) and `dead`
(dead code) until nothing changes, then `pick_rows` once.  `rule("x * 1 -> x")` adds an equation to `simplify`.
"""

from .algebra import rule
from .passes import PASSES, Fired, Log, Pass, PassRun, forget_pass, optimise, register_pass, rule_names
from .rules import Rule, Rules
