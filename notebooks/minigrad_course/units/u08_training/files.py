"""Unit 08: loaders that survive damaged entries: rows of a table, and items of any kind."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np

from minigrad import optim
from minigrad.data import DataLoader, Dataset, Subset, digits
from minigrad.support.errors import MinigradError
from minigrad.support.table import counted

from ...compare import Difference, difference, plain
from ...digits import BATCH, EPOCHS, Trained, fitted, tanh_network
from ...feedback import Wrong, written
from ...tasks import FunctionTask, Mistake
from .about import UNIT

HEAD = ("frequency", "angle", "chord")
SIGNS = {",": "a comma", ";": "a semicolon", "|": "an upright line"}
DAMAGED = (["800", "", "0.3"], ["800", "n/a", "0.3"], ["800", "1.5"], ["800", "1.5", "0.3", "7"],
           ["nan", "1.5", "0.3"], ["800", "1.5", "inf"])
ANY = "any error can come out of an item: put dataset[index] into try, and write except Exception as error"


class ReportTask(FunctionTask):
    """A function that returns what is good, and a report of the rest.  The words of the report are free."""

    outcome = "data"
    what: ClassVar[str]  # a line, an item
    reason: ClassVar[str]  # an example

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        if not isinstance(yours, tuple | list) or len(yours) != 2:
            raise Wrong(self.name, f"it returned {written(yours)}", "two things, with a comma: the good, and left_out")
        if isinstance(yours[0], dict):
            raise Wrong(self.name, "the report comes first", "swapped: the good come first, then left_out")
        right, reported = self.right(*args), self.reported(yours[1])
        for number in sorted({*right[1]} ^ {*reported}):
            said = "bad, and the report does not name it" if number in right[1] else "good, and reported"
            return f"{self.what} {number} is {said}"
        good = list(yours[0])
        if len(good) != len(right[0]):
            return f"{counted(len(right[0]), f'{self.what} is', f'{self.what}s are')} good, and {len(good)} came back"
        return next(filter(None, [difference(one, two, "the list") for one, two in zip(good, right[0])]), None)

    def reported(self, left_out: Any) -> list[int]:
        """The numbers of what was left out; `Wrong` is raised for a report in another form."""
        form = f"a dictionary from the number of the {self.what} to the reason: {{4: {self.reason!r}}}"
        if not isinstance(left_out, dict):
            raise Wrong(self.name, f"the report is {written(left_out)}", form)
        for number, why in left_out.items():
            if not any(map(str.isalpha, str(why or ""))):
                raise Wrong(self.name, f"{self.what} {number} is reported without a reason: {written(why)}", (
                    "say what is wrong with it in words. str(error) is empty for an `assert` without a text"))
            if not isinstance(number, int):
                raise Wrong(self.name, f"the report has the entry {written(number)}: {written(why)}", form)
        return sorted(map(int, left_out))

    def explains(self, known: Mistake, args: tuple[Any, ...], yours: Any) -> bool:
        return _form(self.wrong(known)(*args)) == _form(yours)


def _form(result: Any) -> Any:
    """A result in a form that can be compared, without the words of the report."""
    return [repr(plain(each)) for each in result[0]], sorted(map(int, result[1]))


@UNIT.task
class ReadRows(ReportTask):
    """`read_rows(lines)` returns the rows of a table as numbers, and a report of what was left out."""

    name = "read_rows"

    def vary(self, draw: random.Random) -> None:
        self.sign = draw.choice(list(SIGNS))

    def given(self) -> dict[str, Any]:
        return {"lines": self.lines(["800", "0", "0.3"], *DAMAGED[:1], [" 1250 ", "1.5", "0.3"], *DAMAGED[-1:])}

    def lines(self, *rows: list[str]) -> list[str]:
        """A file of these rows, as Python reads it."""
        return [f"{self.sign.join(row)}\n" for row in (list(HEAD), *rows)]

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        good = [[str(draw.choice([800, 1000])), draw.choice(["0", "1.5"]), each] for each in ("0.3", " 0.1 ", "3e-1")]
        yield (self.lines(*good),)
        for bad in DAMAGED:
            yield (self.lines(good[0], bad, good[1]),)
        yield (self.lines(good[0], *DAMAGED, good[2], DAMAGED[0]),)

    def reported(self, left_out: Any) -> list[int]:
        found = super().reported(left_out)
        if 1 in found:
            hint = "the header is not a row and not bad: begin with the second line, lines[1:]"
            raise Wrong(self.name, "line 1 is the header, and it is reported", hint)
        return found

    def _call(self, args: tuple[Any, ...]) -> str:
        return "the lines " + " / ".join([line.strip() for line in args[0]][:4])

    def right(self, lines: Any) -> Any:
        rows, left_out = [], {}
        for number, line in enumerate(lines[1:], 2):
            fields = line.split(self.sign)
            try:
                row = [float(each) for each in fields]
                if len(fields) != len(HEAD):
                    raise ValueError("another number of fields")
                if not all(map(math.isfinite, row)):
                    raise ValueError("not a finite number")
                rows.append(row)
            except ValueError as error:
                left_out[number] = str(error)
        return rows, left_out


# ---- items of any kind -----------------------------------------------------------------------------------------------


class Pictures(Dataset):
    """Pictures as files in memory: a line `P2 8 8 16`, then 64 grey levels.  Some files are damaged."""

    def __init__(self, count: int, bad: int, draw: random.Random) -> None:
        images, self.labels = [each[:count] for each in digits()[0].arrays]
        levels = np.round(16 * images.reshape(len(images), 64)).astype(int)
        self.files = [("P2 8 8 16\n" + " ".join(map(str, row)) + "\n").encode() for row in levels.tolist()]
        for number, index in enumerate(draw.sample(range(1, len(self.files)), bad)):
            file = self.files[index]
            damaged = file[:60], b"", b"GIF89a" + file, file[:-2] + b"x\n", b"\xff\xd8" + file
            self.files[index] = damaged[number % len(damaged)]

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        kind, _, _, most, *levels = self.files[index].decode("ascii").split()
        if kind != "P2":
            raise ValueError(f"not a picture: it begins with {kind}")
        return np.array(list(map(int, levels)), np.float32).reshape(64) / int(most), self.labels[index]


class Sentences(Dataset):
    """Lines of text; one is not UTF-8, and one has a letter that the alphabet lacks."""

    lines = (b"anna", b"bo", b"zo\xeb", b"nab", b"Anna", b"oban")

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, index: int) -> list[int]:
        return [{"a": 0, "b": 1, "n": 2, "o": 3}[letter] for letter in self.lines[index].decode("utf-8")]


@UNIT.task
class Usable(ReportTask):
    name = "usable"
    advice: ClassVar[dict[str, str]] = {
        "'int' object is not iterable": "a number cannot be walked through: for index in range(len(dataset))",
        "unhashable": "for item in dataset gives the items. Their numbers: for index in range(len(dataset))",
    } | dict.fromkeys(("a picture", "codec can't", "not enough values", "reshape", "invalid literal", "'A'"), ANY)

    def given(self) -> dict[str, Any]:
        return {"train": train_on}

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield (Pictures(12, 5, draw),)
        yield (Sentences(),)

    def _call(self, args: tuple[Any, ...]) -> str:
        kind = "lines of text" if isinstance(args[0], Sentences) else "pictures"
        return f"{len(args[0])} {kind}, of which {', '.join(map(str, self.right(*args)[1]))} cannot be loaded"

    def right(self, dataset: Any) -> Any:
        good, left_out = [], {}
        for index in range(len(dataset)):
            try:
                dataset[index]
                good.append(index)
            except Exception as error:
                left_out[index] = f"{type(error).__name__}: {error}"
        return good, left_out


def train_on(usable: Callable[[Any], Any]) -> Trained:
    """Train on 1,437 files of which 12 are damaged, with those that a student's function lets through."""
    files = Pictures(1437, 12, random.Random(8))
    good, left_out = usable(files)
    listed = [f"{number} ({why})" for number, why in left_out.items()]
    print(f"{len(good):,} pictures; left out: {', '.join(listed[:3])}, and {max(len(listed) - 3, 0)} more")
    loader = DataLoader(Subset(files, good), BATCH, shuffle=True, seed=0)
    try:
        batches = [batch for _ in range(EPOCHS) for batch in loader]
    except MinigradError as error:
        raise Wrong("usable", str(error).partition("\n")[0], "a bad item came through: leave it out") from None
    model = tanh_network()
    return fitted(model, optim.AdamW(model.parameters(), lr=0.01), batches)
