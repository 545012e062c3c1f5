"""The page for instructors: `instructors.md` with plans and misconceptions from the units' own declarations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from minigrad_course.museum import MUSEUM
from minigrad_course.unit import Unit, parts

from .frames import LECTURES

# The parts of each week, or of each part of a day.  Units that this version does not have are left out.
FOURTEEN_WEEKS = (
    ("00_start", "01_why_frameworks"), ("02_arrays",), ("03_devices",), ("04_graphs",), ("05_gradient_functions",),
    ("06_reverse_mode",), ("07_forward_and_memory",), ("08_training",), ("09_eager_costs",), ("10_graph_mode",),
    ("11_fusion",), ("12_parallelism",), ("13_distributed",), ("14_applications", "museum", "project"),
)
SIX_WEEKS = (
    ("00_start", "04_graphs"), ("05_gradient_functions", "06_reverse_mode"), ("08_training",),
    ("09_eager_costs", "10_graph_mode"), ("11_fusion",), ("13_distributed", "museum"),
)
TWELVE_WEEKS = (
    ("00_start", "01_why_frameworks"), ("02_arrays",), ("03_devices",), ("04_graphs", "05_gradient_functions"),
    ("06_reverse_mode",), ("07_forward_and_memory",), ("08_training",), ("09_eager_costs",), ("10_graph_mode",),
    ("11_fusion",), ("12_parallelism", "13_distributed"), ("14_applications",),
)
WEEKEND = (("00_start", "04_graphs"), ("06_reverse_mode",), ("10_graph_mode",), ("11_fusion",))
ONE_DAY = (("00_start",), ("06_reverse_mode",), ("10_graph_mode",), ("museum",))


def instructors() -> str:
    """The Markdown of the page."""
    text = (LECTURES / "instructors.md").read_text(encoding="utf-8")
    made = {
        "fourteen_weeks": plan("week", FOURTEEN_WEEKS), "six_weeks": plan("week", SIX_WEEKS),
        "one_day": plan("part", ONE_DAY), "misconceptions": misconceptions(),
        "minutes_of_04": str(parts()["04_graphs"].minutes),
    } | syllabuses()
    for name, table in made.items():
        text = text.replace(f"{{{{{name}}}}}", table)
    return text


def syllabuses() -> dict[str, str]:
    """The tables of the page `syllabus.md`, by their names."""
    return {
        "twelve_weeks": plan("week", TWELVE_WEEKS), "weekend": plan("half day", WEEKEND), "without": without(WEEKEND),
    }


def syllabus() -> str:
    """The Markdown of the page with the two syllabuses."""
    text = (LECTURES / "syllabus.md").read_text(encoding="utf-8")
    for name, table in syllabuses().items():
        text = text.replace(f"{{{{{name}}}}}", table)
    return text


def without(steps: Sequence[Sequence[str]], known: Mapping[str, Unit] | None = None) -> str:
    """The pages to read for a plan: units that its units need, and that it leaves out."""
    known = parts() if known is None else known
    planned = [key for keys in steps for key in keys]
    left_out = sorted({needed for key in planned for needed in known[key].prerequisites} - set(planned))
    return ", ".join(f"[{known[key].heading}]({key}.html)" for key in left_out)


def plan(step: str, steps: Sequence[Sequence[str]], known: Mapping[str, Unit] | None = None) -> str:
    """A table with the units of each step, their minutes, those for more, and points, and the sums."""
    known = parts() if known is None else known
    rows, sums = [f"| {step} | units | minutes | for more | points |", "|---|---|---|---|---|"], (0, 0, 0)
    for number, keys in enumerate(steps, 1):
        units = [known[key] for key in keys if key in known]
        if units:
            names = ", ".join(f"[{unit.heading}]({unit.key}.html)" for unit in units)
            here = [(unit.minutes, unit.further, unit.points) for unit in units]
            rows.append(f"| {number} | {names} | {_row(*here)} |")
            sums = tuple(map(sum, zip(sums, *here)))
    return "\n".join([*rows, f"| | together | {_row(sums)} |"])


def _row(*numbers: Sequence[int]) -> str:
    return " | ".join(str(sum(each)) for each in zip(*numbers))


def misconceptions() -> str:
    """A table of the beliefs that the units begin from, and the questions of the museum."""
    rows = ["| belief or question | seen in | met in |", "|---|---|---|"]
    for key, unit in parts().items():
        for each in unit.misconceptions:
            rows.append(f"| {_cell(each.belief)} | {_addresses(each.source)} | [{key}]({key}.html), `{each.met_in}` |")
    for name, task in MUSEUM.tasks.items():
        rows.append(f"| {_cell(task.heading)} | [{task.thread.place}]({task.thread.address}) | "
                    f"[museum](museum.html), `{name}` |")
    return "\n".join(rows)


def _cell(words: str) -> str:
    return words.replace("|", "\\|")


def _addresses(source: str) -> str:
    """A source, its addresses as short links."""
    words = []
    for word in _cell(source).split(" "):
        address = word.rstrip(".,;:)")
        short = address.removeprefix("https://").removeprefix("github.com/")
        words.append(f"[{short}]({address}){word[len(address):]}" if address.startswith("https://") else word)
    return " ".join(words)
