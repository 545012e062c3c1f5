"""A record: what one call ran, when each launch ran, and what it moved.  All views state the numbers of a record.

Two kinds of calls are made in turns.  `seconds` is the time of the quickest call by the clock around it, with nothing
switched on; short calls are made many times.  In the other calls the launches are noted.  A busy machine interrupts
each of them somewhere else, so each launch, and the time before it, is taken from the call in which it was shortest.
Noting takes time.  So the noted times are shortened until the call ends after `seconds`: first the times between
launches, all by about the same, and if that is not enough, the launches too.  Where all calls were interrupted, the
noted times may be the shorter ones, and are taken as they are.

Steps in machine code run in one call, also all rounds of a loop.  Such a call is noted as a whole.  In further calls
each step is noted, and the steps share the time of the whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, redirect_stdout
from functools import cached_property
from io import StringIO
from itertools import pairwise
from math import inf
from operator import attrgetter, itemgetter
from threading import current_thread
from time import perf_counter
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ...core.tree import leaves
from ...devices.registry import CPU
from ...support.errors import MinigradError
from ...support.table import as_html, as_table, bytes_text, counted, escape, time_text
from ..fusion.count import Count
from ..nodes.graph import Titled
from ..nodes.thresholds import RECORDED_RUNS
from ..running.plain import PlainProgram
from ..running.plan import CHECK
from ..running.profiler import Event, profile
from ..running.program import Program
from ..running.steps import JOINED, ROUNDS
from .cost import Cost
from .held import Held, Site
from .roofline import Roofline, roofline_of
from .values import starts_of
from .watching import watching

LEAST = 25e-3  # seconds: in each run a call is repeated for this time, and the quickest counts
ALIKE, NEAR = 3, 1.1  # a machine is busy where fewer runs are, within this factor, as quick as the quickest
T = TypeVar("T")
EAGERLY, BUSY = "eagerly", "the machine was busy"
HEAD = ("launch", "begins", "takes", "read", "written", "operations")


class Record(Titled):
    """What a call ran: `way` says how, `seconds` is the whole time, and `events` are the launches, loops and checks.

    `program` is the program that ran, if one did, and `sites` are those of the events of eager mode.  The times of
    events are seconds since the call began.  If the machine was `busy`, a call may take less time.

    >>> f = mg.jit(lambda x: mg.tanh(x @ x).sum())
    >>> record = f.record(mg.ones((8, 8)))
    >>> [event.name for event in record.events], record.count.launches, record.count.bytes
    (['matmul_1', 'kernel_1'], 2, 772)
    >>> 0 < record.in_launches <= record.seconds
    True
    """

    def __init__(
        self, way: str, seconds: float, events: Sequence[Event], program: Program | None = None,
        sites: Sequence[Site] = (), busy: bool = False,
    ) -> None:
        self.way, self.seconds, self.events, self.program, self.sites = way, seconds, [*events], program, sites
        self.busy = busy

    @cached_property
    def cost(self) -> Cost | None:
        """The cost of the program."""
        return None if self.program is None else Cost(self.program)

    @property
    def count(self) -> Count:
        """The launches, bytes and operations of the call: those of its program, or the sum of what was noted."""
        if self.cost is not None:
            return self.cost.program
        return sum([event.cost for event in self.events], Count())

    @property
    def launched(self) -> list[Event]:
        """The events that are launches: no checks, and no loops, whose launches are events of their own."""
        return [event for event in self.events if event.launches]

    @property
    def in_launches(self) -> float:
        """The seconds in which at least one kernel or library call ran; Python had the others."""
        return sum([end - begin for begin, end in stretches(self.launched)])

    @property
    def parts(self) -> dict[str, float]:
        """The seconds in launches, in checks of indices, and in Python."""
        checks = sum([event.end - event.begin for event in self.events if CHECK in event.name])
        python = max(0.0, self.seconds - self.in_launches - checks)
        return {"Python": python, "launches": self.in_launches, "checks of indices": checks}

    def roofline(self) -> Roofline:
        """The time of each step of the program beside the best that this machine can do."""
        return roofline_of(self.cost, self.events)

    # as a table -----------------------------------------------------------------------------------------------------

    def rows(self) -> list[tuple[str, ...]]:
        """The rows of the table, one for each launch."""
        return [
            (each.name, time_text(each.begin), time_text(each.end - each.begin), bytes_text(each.cost.bytes_read),
             bytes_text(each.cost.bytes_written), f"{each.cost.flops:,}")
            for each in self.launched
        ]

    def sums(self) -> str:
        """The whole call in a sentence."""
        count = self.count
        return (
            f"{self.way}: {time_text(self.seconds)}, of which {time_text(self.in_launches)} in "
            f"{counted(count.launches, 'launch', 'launches')}; {bytes_text(count.bytes)} read and written"
            + (f", {bytes_text(self.cost.memory.total)} allocated" if self.cost else "") + f"; {BUSY}" * self.busy
        )

    def listing(self) -> str:
        """The launches as a table, and the sums."""
        return f"{as_table(HEAD, self.rows(), left=1)}\n{self.sums()}"

    __repr__ = Titled.__str__

    def _repr_html_(self) -> str:
        title = f"<p>{escape(self.title)}</p>" if self.title else ""
        own = f"{title}{as_html(HEAD, self.rows())}<p>{escape(self.sums())}</p>"
        return own + ("" if self.gradient is None else self.gradient._repr_html_())


# Making records -------------------------------------------------------------------------------------------------------


Making: TypeAlias = Generator[None, None, Record]  # it stops before each run


def in_turns(makings: Sequence[Generator[None, None, T]]) -> list[T]:
    """What each returns.  They make their runs in turns: what else the machine does delays all of them alike."""
    found, left = dict[int, T](), dict(enumerate(makings))
    with redirect_stdout(StringIO()):  # a function that prints does so in each of many calls
        while left:
            for number, making in [*left.items()]:
                try:
                    next(making)
                except StopIteration as end:
                    found[number] = end.value
                    del left[number]
    return [found[number] for number in sorted(found)]


def record_of_call(call: Callable[[], object], program: Callable[[], Any], runs: int = RECORDED_RUNS) -> Making:
    """The record of a call that runs a program; `program` returns it after the last call."""
    found = yield from _recorded("as a program", waiting(call), runs)
    ran = program()
    found.program = ran if isinstance(ran, Program) else None
    return found


def record_of_program(program: Program | PlainProgram, arrays: Sequence[Any], runs: int = RECORDED_RUNS) -> Making:
    """The record of a program that runs on these arrays."""
    starts = starts_of(program.graph)
    return record_of_call(lambda: program(arrays, starts), lambda: program, runs)


def eager_record(call: Callable[[], object], runs: int = RECORDED_RUNS) -> Making:
    """The record of a call in eager mode as the user has it: composed functions run as programs, if these are on.

    >>> x = mg.ones((200, 200))
    >>> (found,) = in_turns([eager_record(lambda: mg.softmax(mg.tanh(x)))])
    >>> [event.name for event in found.events]
    ['tanh', 'softmax/kernel_0']
    >>> with mg.eager_programs(False):
    ...     (found,) = in_turns([eager_record(lambda: mg.softmax(x))])
    >>> [event.name for event in found.events]
    ['max', 'subtract', 'exp', 'sum', 'divide', 'multiply']
    """
    call, held = waiting(call), Held()  # the first call compiles programs
    with held.watch():  # not timed, because it looks at the arguments
        call()
    return (yield from _recorded(EAGERLY, call, runs, sorted(held.sites, key=attrgetter("begin"))))


class _Whole(profile):
    """Notes steps that run in one call as one event."""

    apart = False


def _recorded(way: str, call: Callable[[], object], runs: int, sites: Sequence[Site] = ()) -> Making:
    """The record of calls; where the machine is busy, all runs are made again."""
    times, noted, eager = list[float](), list[tuple[float, list[Event]]](), way == EAGERLY
    while len(times) < runs or (_differ(times) and len(times) < 2 * runs):
        yield
        times.append(quickest(call))
        noted.append(_noted(call, eager, _Whole()))
    events, whole = shortest(noted)
    if any(event.name.endswith(ROUNDS) or JOINED in event.name for event in events):
        apart, longer = shortest([_noted(call, eager, profile()) for _ in range(runs)])
        opens = opened(events, apart)
        same = len(opens) == len(apart)  # a call may run something else than the one before it
        events, whole = (opens, whole) if same else (apart, longer)
    if eager and len(sites) != len(events):
        raise MinigradError("calls of this function differ: they launch other kernels each time")
    if eager:
        events = [event._replace(cost=site.cost) for event, site in zip(events, sites)]
    seconds = min(*times, whole)
    return Record(way, seconds, shortened(events, whole, seconds), sites=sites, busy=_differ(times))


def _differ(times: Sequence[float]) -> bool:
    """Whether too few runs were about as quick as the quickest one: something else ran on the machine.

    >>> _differ([1.0, 1.02, 1.5, 2.0, 1.01]), _differ([1.0, 1.2, 1.5, 2.0, 1.01]), _differ([1.0])
    (False, True, False)
    """
    return sorted(times)[:ALIKE][-1] > NEAR * min(times)


def _noted(call: Callable[[], object], eager: bool, noted: profile) -> tuple[float, list[Event]]:
    """The seconds of a call, and its events."""
    with ExitStack() as stack:
        calls = stack.enter_context(watching(frames=False, keep=False, programs=True)) if eager else []
        stack.enter_context(noted)
        begin = perf_counter()
        call()
        end = perf_counter()
    start, thread = begin - noted.start, current_thread().name
    own = [Event(c.op.name, thread, c.begin - begin, c.end - begin) for c in calls]
    steps = [e._replace(begin=e.begin - start, end=e.end - start) for e in noted.events]
    return end - begin, sorted([*own, *steps], key=lambda event: event.begin)


def shortest(calls: Sequence[tuple[float, Sequence[Event]]]) -> tuple[list[Event], float]:
    """The events of calls, each with its time: every stretch between two times as in the call where it was shortest.

    Calls whose events are not those of the quickest call, in the same order, do not count.

    >>> slow = [Event("a", "main", 1.0, 9.0), Event("b", "main", 10.0, 11.0)]
    >>> quick = [Event("a", "main", 1.0, 3.0), Event("b", "main", 4.0, 9.0)]
    >>> events, seconds = shortest([(12.0, slow), (10.0, quick)])
    >>> [(event.name, event.begin, event.end) for event in events], seconds
    ([('a', 1.0, 3.0), ('b', 4.0, 5.0)], 6.0)
    """
    times = [np.array([0.0, *[time for e in events for time in (e.begin, e.end)], whole]) for whole, events in calls]
    orders = [moments.argsort(kind="stable") for moments in times]
    names = [[*map(itemgetter(0, 1), events), *order.tolist()] for (_, events), order in zip(calls, orders)]
    first = min(range(len(calls)), key=lambda number: calls[number][0])
    same = [moments[orders[first]] for moments, name in zip(times, names) if name == names[first]]
    placed = np.empty_like(times[first])
    placed[orders[first]] = np.cumsum(np.diff(same, prepend=0.0).min(0))
    pairs = placed[1:-1].reshape(-1, 2).tolist()
    return [event._replace(begin=a, end=b) for event, (a, b) in zip(calls[first][1], pairs)], float(placed[-1])


def opened(events: Sequence[Event], noted: Sequence[Event]) -> list[Event]:
    """The events; in place of one for several steps, these steps as they were `noted` apart, in the same time.

    >>> events = [Event("scan_1", "main", 1.0, 5.0), Event("scan_1/rounds", "main", 2.0, 4.0)]
    >>> steps = [Event("scan_1/k", "main", begin, begin + 3.0, Count(launches=1)) for begin in (2.0, 6.0)]
    >>> [(event.name, event.begin, event.end) for event in opened(events, [Event("scan_1", "main", 1.0, 9.0), *steps])]
    [('scan_1', 1.0, 5.0), ('scan_1/k', 2.0, 3.0), ('scan_1/k', 3.0, 4.0)]
    """
    found, left = list[Event](), dict[str, deque[Event]]()
    loop = dict[str, Event]()  # the last run of each
    for each in noted:
        left.setdefault(each.name, deque()).append(each)
    for event in events:
        outer, slash, names = event.name.rpartition("/")
        around = outer + slash
        if names == ROUNDS:
            begin, end = loop.get(outer, event)[2:4]
            steps = [each for each in noted if each.name.startswith(around) and begin <= each.begin <= end]
        else:
            steps = [left[around + name].popleft() for name in names.split(JOINED) if left.get(around + name)]
        if len(steps) == 1 and steps[0].name == event.name:
            loop[event.name] = steps[0]
            found.append(event._replace(cost=steps[0].cost))
        elif steps:
            found += _within(steps, event)
    return found


def _within(steps: Sequence[Event], event: Event) -> list[Event]:
    """The steps in the time of an event."""
    begin = min([each.begin for each in steps])
    noted = max([each.end for each in steps]) - begin
    moved = shortened([_later(each, -begin) for each in steps], noted, event.end - event.begin)
    return [_later(each, event.begin) for each in moved]


def _later(event: Event, seconds: float) -> Event:
    return event._replace(begin=event.begin + seconds, end=event.end + seconds)


def shortened(events: Sequence[Event], noted: float, seconds: float) -> list[Event]:
    """The events of a call that took `noted` seconds, as those of a call that takes `seconds`.

    Python runs also in a loop or a branch, between its steps.

    >>> one = Count(launches=1)
    >>> events = [Event("a", "main", 2.0, 4.0, one), Event("b", "main", 6.0, 8.0, one)]
    >>> [(round(event.begin, 6), event.end) for event in shortened(events, 8.0, 6.0)]  # a second between, not two
    [(1.0, 3.0), (4.0, 6.0)]
    >>> [(event.begin, event.end) for event in shortened(events, 8.0, 2.0)]
    [(0.0, 1.0), (1.0, 2.0)]
    """
    if seconds >= noted:
        return [*events]
    busy_times = stretches(filter(is_busy, events))
    busy = sum([end - begin for begin, end in busy_times])
    inside = min(1.0, seconds / busy) if busy else 1.0
    gaps = [begin - end for (_, end), (begin, _) in pairwise([(0.0, 0.0), *busy_times, (noted, noted)])]
    places, at = [(0.0, 0.0)], 0.0
    for gap, (begin, end) in zip(_shorter(np.array(gaps), seconds - busy), busy_times):
        at += gap
        places.append((begin, at))
        at += inside * (end - begin)
        places.append((end, at))
    places.append((noted, seconds))
    old, new = zip(*places)
    begins, ends = (np.interp([*map(itemgetter(place), events)], old, new).tolist() for place in (2, 3))
    return [event._replace(begin=begin, end=end) for event, begin, end in zip(events, begins, ends)]


def _shorter(gaps: np.ndarray, whole: float) -> list[float]:
    """The gaps, in all as long as `whole`: each loses about the same, the time to note a launch, and a short one less.

    >>> [round(gap, 3) for gap in _shorter(np.array([1.0, 8.0]), 7.0)]
    [0.376, 6.624]
    """
    low, high = 0.0, (gaps**2).sum() / whole if whole > 0 else 0.0
    late = high
    for _ in range(60 * (high > 0)):
        late = (low + high) / 2
        low, high = (late, high) if (gaps**2 / (gaps + late)).sum() > whole else (low, late)
    return (gaps**2 / (gaps + late)).tolist() if late else [0.0] * len(gaps)


def is_busy(event: Event) -> bool:
    """Whether an event is a launch or a check: no view, and no loop, between whose steps Python runs."""
    return event.launches > 0 or CHECK in event.name


def stretches(events: Iterable[Event]) -> list[tuple[float, float]]:
    """The times in which at least one event lasts, joined."""
    found: list[tuple[float, float]] = []
    for event in sorted(events, key=lambda each: each.begin):
        if found and event.begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], event.end)
        else:
            found.append((event.begin, event.end))
    return found


def quickest(call: Callable[[], object]) -> float:
    """The seconds of the quickest of some calls."""
    end, least = perf_counter() + LEAST, inf
    while least == inf or perf_counter() < end:
        least = min(least, seconds_of(call))
    return least


def seconds_of(function: Callable[..., Any], *args: Any) -> float:
    """The time of one call: the mean of several where the clock has too large steps for one, as in a browser."""
    calls, seconds = 1, 0.0
    while not seconds:
        begin = perf_counter()
        for _ in range(calls):
            function(*args)
        seconds, calls = (perf_counter() - begin) / calls, 10 * calls
    return seconds


def waiting(call: Callable[[], object]) -> Callable[[], object]:
    """The call, which was made once, and also waits for the devices of its results if these run on their own."""
    devices = {tensor.device for tensor in leaves(call())} - {CPU}

    def waited() -> None:
        call()
        for device in devices:
            device.synchronize()

    return waited if devices else call
