"""Unit 05: the questions of the notebook."""

from __future__ import annotations

from typing import Any

from ...tasks import Prediction, Question, mistake
from .about import UNIT


@UNIT.task
class SameFunction(Prediction):
    """y = relu(x) - relu(-x) is x, for every x. Which gradient does the engine compute at x = 0?"""

    name = "same_function"
    outcome = "kink"
    example = "2"
    otherwise = "the engine looks at one operation at a time. What could the rule of relu return at 0?"

    def right(self) -> float:
        return 0

    def explained(self) -> str:
        return "both relus are at their kink, where the rule of relu returns 0. 0 − (−0) is 0."

    @mistake("that is the slope of the function. But the engine never sees the function: each relu has its rule")
    def slope(self) -> float:
        return 1

    @mistake("half of g would be a possible rule for the kink, and two halves would make 1. The rule of relu returns 0")
    def half(self) -> float:
        return 0.5

    @mistake("that needs a slope of 1 at both kinks. The rule of relu returns 0 at the kink")
    def two(self) -> float:
        return 2

    @mistake("-relu(-x) rises with x, not falls. And both relus are at their kink")
    def minus(self) -> float:
        return -1


@UNIT.task
class FromOutput(Prediction):
    """tanh gave 0.6 for some x, and the gradient of the output is 2. What is the gradient of x?"""

    name = "from_output"
    outcome = "rule"
    example = "0.5"
    otherwise = "the slope is 1 − out², with out = 0.6. Then multiply by g = 2"

    def right(self) -> float:
        return 1.28

    def explained(self) -> str:
        return "2 · (1 − 0.36). The rule needs the output only: x may be forgotten."

    @mistake("that is the slope, 1 − 0.36. And g? y changes twice as fast as out")
    def without_g(self) -> float:
        return 0.64

    @mistake("1 − out² is 1 − 0.36. You took 1 − out")
    def not_squared(self) -> float:
        return 0.8

    @mistake("g is a factor. You added it to the slope")
    def added(self) -> float:
        return 2.64

    @mistake("that is g times the output. The rule takes the slope, 1 − out²")
    def times_out(self) -> float:
        return 1.2

    @mistake("that is g · out². The slope is 1 − out²")
    def only_squared(self) -> float:
        return 0.72

    @mistake("here 0.6 was used as x. 0.6 is the output, and the slope is 1 − out²")
    def as_input(self) -> float:
        return 1.42


@UNIT.task
class Flat(Question):
    """On the bench of tanh: what does it pass back at x = 3, when the gradient of the output is 1?"""

    name = "flat"
    outcome = "rule"
    tolerance = 0.05
    example = "0.5"
    otherwise = "move the slider x to its right end, and the slider gradient to 1; read the number in the table"

    def right(self) -> float:
        return 0.00987

    def explained(self) -> str:
        return "a hundredth. Ten such operations in a row pass back about 10⁻²⁰ of the gradient: it vanishes."

    @mistake("that is the output of tanh at 3. The table has what is passed back")
    def value(self) -> float:
        return 0.995

    @mistake("nearly, but it is not 0: read the number in the table")
    def zero(self) -> float:
        return 0

    @mistake("that is for the gradient 2: put the slider to 1")
    def doubled(self) -> float:
        return 0.0197


@UNIT.task
class Chained(Prediction):
    """h = 3 * x and y = tanh(h); y is 0.6. What is the gradient of x?"""

    name = "chained"
    outcome = "chain"
    example = "0.5"
    otherwise = "two rules, one after the other: tanh passes 1 · (1 − 0.36) to h, the product 3 times this to x"

    def right(self) -> float:
        return 1.92

    def explained(self) -> str:
        return "1 → 0.64 → 1.92. What one rule returns is the g of the next: that is the chain rule."

    @mistake("that is the gradient of h. One rule is left: h = 3 * x")
    def stops_early(self) -> float:
        return 0.64

    @mistake("that is the rule of the product alone. tanh comes first, and passes back 0.64")
    def product_only(self) -> float:
        return 3

    @mistake("the two slopes are multiplied, not added: h rises 3 times as fast as x, and y 0.64 times as fast as h")
    def added(self) -> float:
        return 3.64

    @mistake("that is 3 times the output. The slope of tanh is 1 − out²")
    def times_out(self) -> float:
        return 1.8

    @mistake("that is 3 · out². The slope of tanh is 1 − out²")
    def only_squared(self) -> float:
        return 1.08

    @mistake("x is h / 3, but y changes 3 times as fast with x, not a third as fast")
    def divided(self) -> float:
        return 0.2133


@UNIT.task
class Bias(Prediction):
    """b has 3 numbers and is added to each of 4 rows; the result is summed. What is b.grad?"""

    name = "bias"
    outcome = "broadcasting"
    example = "[1, 2, 3]"
    otherwise = "b[0] rises by 0.01: in how many places does out rise, and by how much does the sum rise?"

    def right(self) -> list[float]:
        return [4, 4, 4]

    def explained(self) -> str:
        return "each number of b is used 4 times, and 4 contributions of 1 are added."

    @mistake("that is what comes back from one row. b was added to 4 rows: each use sends a 1")
    def one_use(self) -> list[float]:
        return [1, 1, 1]

    @mistake("that is everything in one number. b has 3 numbers, and each has its own gradient")
    def all_summed(self) -> float:
        return 12

    @mistake("each number of b is used in one column only, of 4 places. 12 is for all places")
    def all_for_each(self) -> list[float]:
        return [12, 12, 12]

    @mistake("that counts the columns. b[0] is used in one column: how many places has it?")
    def columns(self) -> list[float]:
        return [3, 3, 3]

    @mistake("that is the gradient of the table. b.grad has the shape of b")
    def table(self) -> list[list[float]]:
        return [[1, 1, 1]] * 4

    @mistake("b has 3 numbers, one for each column, and not one for each row")
    def for_rows(self) -> list[float]:
        return [3, 3, 3, 3]


@UNIT.task
class ByShapes(Prediction):
    """out = X @ W. Which product of X and g has the shape of W?"""

    name = "by_shapes"
    outcome = "shapes"
    example = '"X @ g"'
    otherwise = 'X is (4, 3), g is (4, 2), W is (3, 2). A product p @ q of (n, k) and (k, m) has shape (n, m); .T turns'

    def read(self, answer: Any) -> Any:
        return " @ ".join(answer.replace(" ", "").split("@")) if isinstance(answer, str) else answer

    def right(self) -> str:
        return "X.T @ g"

    def explained(self) -> str:
        return "(3, 4) @ (4, 2) is (3, 2): the only product of the two that fits, and it is the right one."

    @mistake("(4, 3) @ (4, 2): 3 columns against 4 rows do not go together. Which one has to be turned?")
    def not_turned(self) -> str:
        return "X @ g"

    @mistake("that has shape (2, 3), and W has (3, 2)")
    def transposed(self) -> str:
        return "g.T @ X"

    @mistake("(4, 2) @ (3, 4): 2 columns against 3 rows do not go together")
    def the_other_way(self) -> str:
        return "g @ X.T"

    @mistake("(4, 3) @ (2, 4): 3 columns against 2 rows do not go together")
    def wrong_one_turned(self) -> str:
        return "X @ g.T"

    @mistake("(4, 2) @ (4, 3): 2 columns against 4 rows do not go together")
    def swapped(self) -> str:
        return "g @ X"

    @mistake("that is the gradient of X: it has the shape (4, 3)")
    def of_x(self) -> str:
        return "g @ W.T"


@UNIT.task
class AtTheKink(Prediction):
    """What do finite differences return for relu at x = 0?"""

    name = "at_the_kink"
    outcome = "kink"
    example = "2"
    otherwise = "relu(0.1) is 0.1, and relu(-0.1) is 0. Subtract, and divide by the step from -0.1 to 0.1"

    def right(self) -> float:
        return 0.5

    def explained(self) -> str:
        return "(0.1 − 0) / 0.2. The rule says 0, and neither is wrong: at a kink there is no slope."

    @mistake("that is what the rule returns. Finite differences do not know the rule: (0.1 − 0) / 0.2 is?")
    def rule(self) -> float:
        return 0

    @mistake("that is the slope to the right. The two sides are 0.2 apart, and the rise is 0.1")
    def right_side(self) -> float:
        return 1

    @mistake("that is the rise. Divide it by the distance, 0.2")
    def rise(self) -> float:
        return 0.1


@UNIT.task
class Step(Prediction):
    """The slope of tanh at 1 by finite differences: which step comes closest, 1e-1, 1e-5 or 1e-15?"""

    name = "step"
    outcome = "check"
    example = "1e-1"
    otherwise = "one of 1e-1, 1e-5 and 1e-15"

    def right(self) -> float:
        return 1e-5

    def explained(self) -> str:
        return "1e-1 is too wide: the curve bends. 1e-15 is too narrow: the numbers are rounded to about 16 digits."

    @mistake("from 0.9 to 1.1 the curve bends, so the step is too wide for a good slope")
    def wide(self) -> float:
        return 1e-1

    @mistake("numbers have about 16 digits: of the tiny difference only one digit is left, and it is divided by 2e-15")
    def narrow(self) -> float:
        return 1e-15
