"""Made by `python -m tests.typing_stub`; a test compares it with the package."""

from .session import begin as begin, check as check, keep as keep, progress as progress, report as report, task as task
from .interpreting import emitter as emitter
from .interpreting import dispatcher as dispatcher
from .guarding import guard as guard
from .operators import operator as operator
from .swapping import node_order as node_order
from .swapping import rule as rule
from .swapping import forward_rule as forward_rule
from .swapping import backward as backward
from .swapping import compiler_pass as compiler_pass
from .swapping import scheduler as scheduler
from .swapping import swap as swap
from .kernels import erf as erf
from .kernels import exp as exp
from .kernels import log as log
from .kernels import sqrt as sqrt
from .kernels import tanh as tanh
from .kernels import where as where
from .kernels import languages as languages
from .one_run import by_example as by_example
from .digits import Trained as Trained
from .digits import train_digits as train_digits
from .letters import Learned as Learned
from .letters import train_names as train_names
from .counting import Passes as Passes
from .counting import kept_bytes as kept_bytes
from .counting import kept_over_time as kept_over_time
from .counting import most_bytes as most_bytes
from ..viz.lessons.costs import costs as costs
from ..viz.lessons.costs import sizes as sizes
from .walking import inputs_of as inputs_of
from .walking import made_from as made_from
from .walking import impatient as impatient
