"""Made by `python -m tests.typing_stub`; a test compares it with the package."""

from .session import begin as begin, check as check, keep as keep, progress as progress, report as report, task as task
from .interpreting import emitter as emitter
from .interpreting import dispatcher as dispatcher
from .swapping import node_order as node_order
from .swapping import rule as rule
from .swapping import forward_rule as forward_rule
from .swapping import backward as backward
from .swapping import compiler_pass as compiler_pass
from .swapping import scheduler as scheduler
from .swapping import swap as swap
from .digits import Trained as Trained
from .digits import train_digits as train_digits
from .letters import Learned as Learned
from .letters import train_names as train_names
from .counting import Passes as Passes
from .counting import kept_bytes as kept_bytes
from .counting import kept_over_time as kept_over_time
from .counting import most_bytes as most_bytes
from .views.costs import costs as costs
from .views.costs import sizes as sizes
from .framework import my_framework as my_framework
from .framework import my_pieces as my_pieces
from .walking import inputs_of as inputs_of
from .walking import made_from as made_from
from .walking import impatient as impatient
from .units.u09_eager_costs.operators import operator as operator
from .units.u09_eager_costs.kernels import erf as erf
from .units.u09_eager_costs.kernels import exp as exp
from .units.u09_eager_costs.kernels import log as log
from .units.u09_eager_costs.kernels import sqrt as sqrt
from .units.u09_eager_costs.kernels import tanh as tanh
from .units.u09_eager_costs.kernels import where as where
from .units.u09_eager_costs.kernels import languages as languages
from .units.u10_graph_mode.student_guards import guard as guard
from .units.u10_graph_mode.one_run import by_example as by_example
