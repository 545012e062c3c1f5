"""The model of a data-parallel step: its collectives beside the real ring, its properties, and its calibration."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigrad as mg
from minigrad.distributed import Layer, Machine, Step, ThreadCommunicators, ring, simulate, step_time
from minigrad.support.errors import ConversionError, DistributedError

MACHINE = Machine(latency=20e-6, bandwidth=1e9)
STEP = Step.even(4, forward=0.1, backward=0.2, gradients=100e6, bucket=50e6)

seconds = st.floats(0, 1)
sizes = st.floats(0, 1e9)
workers = st.integers(1, 3000)
machines = st.builds(
    Machine, st.floats(0, 1e-3), st.floats(1e6, 1e12), st.sampled_from([0.0, 0.1]), st.integers(0, 3), st.floats(1, 2)
)
steps = st.builds(
    Step, st.lists(st.builds(Layer, seconds, seconds, sizes), min_size=1, max_size=5), seconds, st.floats(1e6, 1e9),
    st.booleans(), st.booleans(), st.sampled_from(["ring", "tree", "faster"]), st.booleans(),
)
few = settings(max_examples=60, deadline=None)


# Collectives ----------------------------------------------------------------------------------------------------------


class Counted:
    """A rank that counts the messages and the bytes that it sends."""

    def __init__(self, comm):
        self.comm, self.rank, self.size, self.sent = comm, comm.rank, comm.size, []

    def start_send(self, x, to):
        self.sent.append(x.nbytes)
        return self.comm.start_send(x, to)

    def recv(self, source, like):
        return self.comm.recv(source, like)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 6])
def test_the_model_sends_the_messages_and_the_bytes_of_the_real_ring(count):
    def run(comm):
        array, counted = np.ones(4 * count), Counted(comm)
        ring.allreduce(counted, array)
        halves = Counted(comm)
        ring.reduce_scatter(halves, np.split(array, count), np.add)
        return array.nbytes, counted.sent, halves.sent

    for size, sent, half in ThreadCommunicators(count, timeout=120).run(run):
        model = MACHINE.ring(size, count)
        assert model.bytes == sum(sent) == 2 * (count - 1) / count * size
        assert Machine(1.0, 1e300).ring(size, count).seconds == len(sent)
        assert MACHINE.ring(size, count, rounds=1).bytes == sum(half) == model.bytes / 2


@few
@given(machines, sizes, sizes, workers, st.sampled_from(["ring", "tree", "faster"]))
def test_a_transfer_of_more_bytes_takes_no_less_time(machine, one, other, n, algorithm):
    small, large = (machine.allreduce(size, n, algorithm) for size in sorted([one, other]))
    assert small.seconds <= large.seconds and (small.bytes <= large.bytes or algorithm == "faster")


@few
@given(machines, sizes, workers)
def test_the_faster_algorithm_is_taken(machine, size, n):
    assert machine.allreduce(size, n).seconds == min(machine.ring(size, n).seconds, machine.tree(size, n).seconds)


def test_trees_are_faster_for_short_messages_and_rings_for_long_ones():
    assert MACHINE.allreduce(1000, 64).algorithm == "tree" and MACHINE.allreduce(1e9, 64).algorithm == "ring"
    assert MACHINE.tree(1e6, 1000).seconds == pytest.approx(2 * 10 * (20e-6 + 1e-3))


# Steps ----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@few
@given(steps, machines, workers)
def test_a_step_is_never_shorter_than_its_computing(step, machine, n):
    found = step_time(step, machine, n)
    batch = 1 / n if step.fixed_batch else 1
    work = batch * sum(layer.forward + layer.backward for layer in step.layers)
    assert found.seconds >= found.compute * (1 - 1e-9) >= work * (1 - 1e-6)
    assert -1e-9 <= found.waiting <= 1
    busy = sum(span.end - span.begin for span in found.spans if span.lane == "computing")
    assert busy == pytest.approx(found.compute, rel=1e-6, abs=1e-12)


@pytest.mark.slow
@few
@given(steps, machines, workers)
def test_overlap_is_never_slower(step, machine, n):
    times = [step_time(step, machine, n, overlap=overlap).seconds for overlap in (True, False)]
    assert times[0] <= times[1] * (1 + 1e-9)


@pytest.mark.slow
@few
@given(steps, machines, workers, st.floats(1, 10))
def test_more_bytes_take_no_less_time(step, machine, n, factor):
    """In as many buckets: otherwise the last bucket of more bytes may be a smaller one."""
    layers = [layer._replace(gradients=layer.gradients * factor) for layer in step.layers]
    more = replace(step, layers=layers, bucket=step.bucket * factor)
    found, larger = (step_time(each, machine, n) for each in (step, more))
    if len(found.spans) == len(larger.spans):  # rounding may make one bucket more
        assert found.seconds <= larger.seconds * (1 + 1e-9)


@pytest.mark.slow
@few
@given(steps, machines, workers)
def test_one_transfer_is_sent_at_a_time_and_none_before_its_bucket_is_full(step, machine, n):
    found = step_time(step, machine, n)
    sent = [span for span in found.spans if span.lane == "network"]
    assert all(one.end <= other.begin for one, other in pairwise(sent))
    buckets = step.buckets()
    assert sum(size for _, size in buckets) == pytest.approx(step.gradients)
    forward = sum(span.end - span.begin for span in found.spans if span.name == "forward")
    pace = machine.slowest(n) / (n if step.fixed_batch else 1)
    for span, (full, _) in zip(sent, buckets):
        assert span.begin >= (forward + full * pace) * (1 - 1e-9)


def test_a_step_that_can_be_computed_by_hand():
    """2 buckets of 50 MB, at 0.2 s and 0.3 s; each takes 50 ms and two messages on 2 workers."""
    each = 0.05 + 2 * 20e-6
    assert STEP.buckets() == [(pytest.approx(0.1), 50e6), (pytest.approx(0.2), 50e6)]
    found = step_time(STEP, MACHINE, 2)
    assert found.seconds == pytest.approx(0.3 + each) and found.compute == pytest.approx(0.3)
    assert found.bytes == 100e6 and found.efficiency == pytest.approx(0.3 / found.seconds)
    assert step_time(STEP, MACHINE, 2, overlap=False).seconds == pytest.approx(0.3 + 2 * each)
    assert step_time(STEP, MACHINE, 2, fixed_batch=True).seconds == pytest.approx(0.15 + 2 * each - 0.05)
    assert repr(found) == "<2 workers: 350 ms a step, efficiency 86%, waiting for the network 14%>"
    assert step_time(STEP, MACHINE, 1).seconds == pytest.approx(STEP.seconds)


def test_a_sharded_optimizer_updates_a_part_and_sends_as_many_bytes():
    step = replace(STEP, update=0.4, algorithm="ring")
    whole, part = (step_time(step, MACHINE, 4, sharded=sharded) for sharded in (False, True))
    assert part.bytes == pytest.approx(whole.bytes)
    assert whole.compute - part.compute == pytest.approx(0.3)
    assert [span.name for span in part.spans][-2:] == ["update", "all-gather"]


def test_layers_without_gradients_delay_no_bucket():
    layers = [Layer(0, 1.0, 0), Layer(0, 1.0, 8.0), Layer(0, 1.0, 0)]
    assert Step(layers, bucket=8).buckets() == [(2.0, 8.0)]
    assert Step([Layer(1.0, 1.0, 0)]).buckets() == []
    assert step_time(Step([Layer(1.0, 1.0, 0)]), MACHINE, 9).seconds == 2.0


# Slow workers ---------------------------------------------------------------------------------------------------------


def test_rounding_fills_no_bucket():
    """The sum of 96 equal parts of 14e9 is larger than 14e9 by 2e-5 bytes, or smaller."""
    buckets = Step.even(96, forward=0.4, backward=0.8, gradients=14e9, bucket=100e6).buckets()
    assert len(buckets) == 140 and min(size for _, size in buckets) == pytest.approx(100e6)
    assert buckets[-1][0] == pytest.approx(0.8)


@pytest.mark.parametrize("n", [1, 10, 1000])
def test_the_longest_of_exponential_delays_is_a_harmonic_number(n):
    harmonic = sum(1 / i for i in range(1, n + 1))
    assert Machine(0, 1, jitter=0.1).slowest(n) == pytest.approx(1 + 0.1 * harmonic, rel=0.02)


@pytest.mark.slow
@few
@given(machines, workers, workers)
def test_more_workers_wait_no_less_for_the_slowest(machine, one, other):
    fewer, more = sorted([one, other])
    assert 1 <= machine.slowest(fewer) <= machine.slowest(more)


def test_one_slow_worker_slows_all():
    fast, slow = (step_time(STEP, Machine(0, 1e15), 1000, slow=slow, slowdown=1.1).seconds for slow in (0, 1))
    assert slow == pytest.approx(1.1 * fast)


# Errors ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("what_if", "n", "message"), [
    ({}, 0, "workers=0\n  Expected: a number from 1"),
    ({"buckets": 3}, 8, "has a field 'buckets'\n  Expected: layers, update, bucket"),
    ({"bucket": 10}, 8, "bucket=10\n  Expected: a number from 1,000"),
    ({"bandwidth": 0}, 8, "bandwidth=0\n"), ({"slowdown": 0.5}, 8, "slowdown=0.5\n"),
    ({"update": float("nan")}, 8, "update=nan\n"), ({"algorithm": "star"}, 8, "algorithm='star'\n  Expected: 'ring', "),
    ({"layers": []}, 8, "a step has layers"), ({"layers": [Layer(-1.0, 1.0, 1.0)]}, 8, "a step has layers"),
])
def test_settings_that_mean_nothing_are_refused(what_if, n, message):
    with pytest.raises(DistributedError) as error:
        step_time(STEP, MACHINE, n, **what_if)
    assert message in str(error.value)


def test_arguments_of_other_types_are_named():
    with pytest.raises(ConversionError, match="Machine: latency is not a number"):
        Machine("fast", 1e9)
    with pytest.raises(ConversionError, match="step_time: machine is not a Machine"):
        step_time(STEP, 3, 10)


# Calibration ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 4, 5])
def test_a_machine_is_found_again_from_the_times_of_its_all_reduces(n, monkeypatch):
    def seconds(work, runs, before):
        work()
        return MACHINE.allreduce(work.args[1].nbytes, n).seconds

    monkeypatch.setattr(simulate, "_seconds", seconds)
    for fit in ThreadCommunicators(n, timeout=120).run(lambda comm: mg.distributed.measure_machine(comm)):
        assert fit.latency == pytest.approx(MACHINE.latency) and fit.bandwidth == pytest.approx(MACHINE.bandwidth)


def test_the_clock_gives_a_machine_that_all_ranks_agree_on():
    ranks = ThreadCommunicators(2, timeout=120)
    one, other = ranks.run(lambda comm: mg.distributed.measure_machine(comm, sizes=(4, 40_000), runs=2))
    assert one == other and one.latency >= 0 and one.bandwidth > 0
    with pytest.raises(DistributedError, match="one rank sends nothing"):
        mg.distributed.measure_machine(mg.distributed.communicator())


def test_a_step_is_measured_by_the_hooks_of_its_parameters():
    net = mg.nn.Sequential(mg.nn.Linear(4, 8), mg.nn.Tanh(), mg.nn.Linear(8, 2))
    x, updates = mg.ones((3, 4)), []
    step = mg.distributed.measure_step(
        lambda: net(x).sum(), net.parameters(), lambda: updates.append(net[0].weight.grad is not None), runs=3
    )
    assert updates == [True] * 4 and net[0].weight.grad is None
    assert sorted(layer.gradients for layer in step.layers) == [8, 32, 64, 128]
    assert sum(layer.gradients for layer in step.layers[:2]) == 160  # the first layer of the network is the first here
    assert all(layer.forward > 0 and layer.backward > 0 for layer in step.layers) and step.update > 0
    with pytest.raises(DistributedError, match="has no gradient with respect to these parameters"):
        mg.distributed.measure_step(lambda: net(x).sum(), [])


def test_a_program_scales_the_times_of_a_measured_step(monkeypatch):
    net = mg.nn.Linear(4, 2)
    monkeypatch.setattr(simulate, "_seconds", lambda work, runs: (work(), 8.0)[1])
    step = mg.distributed.measure_step(lambda: net(mg.ones(4)).sum(), net.parameters(), jitted=lambda: None, runs=1)
    assert step.seconds == pytest.approx(8.0)
