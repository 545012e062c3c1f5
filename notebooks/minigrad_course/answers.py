"""Right answers in another form, such as numbers in words, and which parts of a wrong answer are right."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Sequence
from string import ascii_letters
from typing import Any

from .compare import same

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
SMALL = {word: float(number) for number, word in enumerate(ONES.split())}
LARGE = {word: float(number) for number, word in zip(range(20, 100, 10), TENS.split())}
WORDS = SMALL | LARGE | {
    "no": 0.0, "none": 0.0, "nothing": 0.0, "never": 0.0, "once": 1.0, "twice": 2.0, "thrice": 3.0, "half": 0.5,
    "third": 1 / 3, "quarter": 0.25, "fifth": 0.2, "tenth": 0.1, "hundredth": 0.01, "thousandth": 0.001,
    "dozen": 12.0, "hundred": 100.0, "thousand": 1000.0, "million": 1e6, "infinity": math.inf, "infinite": math.inf,
} | {f"{ten}-{one}": LARGE[ten] + SMALL[one] for ten in LARGE for one in SMALL if 1 <= SMALL[one] <= 9}
ARTICLES = r"\b(a|an|the|one(?= (half|third|quarter|fifth|tenth)))\s+"
SIGNS = {"minus": "-", "times": "*", "·": "*", "×": "*", "^": "**", "−": "-", "√": "sqrt "}
FUNCTIONS: dict[str, Callable[[float], float]] = {
    "log": math.log, "ln": math.log, "log2": math.log2, "log10": math.log10, "sqrt": math.sqrt, "exp": math.exp,
}
OPERATORS: dict[type[ast.AST], Callable[..., float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: operator.pow, ast.USub: operator.neg, ast.UAdd: operator.pos,
}


def number_in(text: str) -> float | None:
    """The number that a text says in words or as a formula; None where it says something else.

    >>> number_in("none"), number_in("a tenth"), number_in("log 10"), number_in("1 / sqrt(100)"), number_in("a lot")
    (0.0, 0.1, 2.302585092994046, 0.1, None)
    """
    formula = text.lower().strip(" .!")
    for sign, written in SIGNS.items():
        formula = formula.replace(sign, written)
    formula = re.sub(ARTICLES, "", formula)
    formula = re.sub(r"[a-z]+(-[a-z]+)?", lambda found: _written(found[0]), formula)
    formula = re.sub(rf"\b({'|'.join(FUNCTIONS)})\s+([\d.]+)", r"\1(\2)", formula)
    try:
        return _value(ast.parse(formula, mode="eval").body)
    except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError, MemoryError):
        return None


def _written(word: str) -> str:
    """A word as a number, where it is one: `10.0` for ten, and `inf` for infinity."""
    return str(WORDS[word]) if word in WORDS else word


def _value(node: ast.AST) -> float:
    """The value of a formula of numbers alone; any other is a ValueError."""
    match node:
        case ast.Constant(int() | float() as number) if not isinstance(number, bool):
            return float(number)
        case ast.Name("inf"):
            return math.inf
        case ast.UnaryOp(op, operand) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(operand))
        case ast.BinOp(left, op, right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(left), _value(right))
        case ast.Call(ast.Name(name), [argument], []) if name in FUNCTIONS:
            return FUNCTIONS[name](_value(argument))
    raise ValueError(ast.dump(node))


def in_numbers(answer: Any, right: Any) -> Any:
    """An answer with numbers in the places of words, where the right answer has numbers there.

    >>> in_numbers("twice", 3), in_numbers(["none", 2], [1, 2]), in_numbers("once", "once")
    (2.0, [0.0, 2], 'once')
    """
    if isinstance(right, list | tuple) and isinstance(answer, list | tuple) and len(answer) == len(right):
        return type(answer)([in_numbers(*pair) for pair in zip(answer, right)])
    if not isinstance(answer, str) or not is_count(right) or _is_number(answer):
        return answer  # digits in quotation marks have a hint of their own
    number = number_in(answer)
    return answer if number is None else number


def is_count(right: Any) -> bool:
    """Whether an answer is one number; True and False are words."""
    return isinstance(right, int | float) and not isinstance(right, bool)


def other_form(answer: Any, right: Any, example: str = "") -> str | None:
    """How to write an answer that may be right, where it is written in another form.

    >>> other_form("0.1", 0.1), other_form((0, 1), 0.1), other_form([0.1], 0.1), other_form({1, 3}, [1, 3])
    ('without the quotation marks', 'with a point, not a comma: 0.1', ..., 'in brackets, [ ], which keep the order')
    >>> other_form("a lot", 10, "7")
    'a number, such as 7'
    """
    several = isinstance(right, list | tuple)
    if isinstance(right, str | dict | bool) or (several and all(isinstance(each, str) for each in right)):
        return None
    if isinstance(answer, str):
        alone = answer.strip().rstrip(ascii_letters + "µ ")
        if _is_number(answer):
            return "without the quotation marks"
        if not is_count(right):
            return None
        if _is_number(alone):
            return f"the number alone: {alone}"
        return f"a number, such as {example}" if example else "a number"
    if isinstance(answer, list | tuple) and any(isinstance(each, str) and _is_number(each) for each in answer):
        return "the numbers without quotation marks"
    if isinstance(right, int | float):
        if isinstance(answer, tuple) and len(answer) == 2 and answer[0] == int(right) != right:
            return f"with a point, not a comma: {answer[0]}.{answer[1]}"
        if isinstance(answer, list | tuple) and len(answer) == 1:
            return "one number, without brackets"
    elif isinstance(answer, set):
        return "in brackets, [ ], which keep the order"
    return None


def _is_number(text: str) -> bool:
    """Whether a text is a number in digits, or several with commas between them."""
    try:
        return bool([float(part) for part in text.strip("[]() ").split(",")]) and bool(re.search(r"\d", text))
    except ValueError:
        return False


# ---- how a wrong answer differs --------------------------------------------------------------------------------------


def beside(answer: Any, right: Any) -> str:
    """How a wrong prediction differs from the right answer, in one word.

    >>> beside(3, 10), beside([1, 3], [1, 2]), beside("a", "b")
    ('larger', 'different', 'different')
    """
    if not is_count(right) or not is_count(answer) or answer != answer:
        return "different"
    return "larger" if answer < right else "smaller"


def right_parts(answer: Any, right: Any, any_order: bool = False) -> str:
    """Which parts of a half-right answer are right, as a sentence; empty where all parts are wrong.

    >>> right_parts([1, 3, 5], [1, 2, 5]), right_parts((2, 10), (2, 4)), right_parts([1, 2], [3, 4])
    ('Parts 1 and 3 of 3 are right.', 'Part 1 of 2 is right.', '')
    >>> right_parts(["a", "b"], ["b", "c"], any_order=True)
    '1 of yours is right, 1 does not belong there, and 1 is missing.'
    """
    if not all(isinstance(each, list | tuple) for each in (answer, right)):
        return ""
    if any_order:
        return _chosen(answer, right)
    if len(answer) != len(right) or len(right) < 2:
        return ""
    good = [str(number) for number, pair in enumerate(zip(answer, right), 1) if same(*pair)]
    if not 0 < len(good) < len(right):
        return ""
    parts = "Part" if len(good) == 1 else "Parts"
    named = " and ".join(filter(None, [", ".join(good[:-1]), good[-1]]))
    return f"{parts} {named} of {len(right)} {'is' if len(good) == 1 else 'are'} right."


def _chosen(answer: Sequence[Any], right: Sequence[Any]) -> str:
    good = sum(each in right for each in answer)
    strange, missing = len(answer) - good, len(right) - good
    if not good or not (strange or missing):
        return ""
    said = [f"{good} of yours {_are(good)} right"]
    said += [f"{strange} {'does' if strange == 1 else 'do'} not belong there"] * bool(strange)
    said += [f"{missing} {_are(missing)} missing"] * bool(missing)
    return f"{said[0]} and {said[1]}." if len(said) == 2 else f"{said[0]}, {said[1]}, and {said[2]}."


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
