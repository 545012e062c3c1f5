"""Answers of newcomers, and of people who know MPI or PyTorch, to unit 13: each gets feedback that helps."""

import json
import os
import threading

import numpy as np
import pytest

import minigrad_course as course
from minigrad_course.feedback import Feedback, Misused, Stopped, Wrong
from minigrad_course.source_code import source_of
from minigrad_course.unit import units
from minigrad_course.units.u13_distributed import training
from minigrad_course.units.u13_distributed.cables import on_cables
from minigrad_course.units.u13_distributed.chunks import act_out, counts, problem
from minigrad_course.units.u13_distributed.exercise import AllGather, ReduceScatter
from tests.course.running import said_to
from tests.distributed.test_ranks import needs_mpi

TASKS = units()["13_distributed"].tasks
NR = "n, r = comm.size, comm.rank\n    "
AROUND = NR + "for s in range(1, n):\n        "

HALVES = {
    "textbook": ("reduce_scatter", AROUND.replace("range(1, n)", "range(n - 1)") +
                 "h = comm.start_send(chunks[(r - s) % n], (r + 1) % n)\n        i = (r - s - 1) % n\n        "
                 "chunks[i] += comm.recv((r - 1) % n, chunks[i])\n        h.wait()", "in the wrong ranks: chunk r + 1"),
    "with send": ("reduce_scatter", AROUND + "comm.send(chunks[(r - s) % n], (r + 1) % n)\n        "
                  "chunks[(r - s - 1) % n] += comm.recv((r - 1) % n, chunks[(r - s - 1) % n])",
                  "none of them receives yet"),
    "waits at once": ("reduce_scatter", AROUND + "comm.start_send(chunks[(r - s) % n], (r + 1) % n).wait()\n        "
                      "chunks[(r - s - 1) % n] += comm.recv((r - 1) % n, chunks[(r - s - 1) % n])",
                      "rank 0 waits until rank 1 receives"),
    "receives first": ("reduce_scatter", AROUND + "chunks[(r - s - 1) % n] += comm.recv((r - 1) % n, chunks[0])\n"
                       "        comm.send(chunks[(r - s) % n], (r + 1) % n)", "none of them has sent one"),
    "even and odd": ("reduce_scatter", AROUND + "out, i = chunks[(r - s) % n], (r - s - 1) % n\n        "
                     "if r == 0:\n            y = comm.recv((r - 1) % n, chunks[i])\n        "
                     "comm.send(out, (r + 1) % n)\n        if r:\n            "
                     "y = comm.recv((r - 1) % n, chunks[i])\n        chunks[i] += y", "✓"),
    "never waits": ("reduce_scatter", AROUND + "comm.start_send(chunks[(r - s) % n], (r + 1) % n)\n        "
                    "chunks[(r - s - 1) % n] += comm.recv((r - 1) % n, chunks[(r - s - 1) % n])",
                    "never waits for 3 of the messages"),
    "changes it on its way": ("reduce_scatter", AROUND + "x = chunks[(r - s) % n]\n        "
                              "h = comm.start_send(x, (r + 1) % n)\n        "
                              "chunks[(r - s - 1) % n] += comm.recv((r - 1) % n, x)\n        x[...] = 0",
                              "while it was on its way"),
    "another array": ("reduce_scatter", AROUND + "h = comm.start_send(chunks[(r - s) % n], (r + 1) % n)\n        "
                      "i = (r - s - 1) % n\n        chunks[i] = chunks[i] + comm.recv((r - 1) % n, chunks[i])\n"
                      "        h.wait()", "the memory of the chunk is as before"),
    "without modulo": ("reduce_scatter", AROUND + "comm.start_send(chunks[r - s], r + 1)", "the ring is closed"),
    "to all": ("reduce_scatter", NR + "for to in range(n):\n        if to != r:\n            "
               "comm.start_send(chunks[to], to)", "there is no cable"),
    "from the wrong side": ("reduce_scatter", AROUND + "comm.start_send(chunks[r - 1], (r + 1) % n)\n        "
                            "comm.recv((r + 1) % n, chunks[0])", "receive from rank (r - 1) % n only"),
    "numbers of chunks": ("reduce_scatter", AROUND + "comm.start_send((r - s) % n, (r + 1) % n)", "chunks[i], not i"),
    "a round more": ("reduce_scatter", AROUND.replace("range(1, n)", "range(1, n + 1)") +
                     "h = comm.start_send(chunks[(r - s) % n], (r + 1) % n)\n        i = (r - s - 1) % n\n        "
                     "chunks[i] += comm.recv((r - 1) % n, chunks[i])\n        h.wait()", "n - 1 rounds are enough"),
    "one rank stops": ("reduce_scatter", NR + "for s in range(1, n - (r == 0)):\n        "
                       "h = comm.start_send(chunks[(r - s) % n], (r + 1) % n)\n        i = (r - s - 1) % n\n        "
                       "chunks[i] += comm.recv((r - 1) % n, chunks[i])\n        h.wait()",
                       "of the ranks have returned"),
    "with MPI's name": ("reduce_scatter", "comm.Allreduce(chunks)", "Allreduce"),
    "with a collective": ("reduce_scatter", "chunks[0][...] = comm.allreduce(chunks[0])",
                          "comm has rank, size, start_send"),
    "a size with brackets": ("reduce_scatter", "n, r = comm.size(), comm.rank()", "are numbers, without brackets"),
    "without like": ("reduce_scatter", "chunks[0] += comm.recv(0)", "`like` is an array of the same shape"),
    "nothing": ("reduce_scatter", "x = 1", "is missing"),
    "an index too large": ("reduce_scatter", "chunks[comm.rank + 1] += 1", "the ring is closed: chunks["),
    "empty": ("reduce_scatter", "pass", "not written yet"),
    "right": ("all_gather", AROUND + "h = comm.start_send(chunks[(r - s + 1) % n], (r + 1) % n)\n        "
              "chunks[(r - s) % n][...] = comm.recv((r - 1) % n, chunks[(r - s) % n])\n        h.wait()", "✓"),
    "puts it into the list": ("all_gather", AROUND + "h = comm.start_send(chunks[(r - s + 1) % n], (r + 1) % n)\n"
                              "        chunks[(r - s) % n] = comm.recv((r - 1) % n, chunks[(r - s) % n])\n        "
                              "h.wait()", "Write into it"),
    "a name only": ("all_gather", AROUND + "h = comm.start_send(chunks[(r - s + 1) % n], (r + 1) % n)\n        "
                    "x = chunks[(r - s) % n]\n        x = comm.recv((r - 1) % n, x)\n        h.wait()",
                    "write what comm.recv returns into a chunk"),
    "appends": ("all_gather", AROUND + "h = comm.start_send(chunks[r], (r + 1) % n)\n        "
                "chunks.append(comm.recv((r - 1) % n, chunks[r]))\n        h.wait()", "Write into it"),
}


@pytest.mark.parametrize("which", HALVES)
def test_feedback_on_the_two_halves(which):
    name, body, words = HALVES[which]
    assert words in said_to(f"def {name}(comm, chunks):\n    {body}", name)


WHOLE = "n = comm.size\n    to, frm = (comm.rank + S) % n, (comm.rank - S) % n\n    "
RINGS = {
    "whole arrays": (WHOLE + "out = x.copy()\n    for _ in range(n - 1):\n        h = comm.start_send(out, to)\n"
                     "        y = comm.recv(frm, out)\n        h.wait()\n        out = y\n        x[...] = np.OP(x, y)",
                     "send chunks"),
    "to the neighbour": ("comm.start_send(x, (comm.rank + 1) % comm.size)", "there is no cable"),
    "returns it": ("return np.OP(x, x) + 1", "x is as before"),
    "long jumps": (WHOLE + "c = np.array_split(x, n)\n    r = comm.rank\n    for k in range(2 * n - 2):\n        "
                   "a, b = c[(r - S * (k + 1)) % n], c[(r - S * (k + 2)) % n]\n        h = comm.start_send(a, to)\n"
                   "        y = comm.recv(frm, b)\n        h.wait()\n        b[...] = y if k > n - 2 else np.OP(b, y)",
                   "✓"),
    "only names": (WHOLE + "c = np.array_split(x, n)\n    r = comm.rank\n    for k in range(n - 1):\n        "
                   "a, i = c[(r - S * (k + 1)) % n], (r - S * (k + 2)) % n\n        h = comm.start_send(a, to)\n"
                   "        c[i] = np.OP(c[i], comm.recv(frm, c[i]))\n        h.wait()", "and not chunks[i] = ..."),
    "sends first": (WHOLE + "comm.send(x, to)\n    x[...] = np.OP(x, comm.recv(frm, x))", "none of them receives yet"),
}


@pytest.mark.parametrize("which", RINGS)
def test_feedback_on_a_ring_with_other_cables(which):
    body, words = RINGS[which]
    task = TASKS["other_ring"]("")
    body = body.replace("S", str(task.stride)).replace("OP", task.op)
    assert words in said_to(f"import numpy as np\ndef other_ring(comm, x):\n    {body}", "other_ring")


@pytest.mark.slow
def test_a_loop_without_end_is_stopped_in_all_ranks(monkeypatch):
    monkeypatch.setattr(ReduceScatter, "seconds", 5.0)  # the ranks have 3 of them: the rest is for a busy machine
    before = threading.active_count()
    said = said_to("def reduce_scatter(comm, chunks):\n    while True:\n        pass", "reduce_scatter")
    assert "not done after 5 seconds" in said and "of the cell: " in said
    for thread in threading.enumerate()[before:]:
        thread.join(5)
    assert threading.active_count() <= before


def test_an_error_in_one_rank_is_shown_at_its_line():
    said = said_to("def reduce_scatter(comm, chunks):\n    if comm.rank == 2:\n        comm.ranks\n"
                   "    comm.recv((comm.rank - 1) % comm.size, chunks[0])", "reduce_scatter")
    assert "AttributeError" in said and "line 3 of the cell: comm.ranks" in said


@pytest.mark.parametrize(("cell", "words"), [
    ("ring_plan = [[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]]", "Pass on the chunk that has just come"),
    ("ring_plan = [[0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2]]", "a row for each worker?"),
    ("ring_plan = [0, 1, 2, 3]", "has another form"),
    ("ring_plan = [[1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4]]", "the chunks are 0, 1, 2 and 3"),
    ("ring_plan = [[0, 1, 2, ...], [0, 1, 2, 3], [0, 1, 2, 3]]", "not answered yet"),
    ("ring_plan = [[0, 0, 0, 0], [1, 1, 1, 1], [2, 2, 2, 2]]", "the other chunks never move"),
    ("ring_plan = [[2, 1, 0, 3], [2, 0, 1, 3], [3, 0, 1, 2]]", "worker"),
    ("read_together = 500", "✓"),  # 2,000 machines
    ("read_together = 1e6", "that is how long one machine needs"),
    ("read_together = 50", "ten times more"),
    ("read_together = 5000", "ten times fewer"),
    ("more_sent = 12.5", "smaller by the same factor"),  # 8 and 100 workers
    ("more_sent = 1.13", "✓"),
    ('more_sent = "99/100 * 8/7"', "✓"),
    ("more_sent = 1.98", "Divide by what a worker of 8 sends"),
    ("more_sent = 2", "nearly 2 times its *array*"),
    ("more_sent = 1", "nearly: 2 · 7 / 8"),
    ("more_sent = 0.08", "there are more rounds"),
    ("rounds = 22", "✓"),  # 12 workers
    ('rounds = "twenty-two"', "✓"),
    ("rounds = 11", "The others do not have it yet"),
    ("rounds = 24", "nearly"),
    ("rounds = 4", "depth of a tree"),
    ("rounds = 132", "at the same time"),
    ("same_curve = 'sum'", "✓"),
    ("same_curve = ['Sum']", "✓"),
    ("same_curve = ['mean']", "with the same rate"),
    ("same_curve = 'norm'", "16 images here, and of 64"),
    ("same_curve = 3", "in a list"),
    ("same_curve = ['sum', 'mean']", "1 of yours is right, 1 too many"),
    ("same_curve = ['sum', 'mean']", "only one does"),
    ("second_round = {0: 2, 1: 0, 2: 1}", "✓"),
    ("second_round = 'two zero one'", "✓"),
    ("rounds = (11, 11)", "one number"),
    ("first_bucket = 'hardly any of it'", "✓"),
    ("best_bucket = '500 MB'", "✓"),
    ("first_bucket = 'Hardly any'", "✓"),
    ("first_bucket = 'nearly all'", "compute first?"),
    ("overlapped_step = 178", "✓"),  # 40, 120 and 18 ms
    ("overlapped_step = 232", "without overlap"),
    ("overlapped_step = 160", "full when backward ends"),
    ("overlapped_step = 112", "backward takes 120 ms"),
    ("overlapped_step = 0.178", "the answer is in ms"),
    ("best_bucket = 500", "✓"),
    ('best_bucket = "25"', "each of 40 buckets"),
    ("best_bucket = 5", "Each message has its latency"),
    ("best_bucket = 'bytes'", 'one of "5"'),
    ("one_slow = 138.0", "✓"),  # 120 ms, 15 %
    ("one_slow = 120", "when the last worker has sent its part"),
    ("one_slow = 18", "by how much the slow worker is late"),
    ("one_slow = 258", "at the same time as the others"),
    ('sharded_gb = 8 + 8 / course.task("sharded_gb").workers', "✓"),
    ("sharded_gb = 16", "without sharding"),
    ("sharded_gb = 8", "its part of the state too"),
    ("second_round = [0, 1, 2]", "counts it twice"),
    ("second_round = (2, 0, 1)", "✓"),
    ("second_round = [1, 2, 0]", "From whom has worker 0 received?"),
    ("bytes_sent = 192e6", "divide by a million"),
    ("bytes_sent = 384", "count the sent ones only"),
    ("slow_step = 0.284", "the answer is in ms"),
    ("slow_step = 250", "the slow worker is forgotten"),
    ("worker_memory = 8.5", "how many numbers does this optimizer keep"),
])
def test_feedback_on_plans_and_questions(cell, words):
    assert words in said_to(cell, cell.split()[0])


# ---- the platform ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", [ReduceScatter, AllGather])
def test_a_view_shows_right_and_wrong_rings(task):
    book = course.task(task.name).show(task().right)
    assert "Each chunk is complete" in book.text() and len(book.pages[0]) == 4
    wrong = course.task(task.name).show(task().wrong(task.mistakes[0]))
    assert "chunk " in wrong.text().splitlines()[-1]
    with pytest.raises(Stopped, match="ZeroDivisionError"):
        course.task(task.name).show(lambda comm, chunks: 1 / 0)


def test_a_plan_is_drawn_before_it_is_complete():
    act = course.task("ring_plan").act
    assert len(act([[..., 1, 2, 3]] * 3).pages[0]) == 1 and len(act([[0, 1, 2, 3], [...] * 4]).pages[0]) == 2
    assert "where they should be" in act(TASKS["ring_plan"]("").right()).text()


@pytest.mark.slow
def test_every_choice_of_three_workers_has_its_picture():
    book = act_out()
    assert len(book.pages) == 3**6 and sum("Every chunk" in page.say for (page,) in book.pages) == 6


def test_counts_say_what_is_counted_twice_missing_or_mixed():
    (one, _), (other, mixed) = counts(2)
    assert problem(one + other, 0) == "" and "numbers of chunk 1 are in it" in problem(one + mixed, 0)
    assert problem(one + one, 0) == "worker 0 is counted 2 times, the part of worker 1 is missing"


def test_messages_are_counted_and_ranks_that_return_early_are_found():
    def call(rank):
        if rank.rank == 0:
            rank.send(np.ones(3), 1)
        else:
            assert rank.recv(0, np.zeros(3)).tolist() == [1, 1, 1]

    assert [len(rank.sent) for rank in on_cables(call, 2)] == [1, 0]
    with pytest.raises(Wrong, match="rank 1 waits for a message from rank 0; 1 of the ranks have returned"):
        on_cables(lambda rank: rank.rank and rank.recv(0, np.zeros(3)), 2)


SHARED = 3


def helper(x):
    return x + SHARED


def test_functions_go_to_a_file_with_what_they_use():
    def function(x):
        return np.sum([helper(y) for y in x])

    text = str(source_of(function))
    names = {}
    exec(text, names)
    assert names["function"]([1, 2]) == 9 and "SHARED = 3" in text
    with pytest.raises(Misused, match="it is not a function"):
        source_of(3)


# ---- training --------------------------------------------------------------------------------------------------------

SOURCE = '''def NAME(comm, chunks):
    n, r = comm.size, comm.rank
    for step in range(n - 1):
        sending = comm.start_send(chunks[(r - step - FIRST) % n], (r + 1) % n)
        mine = chunks[(r - step - 1 - FIRST) % n]
        got = comm.recv((r - 1) % n, mine)
        sending.wait()
        mine[...] = got + FIRST * mine
'''


def endless(comm, chunks):
    while True:
        pass


@pytest.fixture
def ring(tmp_path, monkeypatch):
    """The two halves, as functions of a file."""
    halves = [SOURCE.replace("NAME", name).replace("FIRST", first) for name, first in (("half", "1"), ("other", "0"))]
    (tmp_path / "my_ring.py").write_text("".join(halves))
    monkeypatch.syspath_prepend(tmp_path)
    import my_ring

    return my_ring.half, my_ring.other


@pytest.mark.slow
def test_threads_train_as_one_process_where_there_is_no_mpi(ring, monkeypatch, capsys):
    monkeypatch.setattr(training, "missing", lambda: "mpi4py")
    monkeypatch.setattr(training.on_ranks, "STEPS", 12)
    book = training.train(*ring)
    assert "4 threads, 12 all-reduces by your ring" in book.text() and "the curves are the same" in book.text()
    said = capsys.readouterr().out
    assert said.startswith("mpi4py is not installed, so the 4 ranks are threads") and "course add distributed" in said
    book = training.train(ring[1], ring[1])
    assert "NOT the same" in book.text()
    with pytest.raises(Stopped, match="the ranks have stopped with ZeroDivisionError"):
        training.train(lambda comm, chunks: 1 / 0, ring[1])
    monkeypatch.setattr(training, "LIMIT", 0.3)
    with pytest.raises(Stopped, match=r"stopped with TimeIsUp: not done after 0\.3 seconds"):
        training.train(endless, ring[1])


@needs_mpi
def test_four_processes_train_with_the_ring_of_a_file(ring):
    book = training.train(*ring)
    assert "4 processes, 66 all-reduces by your ring" in book.text() and "the curves are the same" in book.text()
    assert [page.name for page in book.pages[0]] == ["curves", "before and after", "thousands", "one step of 512"]


@pytest.mark.skipif(os.name == "nt", reason="a shell script stands for the launcher")
def test_what_the_processes_wrote_last_is_shown_if_they_stop(monkeypatch, tmp_path):
    program = tmp_path / "python"
    line = "echo 'minigrad: rank 1 of 4 raised ValueError: no such chunk' >&2\n"
    program.write_text(f"#!/bin/sh\n{line}{line}exit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(training.sys, "executable", str(program))
    with pytest.raises(Feedback, match=r"the ranks have stopped\n +minigrad: rank 1 of 4 .*chunk\n +Hint"):
        training.on_real_ranks("script.py", "")


@pytest.mark.slow
def test_the_result_of_ranks_survives_its_file(ring):
    found = training.ThreadCommunicators(2).run(lambda comm: training.run(comm, ring))[0]
    again = training.Run(**json.loads(json.dumps(vars(found))))
    assert again.losses == found.losses and again.calls == 66 and again.sent == found.sent > 0


@pytest.mark.slow
def test_one_way_of_five_trains_as_one_process():
    assert [way for way in training.WAYS if training.compared(way)] == ["mean"]
    assert [way for way in training.WAYS if training.compared(way, 4)] == TASKS["same_curve"]("").right()


@pytest.mark.parametrize("student", ["", "Ada", "Grace", "李"])
def test_the_time_of_a_slow_step_is_that_of_a_hand(student):
    task = TASKS["slow_step"](student)
    slower = 1 + task.percent / 100
    assert task.each < task.backward / task.buckets
    assert task.right() == pytest.approx((task.forward + task.backward) * slower + task.each)
