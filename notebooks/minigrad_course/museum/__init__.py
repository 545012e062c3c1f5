"""The museum of misconceptions: fifteen pictures drawn from wrong beliefs, which the student repairs.

Each comes from a question that people asked in public.  The right picture is drawn from what the library computes.
"""

from .about import MUSEUM
from .backward import CarryingArrows, ClearGradients, KeepFlags, MakeWeights, Root, VisitingOrder
from .figures import Factors, Switches, TwoSums
from .memory import SeesTheWrite, Stopped
from .running import AfterFusion, BodyRuns, DifferentNumbers, TimedLines

for each in (
    VisitingOrder, ClearGradients, KeepFlags, Stopped, CarryingArrows, SeesTheWrite, MakeWeights, BodyRuns,
    DifferentNumbers, TimedLines, Switches, AfterFusion, Factors, TwoSums, Root,
):
    MUSEUM.task(each)
