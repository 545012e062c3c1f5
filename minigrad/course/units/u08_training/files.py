"""Unit 08: loaders that survive damaged entries: rows of a table, and items of any kind."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np

from .... import optim
from ....data import DataLoader, Dataset, Subset, digits
from ....support.errors import MinigradError
from ....support.table import counted
from ...compare import Difference, difference, plain
from ...digits import BATCH, Trained, read_by, tanh_network
from ...feedback import Wrong, written
from ...session import SESSION
from ...tasks import FunctionTask, Mistake, mistake
from .about import UNIT
from .training import train_step

HEAD = ("frequency", "angle", "chord")
SIGNS = {",": "a comma", ";": "a semicolon", "|": "an upright line"}


def report_of(name: str, left_out: Any, what: str) -> list[Any]:
    """The numbers of what was left out; `Wrong` is raised for a report in another form."""
    form = f"a dictionary from the number of the {what} to the reason: {{4: 'no number in angle'}}"
    if not isinstance(left_out, dict):
        raise Wrong(name, f"the report is {written(left_out)}", form)
    for number, why in left_out.items():
        if not isinstance(number, int | np.integer):
            raise Wrong(name, f"the report has the key {written(number)}", form)
        if not str(why or "").strip() or why is True:
            raise Wrong(name, f"{what} {number} is left out without a reason", "say in a few words what is wrong with "
                                                                               "it")
    return sorted(map(int, left_out))


class ReportTask(FunctionTask):
    """A function that returns what is good, and a report of the rest; the words of the report are free."""

    def explains(self, known: Mistake, args: tuple[Any, ...], yours: Any) -> bool:
        return _form(self.wrong(known)(*args)) == _form(yours)


def _form(result: Any) -> Any:
    """A result in a form that can be compared, without the words of the report."""
    return [repr(plain(each)) for each in result[0]], sorted(map(int, result[1]))


@UNIT.task
class ReadRows(ReportTask):
    """`read_rows(lines)` returns the rows of a table as numbers, and a report of what was left out."""

    name = "read_rows"
    points = 2
    minutes = 15
    outcome = "data"
    otherwise = (
        "for each line after the header: split it, check the number of fields, float() each, check math.isfinite. "
        "If any of this fails: left_out[number] = the reason"
    )
    advice: ClassVar[dict[str, str]] = {
        "could not convert": "float() raises ValueError for such a field: put it into try: ... except ValueError as "
                             "error:",
        "empty string": "float() raises ValueError for such a field: put it into try: ... except ValueError as error:",
        "index out of range": "a line may have fewer fields than the header: compare len(fields) first",
        "'list' object has no attribute 'split'": "lines is a list of texts: split each line, not the list",
    }

    def vary(self, draw: random.Random) -> None:
        self.sign = draw.choice(list(SIGNS))

    def text(self) -> str:
        return (
            "A **table** comes as lines of text. The first line has the names of the columns, and each other line "
            "should "
            f"have as many numbers, **separated by {SIGNS[self.sign]}** (`{self.sign}`) in your file. Not every line "
            f"is "
            "so. `read_rows(lines)` returns two things: the **rows**, a list with a list of floats for each good line; "
            "and **left_out**, a dictionary from the number of each bad line to the reason, in words. Lines are "
            "counted "
            "from 1, as an editor does, so the header is line 1. A line is bad if it has fewer or more fields than the "
            "header, or a field that is not a finite number (`nan` and `inf` are not)."
        )

    def given(self) -> dict[str, Any]:
        return {"lines": self.lines(["800", "0", "0.3"], ["1000", "", "0.3"], [" 1250 ", "1.5", "0.3"],
                                    ["1600", "nan", "0.3"])}

    def lines(self, *rows: list[str]) -> list[str]:
        """A file of these rows, as Python reads it."""
        return [f"{self.sign.join(row)}\n" for row in (list(HEAD), *rows)]

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        def good() -> list[str]:
            third = draw.choice(["0.3", " 0.1 ", "3e-1"])
            return [str(draw.choice([800, 1000, 1250])), str(draw.choice([0, 1.5, 4])), third]

        damaged = (["800", "", "0.3"], ["800", "n/a", "0.3"], ["800", "1.5"], ["800", "1.5", "0.3", "7"],
                   ["nan", "1.5", "0.3"], ["800", "1.5", "inf"])
        yield (self.lines(good(), good()),)
        for bad in damaged:
            yield (self.lines(good(), bad, good()),)
        yield (self.lines(good(), *damaged, good(), damaged[0]),)

    def _call(self, args: tuple[Any, ...]) -> str:
        return "the lines " + " / ".join([line.strip() for line in args[0]][:4])

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        if yours is None or not isinstance(yours, tuple | list) or len(yours) != 2:
            hint = "two things, with a comma: return rows, left_out"
            raise Wrong(self.name, f"it returned {written(yours)}", hint)
        rows, left_out = yours
        right_rows, right_out = self.right(*args)
        if isinstance(rows, np.ndarray):
            rows = rows.tolist()
        listed = report_of(self.name, left_out, "line")
        missing = [number for number in right_out if number not in listed]
        surplus = [number for number in listed if number not in right_out]
        if missing:
            return f"line {missing[0]} is bad, and the report does not name it"
        if surplus:
            return f"the report names line {surplus[0]}, which is good"
        if not isinstance(rows, list | tuple) or not all(isinstance(row, list | tuple) for row in rows):
            return f"the rows are {written(rows)}, not a list of lists"
        if len(rows) != len(right_rows):
            return f"there are {counted(len(right_rows), 'good line')}, and {counted(len(rows), 'row')} came back"
        return next(filter(None, [difference(list(one), two, f"row {i}") for i, (one, two)
                                  in enumerate(zip(rows, right_rows))]), None)

    def right(self, lines: Any) -> Any:
        return self.read(lines)

    def read(
        self, lines: Any, *, first: int = 1, stops: bool = False, silent: bool = False, filled: float | None = None,
        finite: bool = True, counts: bool = True, texts: bool = False, header: bool = False,
    ) -> Any:
        """The right answer, or one with a fault."""
        rows: list[Any] = []
        left_out = {1: "a header"} if header else {}
        many = len(lines[0].split(self.sign))
        for number, line in enumerate(lines[1:], first + 1):
            fields = line.split(self.sign)
            try:
                if counts and len(fields) != many:
                    raise ValueError(f"{counted(len(fields), 'field')}, not {many}")
                row = [self._number(field, filled) for field in fields]
                if finite and not all(map(math.isfinite, row)):
                    raise ValueError("not a finite number")
                rows.append(fields if texts else row)
            except ValueError as error:
                if not silent:
                    left_out[number] = str(error)
                if stops:
                    break
        return rows, left_out

    def _number(self, field: str, filled: float | None) -> float:
        try:
            return float(field)
        except ValueError:
            if filled is None:
                raise
            return filled

    @mistake("the rows are right, but the report is empty: a line that is dropped silently is missed too late, or "
             "never. "
             "left_out[number] = the reason")
    def silent(self, lines: Any) -> Any:
        return self.read(lines, silent=True)

    @mistake("float() accepts nan and inf: one nan makes the loss nan, and with it all weights. Check each number with "
             "math.isfinite")
    def nan_accepted(self, lines: Any) -> Any:
        return self.read(lines, finite=False)

    @mistake("a line with fewer or more fields than the header is bad as well: compare len(fields) with the header's")
    def any_number_of_fields(self, lines: Any) -> Any:
        return self.read(lines, counts=False)

    @mistake("two checks are missing: the number of fields, and math.isfinite for each number (float() accepts nan and "
             "inf)")
    def float_alone(self, lines: Any) -> Any:
        return self.read(lines, counts=False, finite=False)

    @mistake("the lines are counted from 0, or the header is not counted: an editor calls the header line 1. "
             "enumerate(lines, 1) counts so")
    def from_zero(self, lines: Any) -> Any:
        return self.read(lines, first=0)

    @mistake("the first line after the header is line 2: the header is line 1")
    def one_too_far(self, lines: Any) -> Any:
        return self.read(lines, first=2)

    @mistake("it stops at the first bad line, and the good lines after it are lost: go on with the next")
    def stops(self, lines: Any) -> Any:
        return self.read(lines, stops=True)

    @mistake("a 0 in the place of a missing number looks like a measurement, and the model learns it. Leave the line "
             "out")
    def filled_with_zero(self, lines: Any) -> Any:
        return self.read(lines, filled=0.0)

    @mistake("a nan in the place of a missing number makes the loss nan, and with it all weights. Leave the line out")
    def filled_with_nan(self, lines: Any) -> Any:
        return self.read(lines, filled=math.nan, finite=False)

    @mistake("the fields are still texts: float(field) makes a number of each")
    def texts(self, lines: Any) -> Any:
        return self.read(lines, texts=True)

    @mistake("the header is not a row and not bad: begin with the second line, lines[1:]")
    def header_reported(self, lines: Any) -> Any:
        return self.read(lines, header=True)


# ---- items of any kind -----------------------------------------------------------------------------------------------


class Pictures(Dataset):
    """Pictures as files in memory: a line `P2 8 8 16`, then 64 grey levels.  Some files are damaged."""

    def __init__(self, files: list[bytes], labels: Any) -> None:
        self.files, self.labels = files, labels

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        kind, wide, high, most, *levels = self.files[index].decode("ascii").split()
        if kind != "P2":
            raise ValueError(f"not a picture: it begins with {kind}")
        pixels = np.array(list(map(int, levels)), np.float32) / int(most)
        return pixels.reshape(int(high) * int(wide)), self.labels[index]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut off": lambda file: file[:60], "empty": lambda file: b"", "another format": lambda file: b"GIF89a" + file,
    "a letter": lambda file: file[:-2] + b"x\n", "not text": lambda file: b"\xff\xd8" + file,
}


def digit_files(count: int | None = None, draw: random.Random | None = None, bad: int = 12) -> Pictures:
    """Digits of the training set as files, `bad` of them damaged."""
    images, labels = [each[:count] for each in digits()[0].arrays]
    files = [("P2 8 8 16\n" + " ".join(str(round(16 * float(x))) for x in image.reshape(-1)) + "\n").encode()
             for image in images]
    draw = draw or random.Random(8)
    for number, index in enumerate(draw.sample(range(1, len(files)), bad)):
        files[index] = list(DAMAGES.values())[number % len(DAMAGES)](files[index])
    return Pictures(files, labels)


class Sentences(Dataset):
    """Lines of text; one is not UTF-8, and one has a letter that the alphabet lacks."""

    lines: ClassVar[list[bytes]] = [b"anna", b"bo", b"zo\xeb", b"nab", b"Anna", b"oban"]

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, index: int) -> list[int]:
        alphabet = {letter: number for number, letter in enumerate("abno")}
        return [alphabet[letter] for letter in self.lines[index].decode("utf-8")]


@UNIT.task
class Usable(ReportTask):
    """`usable(dataset)` returns the numbers of the items that can be loaded, and a report of the others."""

    name = "usable"
    points = 0
    minutes = 7
    outcome = "data"
    otherwise = "for index in range(len(dataset)): try dataset[index]; good.append(index), or except Exception as error"
    advice: ClassVar[dict[str, str]] = {
        "not a picture": "any error can come out of an item: except Exception as error",
        "codec can't decode": "any error can come out of an item, also a UnicodeDecodeError: except Exception as error",
        "not enough values": "any error can come out of an item: except Exception as error",
        "cannot reshape": "any error can come out of an item: put dataset[index] inside of the try",
        "invalid literal": "any error can come out of an item: put dataset[index] inside of the try",
    }

    def given(self) -> dict[str, Any]:
        return {"files": digit_files(), "train": train_on}

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield (digit_files(12, draw, 5),)
        yield (Sentences(),)
        yield (digit_files(6, draw, 0),)

    def _call(self, args: tuple[Any, ...]) -> str:
        bad = [str(number) for number in self.right(*args)[1]]
        kind = "lines of text" if isinstance(args[0], Sentences) else "pictures"
        said = f"numbers {', '.join(bad)} cannot be loaded" if bad else "all load"
        return f"{len(args[0])} {kind}, of which {said}"

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        if yours is None or not isinstance(yours, tuple | list) or len(yours) != 2:
            raise Wrong(self.name, f"it returned {written(yours)}", "two things, with a comma: return good, left_out")
        good, left_out = self.right(*args)
        listed = report_of(self.name, yours[1], "item")
        missing = [number for number in left_out if number not in listed]
        if missing:
            return f"item {missing[0]} cannot be loaded, and the report does not name it"
        return difference(yours[0], good, "the list of good items") or difference(listed, list(left_out), "the report")

    def right(self, dataset: Any) -> Any:
        return self.tried(dataset)

    def tried(
        self, dataset: Any, first: int = 0, silent: bool = False, stops: bool = False, items: bool = False
    ) -> Any:
        """The right answer, or one with a fault."""
        good: list[Any] = []
        left_out = {}
        for index in range(len(dataset)):
            try:
                item = dataset[index]
                good.append(item if items else index + first)
            except Exception as error:
                if not silent:
                    left_out[index + first] = f"{type(error).__name__}: {error}"
                if stops:
                    break
        return good, left_out

    @mistake("the report is empty: an item that is dropped silently is missed too late, or never. left_out[index] = "
             "the "
             "reason")
    def silent(self, dataset: Any) -> Any:
        return self.tried(dataset, silent=True)

    @mistake("it stops at the first bad item, and the good items after it are lost: go on with the next")
    def stops(self, dataset: Any) -> Any:
        return self.tried(dataset, stops=True)

    @mistake("items are counted from 0, as in dataset[0]")
    def from_one(self, dataset: Any) -> Any:
        return self.tried(dataset, first=1)

    @mistake("these are the items themselves. Return their numbers, so that nothing has to stay in memory")
    def items(self, dataset: Any) -> Any:
        return self.tried(dataset, items=True)


def train_on(usable: Callable[[Any], Any]) -> Trained:
    """Train on 1,437 files of which 12 are damaged, with those that a student's function lets through."""
    files = digit_files()
    good, left_out = usable(files)
    listed = [f"{number} ({why})" for number, why in left_out.items()]
    more = f", and {len(listed) - 3} more" * (len(listed) > 3)
    print(f"{len(good):,} pictures; left out: {', '.join(listed[:3])}{more}")
    model = tanh_network()
    optimizer, before, losses = optim.AdamW(model.parameters(), lr=0.01), read_by(model), []
    loader = DataLoader(Subset(files, good), BATCH, shuffle=True, seed=0)
    for _ in range(4):
        try:
            losses += [float(train_step(model, optimizer, images, labels).item()) for images, labels in loader]
        except MinigradError as error:
            raise Wrong("usable", str(error).partition("\n")[0], "a bad item came through: leave it out") from None
    return Trained(SESSION.author, None, losses, before, read_by(model))
