"""Unit 10: the questions of the notebook."""

from __future__ import annotations

from typing import Any, ClassVar

from ...predicting import Choice, Printed
from ...tasks import Prediction, Question
from .about import UNIT


@UNIT.task
class FrozenRate(Prediction):
    """w is 8, and `step` was traced while rate was 0.0. Now rate is 0.5. What is w after three calls?"""

    name = "frozen_rate"
    outcome = "baked"
    example = "2.0"
    otherwise = "the trace was made by one run, when rate was 0.0. What did it multiply by?"
    wrong_values = (
        (1, "that is eager mode: three times the half. The trace was made while rate was 0.0, and reads no name"),
        (4, "that would be one step of 0.5. Which rate is in the graph?"),
        (2,
         "that would be two steps of 0.5: is only the first call frozen? The graph is the same in all calls"),
        (0, "w − 0.0 · w is w, not 0"),
        ("error", "there is no error: the graph runs. That is what makes this fault hard to find"),
    )
    right_value = 8
    why = "the graph holds the number 0.0, not the name `rate`. w − 0.0 · w is w, for ever."


@UNIT.task
class PrintedOrder(Printed, Prediction):
    """What does the program print, line by line?"""

    name = "printed_order"
    outcome = "phases"
    example = '["one", "two", "three"]'
    otherwise = "a list of texts, one for each line: when is a value needed for the first time?"
    hints: ClassVar[dict[str, str]] = {
        "turned": "the block is recorded from top to bottom. What is printed while it is recorded?",
        "without_the_last": "all three lines appear: a recorded print is printed when the graph is computed",
    }
    program = """
import minigrad as mg

x = mg.ones(3)
with mg.graph():
    y = x * 2
    mg.print("computed")
    print("recorded")
    y.sum().item()
    print("read")
"""
    wrong_values = (
        (["computed", "recorded", "read"],
         "that is eager mode, where each line runs at once. In graph mode, mg.print is recorded, as y is"),
        (["recorded", "read", "computed"],
         "nothing waits for the end of the block here: item() needs a number, so the graph is computed "
         "there"),
        (["recorded", "read"],
         "item() needs a number, so the graph is computed there, with the recorded print in it"),
        (["computed", "read"],
         "Python's own print runs when Python reaches its line, in graph mode too: `recorded` appears"),
        (["recorded", "computed", "6.0", "read"],
         "item() returns the number, and prints nothing. Which lines print?"),
    )
    why = "`mg.print` is an operation: it is recorded like the product, and `item()` needs a value: now all run."


@UNIT.task
class FirstNumber(Question):
    """In the view: which stage is the first in which graph mode has a number?"""

    name = "first_number"
    outcome = "phases"
    example = "3"
    otherwise = "press → and watch the lines: in eager mode each ends with its value. When is there one again?"
    wrong_values = (
        (1, "stage 1 is eager mode, where each line has its number at once. Graph mode begins with stage 2"),
        (2, "in stage 2 each operation is recorded. Has it a value?"),
        (3, "in stage 3 a pass changes the graph. Nothing is computed yet"),
        (4, "in stage 4 the kernel is chosen. It waits"),
        (5, "in stage 5 the loops of the kernel are written. Has a number come out of them?"),
        (7, "stage 7 is the second call. The first call had a number before"),
    )
    right_value = 6
    why = "stage 2 records, stages 3 to 5 optimise, and stage 6 computes: all in one kernel."


@UNIT.task
class PythonRuns(Prediction):
    """Four calls of a jitted function. How many lines does `print` print?"""

    name = "python_runs"
    outcome = "calls"
    example = "3"
    otherwise = "Python runs when a new trace is made. Which calls need a new graph?"
    wrong_values = (
        (4, "that is eager mode. A later call of the same shape runs the program, which has no print in it"),
        (1, "call 3 has another shape. The loops of the program are made for three numbers"),
        (3, "Python runs for a new shape, in call 3. Do other numbers need another graph? And is call 4 new?"),
        (0, "Python has to run at least once: where else would the graph come from?"),
        ([1, 3], "these are the calls in which Python runs. How many lines is that?"),
    )
    right_value = 2
    why = "call 1, and call 3, which has another shape. Call 4 finds the first trace again."


@UNIT.task
class SmallGradient(Prediction):
    """`clip` was traced by the example [3, 4]. What does the graph compute for [0.4, 0.3]?"""

    name = "small_gradient"
    outcome = "baked"
    example = "[1.0, 2.0]"
    otherwise = "the example had length 5, so the branch ran: g · (limit / length). What is the length of [0.4, 0.3]?"
    wrong_values = (
        ([0.4, 0.3],
         "that is what the function does: 0.5 is below the limit. The graph has no `if`: the example's branch "
         "is in it"),
        ([0.08, 0.06],
         "the length is computed anew, by operations in the graph: it is 0.5 now. Only the decision is old"),
        ([0.6, 0.8], "that is the example's result. The graph holds operations, which run with new numbers"),
        ([0.2, 0.15], "half as long? The length is 0.5, and limit / length is 2"),
        (1, "that is the length of the result. The function returns two numbers"),
        ("error", "there is no error: the graph has no `if` that could need a value. Which operations run?"),
    )
    right_value = [0.8, 0.6]
    why = "the graph always divides by the length: a short gradient becomes longer. No error is raised."


@UNIT.task
class ThreeWays(Prediction):
    """`clip` for [0.4, 0.3], by script, by trace of [3, 4], and by annotation: right, wrong, or an error?"""

    name = "three_ways"
    outcome = "ways"
    example = '["error", "right", "wrong"]'
    otherwise = "one word for each of script, trace and annotation: a script reads the code, a trace runs it"
    hints: ClassVar[dict[str, str]] = {
        "turned": "the other way round: first the script, and the annotation last",
        "all_like_the_first": "the script keeps both branches. The two others have no branch in their graph",
        "all_like_the_last": "only one of them stops. It traces without values, so it cannot decide the `if`",
    }
    wrong_values = (
        (["right", "wrong", "wrong"],
         "the annotation traces too, with placeholders that have no values: `if` on one of them is an error"),
        (["right", "wrong", "right"],
         "@mg.jit does not read the source: it traces, and its placeholders have no values for the `if`"),
        (["right", "error", "error"],
         "the trace by example has values, those of the example. So `if` works, and takes one branch for "
         "ever"),
        (["wrong", "right", "error"],
         "is that the order trace, script, annotation, as on the page? Here the script is the first"),
        (["right", "right", "error"],
         "the trace has only the branch of the example `long`. What did it compute for `short`?"),
    )

    def read(self, answer: Any) -> Any:
        several = answer.replace(",", " ").split() if isinstance(answer, str) else answer
        return [str(each).strip().lower() for each in several] if isinstance(several, list | tuple) else answer

    right_value = ["right", "wrong", "error"]
    why = "an error is the better failure: it names the line. The trace by example is wrong in silence."


@UNIT.task
class Divisions(Prediction):
    """`halve` by example with 12, and by script: how many `divide` nodes are in each graph?"""

    name = "divisions"
    outcome = "ways"
    example = "2, 3"
    otherwise = "12 → 6 → 3 → 1.5 → 0.75: count the turns of the loop. A script holds the body of the loop once"
    hints: ClassVar[dict[str, str]] = {
        "turned": "the other way round: first the trace by example",
        "all_like_the_first": "the script has a loop node, with the body in it once",
        "all_like_the_last": "the trace has no loop: it holds each division that the example ran",
    }
    wrong_values = (
        ((3, 1), "12 → 6 → 3 → 1.5 is not the end: 1.5 is still greater than 1"),
        ((4, 0), "a loop node has a body, which is a graph too: the division is in it"),
    )
    right_value = 4, 1
    why = "the trace is a list of four divisions, for ever four. The script is a `while_loop` with a body."


@UNIT.task
class NanMaker(Choice, Prediction):
    """x * log(x) at x = 0: which operation makes the first nan?"""

    name = "nan_maker"
    outcome = "debug"
    right_value = "multiply"
    options: ClassVar[dict[str, str]] = {
        "log": "log(0) is −infinity, which is not a nan. What is 0 times −infinity?",
        "multiply": "",
        "sum": "a sum passes a nan on. It came from an operation before",
    }
    why = "log(0) is −infinity, and 0 · −infinity is not a number. The tool names the line of the product."
