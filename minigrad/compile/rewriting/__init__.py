"""Passes: each makes a graph into a better one that computes the same, and says what it did where.

`simplify` (exact algebra and folding of constants), `fold_views`, `common` (what is computed twice), `dead` (what makes
no difference); `optimise` runs them until nothing changes, and `rules` is how a rule is written.
"""

from .log import Log, Run
from .passes import PASSES, Pass, forget_pass, optimise, register_pass, rule_names
from .rules import Fired, Rule, Rules
