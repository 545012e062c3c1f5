"""Answers of newcomers to unit 12: each gets feedback that helps; and the student's scheduler in the executor."""

import random
import re

import pytest

import minigrad as mg
import minigrad_course as course
from lectures.pictures.u12_parallelism import counts_known
from minigrad.compile.running.schedule import Schedule
from minigrad_course.unit import units
from minigrad_course.units.u12_parallelism import schedules
from minigrad_course.units.u12_parallelism.demo import starts
from minigrad_course.units.u12_parallelism.gantts import Jobs, Map, Turn, length, play
from minigrad_course.units.u12_parallelism.jobs import (
    GRAHAM,
    best_length,
    by_chain,
    chains,
    fault,
    in_levels,
    random_jobs,
    taken,
    turns_of,
)
from tests.course.running import ROOT, said_to, stored

TASKS = units()["12_parallelism"].tasks
ORDER = "ABCDEFGHI"


# ---- jobs and workers ------------------------------------------------------------------------------------------------


def test_the_anomalies_of_graham():
    def takes(jobs, workers):
        return length(jobs.costs, taken(*jobs, workers, ORDER))

    shorter = Jobs({job: time - 1 for job, time in GRAHAM.costs.items()}, GRAHAM.after)
    freer = Jobs(GRAHAM.costs, {**GRAHAM.after, "E": [], "F": []})
    assert [takes(GRAHAM, workers) for workers in (1, 2, 3, 4, 5)] == [34, 17, 12, 15, 12]
    assert (takes(shorter, 3), takes(freer, 3)) == (13, 16)
    assert length(GRAHAM.costs, taken(*GRAHAM, 4, by_chain(*GRAHAM))) == 12


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_any_order_stays_within_the_bounds(workers):
    for seed in range(5):
        jobs = random_jobs(random.Random(seed), 20)
        work, path = sum(jobs.costs.values()), max(chains(*jobs).values())
        for order in (list(jobs.costs), by_chain(*jobs)):
            turns = taken(*jobs, workers, order)
            assert fault(jobs, workers, turns) is None
            assert max(path, work / workers) <= length(jobs.costs, turns) <= work / workers + path
        assert length(jobs.costs, in_levels(jobs, workers)) >= path


def test_a_schedule_with_a_fault_is_named():
    jobs = Jobs({"a": 2, "b": 1, "c": 1}, {"a": [], "b": ["a"], "c": []})
    for turns, says in (
        ([("a", 0, 0.0), ("b", 1, 1.0), ("c", 1, 0.0)], "which it waits for, ends at 2"),
        ([("a", 0, 0.0), ("b", 0, 2.0), ("c", 0, 1.0)], "at the same time"),
        ([("a", 0, 0.0), ("b", 0, 2.0), ("c", 1, 1.0)], "worker 1 is free at 0"),
        ([("a", 0, 0.0), ("b", 0, 2.0)], "c has no entry"),
        ([("a", 0, 0.0), ("b", 0, 2.0), ("c", 2, 0.0)], "there is no worker 2"),
    ):
        assert says in fault(jobs, 2, [Turn(*turn) for turn in turns])
    assert fault(jobs, 2, turns_of({"a": (0, 0), "b": (0, 2), "c": (1, 0)})) is None


def test_the_board_hands_out_jobs_by_clicks():
    jobs = Jobs({"a": 1, "b": 1, "c": 2, "d": 1}, {"a": [], "b": [], "c": [], "d": ["a"]})
    book = play(jobs, 2, best_length(jobs, 2))
    says = [page.say for (page,) in book.pages]
    assert says[0].startswith("Click a job")
    assert any("done after 3. That is as fast as possible" in each for each in says)
    assert any("It is possible in 3" in each for each in says)


def test_the_map_shows_jobs_after_those_that_they_wait_for():
    """The order of the dictionary does not matter."""
    drawn = Map(Jobs({"a": 1, "b": 2, "c": 2}, {"a": ["b"], "b": ["c"], "c": []}))
    left = dict(zip(drawn.names, [box.x for box in drawn.layout.boxes]))
    assert left["c"] < left["b"] < left["a"]


# ---- tasks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "words"), [
    ('["D", "B", "E", "C", "A", "F"]', "✓"),
    ('("d", "b", "e", "c", "a", "f")', "✓"),
    ('"D, B, E, C, A, F"', "✓"),
    ('["DBECAF"]', "✓"),
    ('["D, B, E, C, A, F"]', "✓"),
    ('["D", "E", "B", "A", "C", "F"]', "at 4, A begins. But C is ready too"),
    ('["D", "C", "E", "B", "A", "F"]', "at 0, C begins. But E is ready too"),
    ('["A", "B", "C", "D", "E", "F"]', "that is the alphabet"),
    ('["B", "C", "E", "A", "D", "F"]', "the longest job first"),
    ('["F", "A", "D", "C", "E", "B"]', "the shortest job first"),
    ('["D", "B", "E"]', "A is missing"),
    ('["D", "D", "B", "E", "C", "A", "F"]', "D is there twice"),
    ('["D", "B", "E", "C", "A", "X"]', "X is not a job"),
    ("6", "is not a list of names"),
])
def test_feedback_on_an_order(answer, words):
    assert words in said_to(f"best_order = {answer}", "best_order")


HEAD = "def longest_chains(costs, after):\n    "
CHAIN = """found = {}
    for job in reversed(list(costs)):
        found[job] = found.get(job, 0) + costs[job]
        for each in after[job]:
            found[each] = max(found.get(each, 0), found[job])
    return found"""
LATER = "found[job] = costs[job] + {}([found[j] for j in costs if job in after[j]]{})"


@pytest.mark.parametrize(("body", "words"), [
    ("found = {}\n    for job in reversed(list(costs)):\n        " + LATER.format("max", ", default=0") +
     "\n    return found", "✓"),
    ("return {job: costs[job] + max([longest_chains(costs, after)[j] for j in costs if job in after[j]], default=0) "
     "for job in costs}", "calls itself without end"),
    ("found = {}\n    for job in reversed(list(costs)):\n        " + LATER.format("sum", "") + "\n    return found",
     "adds up all chains"),
    ("found = {}\n    for job in costs:\n        found[job] = costs[job] + max([found[j] for j in after[job]], "
     "default=0)\n    return found", "*ends* with each job"),
    ("found = {}\n    for job in reversed(list(costs)):\n        found[job] = found.get(job, 0) + costs[job]\n"
     "        for each in after[job]:\n            found[each] = max(found.get(each, 0), found[job])\n    print(found)",
     "only the value after `return`"),
    (CHAIN.replace("max(found.get(each, 0), found[job])", "found[job]"), "Keep the longer chain"),
    (CHAIN.replace("reversed(list(costs))", "costs"), "what waits for a job comes too late"),
    (CHAIN.replace("found = {}", "found = dict(costs)"), "is there twice"),
    ("found = {}\n    for job in reversed(list(costs)):\n        " + LATER.format("max", "") + "\n    return found",
     "max(..., default=0)"),
    (CHAIN.replace("= found.get(job, 0) + costs[job]", "= found.get(job, 0)").replace(
        "found[job])", "found[job] + costs[job])"), "its own time is missing"),
    (CHAIN.replace("for job in reversed(list(costs)):", "while costs:\n        job, time = costs.popitem()").replace(
        "+ costs[job]", "+ time"), "✓"),
    ("return " + str({"a": 9, "b": 5, "c": 7, "d": 8, "e": 2, "f": 4}), "the parameters costs and after"),
    ("return sum(costs.values())", "Expected: a dictionary"),
    ("return costs", "the jobs alone"),
    ("found = {}\n    for job in costs:\n        " + LATER.format("max", "") + "\n    return found", "KeyError"),
])
def test_feedback_on_chains(body, words):
    assert words in said_to(HEAD + body, "longest_chains")


@pytest.mark.parametrize(("body", "words"), [
    ("found = {}\n    for job in reversed(list(costs)):\n        found[job] = costs[job] + found.get(job, 0)\n"
     "        for each in after[job]:\n            found[each] = max(found.get(each, 0), found[job])\n    return found",
     "40 jobs: it reads 40 entries of `after`: once for each job"),
    ("found = {}\n    for job in reversed(list(costs)):\n"
     "        found[job] = costs[job] + max([found[o] for o in found if job in after[o]], default=0)\n    return found",
     "it reads 780 entries of `after`: 40 would do"),
])
def test_a_right_function_is_measured(body, words):
    assert words in said_to(HEAD + body, "longest_chains")


@pytest.mark.parametrize(("body", "words"), [
    ("return [costs[job] for job in costs]", "return a dictionary"),
    ("found = dict(costs)\n    for job in costs:\n        for each in after[job]:\n"
     "            found[each] = max(found[each], costs[each] + found[job])\n    return found",
     "from the last job to the first"),
])
def test_a_list_and_a_wrong_direction_have_hints(body, words):
    assert words in said_to(HEAD + body, "longest_chains")


SCHEDULE = """
def longest_chains(costs, after):
    found = {}
    for job in reversed(list(costs)):
        found[job] = costs[job] + max([found[j] for j in costs if job in after[j]], default=0)
    return found

def list_schedule(costs, after, workers):
    chains, free, ends, found, now = longest_chains(costs, after), [0] * workers, {}, {}, 0
    while len(found) < len(costs):
        ready = [job for job in costs if job not in found and all(ends.get(j, now + 1) <= now for j in after[job])]
        idle = [worker for worker in range(workers) if free[worker] <= now]
        if ready and idle:
            job = max(ready, key=chains.get)
            found[job] = (idle[0], now)
            ends[job] = free[idle[0]] = now + costs[job]
        else:
            now = min(time for time in ends.values() if time > now)
    return found
"""


@pytest.mark.parametrize(("old", "new", "words"), [
    ("", "", "✓"),
    ("max(ready, key=chains.get)", "ready[0]", "takes the first job that is ready"),
    ("max(ready, key=chains.get)", "min(ready, key=chains.get)", "the wrong way round"),
    ("max(ready, key=chains.get)", "max(ready, key=costs.get)", "the longest job is not always urgent"),
    ("all(ends.get(j, now + 1) <= now for j in after[job])", "True", "which it waits for"),
    ("all(ends.get(j, now + 1) <= now for j in after[job])", "all(j in found for j in after[job])",
     "which it waits for"),
    ("range(workers) if free[worker] <= now", "range(workers)", "at the same time"),
    ("range(workers) if", "range(1) if", "worker 0 does everything"),
    ("(idle[0], now)", "(idle[0] + 1, now)", "workers are numbered from 0"),
    ("(idle[0], now)", "(idle[0], now + costs[job])", "the ends of the jobs"),
    ("(idle[0], now)", "now", "has another form"),
    ("(idle[0], now)", "[idle[0], now]", "✓"),
    ("return found", "return [(job, *found[job]) for job in found]", "✓"),
    ("            now = min(time for time in ends.values() if time > now)", "            now = now", "not done after"),
    ("return found\n", "print(found)\n", "return"),
    ("return found\n", "costs.clear()\n    return found\n", "✓"),
    ("ends.get(j, now + 1) <= now", "ends.get(j, now) < now", "not later: <="),
    ("if ready and idle", "if idle", "choose one only if"),
    ("longest_chains(costs, after), [0]", "longest_chains, [0]", "call it, longest_chains(costs, after)"),
    ("now = min(time for time in ends.values() if time > now)", "now += 1", "✓"),
    ("now = min(time", "now = max(time", "although"),
])
def test_feedback_on_a_scheduler(old, new, words, monkeypatch):
    monkeypatch.setattr(TASKS["list_schedule"], "seconds", 1.0 if words == "not done after" else 20.0)
    begin, _, rest = SCHEDULE.rpartition(old) if old else (SCHEDULE, "", "")
    assert words in said_to(begin + new + rest, "list_schedule")


@pytest.mark.parametrize(("answer", "words"), [
    ('["matmul_1", "tanh_1", "sum_2"]', "1.2 ms with 3 transfers"),
    ("[]", "with nothing on the chip"),
    ('["matmul_1"]', "a large table crosses the link"),
    ('["cos_1", "sum_1"]', "Both may stay here"),
    ('["cos_1", "sum_1"]', "2.05 ms with 2 transfers: more than 1.48 ms, which is possible"),
    ('["cos_1", "sum_1", "matmul_1", "tanh_1", "sum_2"]', "everything is on the chip"),
    ('["add_1"]', "only small tables"),
    ('["matmul"]', "the names are"),
    ("3", "is not a list of names"),
])
def test_feedback_on_a_placement(answer, words):
    names = dict(zip(("cos", "tanh"), (TASKS["my_placement"]("").program.f, TASKS["my_placement"]("").program.g)))
    for old, new in names.items():
        answer = answer.replace(f"{old}_1", f"{new}_1")
    assert words in said_to(f"my_placement = {answer}", "my_placement")


@pytest.mark.parametrize(("body", "words"), [
    ("with mg.offload('cpu:1'):\n        part = mg.G(u @ v).sum(0)\n    return mg.F(x).sum(0) + part", "✓"),
    ("return mg.F(x).sum(0) + mg.offload('cpu:1')(lambda: mg.G(u @ v).sum(0))()", "✓"),
    ("return mg.F(x).sum(0) + mg.G(u.to('cpu:1') @ v.to('cpu:1')).sum(0).to('cpu')", "✓"),
    ("return mg.F(x).sum(0) + mg.G(u @ v).sum(0)", "nothing runs there yet"),
    ("with mg.offload('cpu:1'):\n        return mg.F(x).sum(0) + mg.G(u @ v).sum(0)", "x goes there too"),
    ("with mg.offload('cpu:1'):\n        t = u @ v\n    return mg.F(x).sum(0) + mg.G(t).sum(0)", "only the product"),
    ("return mg.F(x).sum(0) + mg.G(u.to('cpu:1') @ v).sum(0)", "DeviceError"),
    ("return mg.G(x).sum(0) + mg.F(u @ v).sum(0)", "are swapped"),
    ("return mg.F(x).sum() + mg.G(u @ v).sum()", "another sum"),
    ("return mg.F(x).sum(1) + mg.G(u @ v).sum(1)", "another sum"),
    ("mg.F(x).sum(0) + mg.G(u @ v).sum(0)", "only the value after `return`"),
    ("with mg.offload('cpu:0'):\n        t = mg.G(u @ v).sum(0)\n    return mg.F(x).sum(0) + t", "nothing runs there"),
    ("with mg.offload('cpu:1'):\n        t = mg.F(x).sum(0)\n    return t + mg.G(u @ v).sum(0)", "the other part"),
])
def test_feedback_on_the_program(body, words):
    program = TASKS["offloaded"]("").program
    body = body.replace("mg.F", f"mg.{program.f}").replace("mg.G", f"mg.{program.g}")
    assert words in said_to(f"def offloaded(x, u, v):\n    {body}", "offloaded")


@pytest.mark.parametrize(("answer", "words"), [
    ("fourth_worker = 16", "✓"), ("fourth_worker = 12", "when does I begin?"),
    ("fourth_worker = 11", "the longest of all"),
    ('fourth_worker = "sixteen"', "✓"), ("fourth_worker = 34", "one worker"), ("fourth_worker = 17", "more, indeed!"),
    ('eager_launches = "about 160"', "✓"), ('two_workers = "1.4x"', "✓"), ("two_workers = 1.0", "a little faster"),
    ("transfers = [2, 2]", "one number"),
    ("program_starts = 6", "in machine code"), ("program_starts = 1", "✓"), ('program_starts = "once"', "✓"),
    ("program_starts = 3", "the whole training step"), ("program_starts = 16", "operation by operation"),
    ("thousand_workers = 8", "✓"), ("thousand_workers = 4", "the longest job"), ("thousand_workers = 17", "one worker"),
    ("thousand_workers = 0.017", "e cannot begin before c"), ("thousand_workers = 7", "Another chain takes longer"),
    ("together = 68", "✓"), ("together = 4000", "made and used up there"), ("together = 64", "a row comes back"),
    ("together = 36", "both thin tables"), ('together = "68 kB"', "the number alone: 68"),
    ('together = "faster"', "a number, such as 4000"), ("together = 17", "4 bytes"), ("together = 68000", "in bytes"),
    ("transfers = 9", "operation by operation"), ("transfers = 4", "✓"), ("transfers = 3", "two rows come back"),
    ("transfers = 5", "the table itself stays"),
    ("eager_launches = 158", "✓"), ("eager_launches = 16", "the forward pass alone"),
    ('two_workers = "2"', "layer 2 waits for layer 1"), ("two_workers = 1.4", "✓"),
])
def test_feedback_on_questions_of_the_notebook(answer, words):
    assert words in said_to(answer, answer.partition(" ")[0])


def test_the_lecture_has_the_counts_of_the_demos_training_step():
    cells = {cell.id: cell.source for cell in stored(ROOT / "notebooks" / "12_parallelism.ipynb").cells}
    names = {"mg": mg, "nn": mg.nn}
    exec(cells["parallelism-step"], names)
    step, batch = names["step"], (names["images"], names["labels"])
    kernels = step.cost(*batch).program.launches
    eager, started = map(int, re.findall(r"\d+", str(starts(step, *batch)))[-2:])
    page = (ROOT / "lectures" / "12_parallelism.md").read_text(encoding="utf-8")
    assert f"{kernels} kernels after fusion, {started} starts" in page and f"{eager} → {kernels} is fusion" in page
    assert any(f"leaves {kernels} launches" in text for text in cells.values())
    drawn = counts_known().to_svg("counts")
    assert all(f">{count}<" in drawn for count in (eager, kernels, started))


# ---- in the engine ---------------------------------------------------------------------------------------------------


def own(costs, after, workers):
    return TASKS["list_schedule"]("").right(costs, after, workers)


def test_the_executor_runs_the_students_order(numpy_kernels):
    def f(x):
        return (x @ x).sum() + mg.tanh(x).sum() * 2

    x = mg.ones((8, 8))
    with course.scheduler(schedules.in_turns(own, 2)) as mine:
        step = mg.jit(f)
        found = step(x).item()
    plan = step.program(x).plan
    assert mine.calls and found == f(x).item() and max(map(len, plan.turns)) == 2
    assert sorted(number for turn in plan.turns for number in turn) == list(range(len(Schedule(plan).steps)))


@pytest.mark.slow
def test_two_workers_reach_the_critical_path_of_real_steps_and_levels_do_not():
    text = TASKS["list_schedule"]("").given()["networks"](own).text()
    assert "MLP, 22 steps, 2 workers: by levels 1.27, by your list_schedule 1.44" in text
    assert len(text.splitlines()) == 3 * len(schedules.WORKERS)


def test_a_wrong_scheduler_is_refused_by_the_executor(numpy_kernels):
    def careless(costs, after, workers):
        return dict.fromkeys(costs, (0, 0.0))

    with pytest.raises(course.feedback.Misused, match="first pass"), course.scheduler(schedules.in_turns(careless)):
        mg.jit(lambda x: (x @ x).sum())(mg.ones((2, 2)))
