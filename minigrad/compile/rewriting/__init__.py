"""Passes: each makes a graph into a better one that computes the same, and says what it did where.

`simplify` (exact algebra and folding of constants), `fold_views`, `common` (what is computed twice), `dead` (what makes
no difference) are run by `optimise` until nothing changes, and `pick_rows` once after them.  `rule("x * 1 -> x")` adds
an equation to `simplify`.
"""

from .algebra import rule
from .log import Log, PassRun
from .passes import PASSES, Pass, forget_pass, optimise, register_pass, rule_names
from .rules import Fired, Rule, Rules
