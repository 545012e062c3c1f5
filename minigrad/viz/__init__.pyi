"""Made by `python -m tests.typing_stub`; a test compares it with the package."""

from .graphs import graph as graph
from .stepper import step as step
from .benches import bench as bench
from .fused import fusion as fusion
from .timelines import timeline as timeline
from .memories import memory as memory
from .trainings import training as training
from .dashboard import Dashboard as Dashboard
from .clusters import cluster as cluster
from .graphs import Picture as Picture
from .stepper import Stepper as Stepper
from .fused import Fusion as Fusion
from .flipbook import Flipbook as Flipbook
from .timelines import Timeline as Timeline
from .graphs import shown as shown
