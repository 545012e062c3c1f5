"""An interrupted training run continues with the same bits as an uninterrupted one."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import minigrad as mg
from minigrad.io.checkpoints import KEY


def training_step(model, optimizer, schedule, average):
    def step(x, y):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        schedule.step()
        average.update()
        return loss

    return step


class Training:
    """A small training run with every kind of state: dropout, running statistics, moments, a schedule, an average."""

    def __init__(self, jit, seed=0):
        mg.random.seed(seed)
        self.model = mg.nn.Sequential(
            mg.nn.Linear(4, 8), mg.nn.BatchNorm1d(8), mg.nn.Dropout(0.5), mg.nn.GELU(), mg.nn.Linear(8, 1)
        )
        self.optimizer = mg.optim.AdamW(self.model.parameters(), lr=0.1)
        self.schedule = mg.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 37)
        self.average = mg.optim.EMA(self.model, decay=0.9)
        self.order = np.random.default_rng(seed)
        self.place = {"epoch": 0, "left": []}
        rng = np.random.default_rng(1)
        self.x, self.y = (mg.asarray(rng.normal(size=(12, n)).astype(np.float32)) for n in (4, 1))
        step = training_step(self.model, self.optimizer, self.schedule, self.average)
        self.step = mg.jit(step) if jit else step

    def parts(self):
        names = ("model", "optimizer", "schedule", "average", "order", "place")
        return {name: getattr(self, name) for name in names}

    def run(self, steps, save=None):
        losses = []
        for step in steps:
            if not self.place["left"]:
                self.place["left"] = self.order.permutation(12).tolist()
                self.place["epoch"] += 1
            batch, self.place["left"] = self.place["left"][:4], self.place["left"][4:]
            losses.append(self.step(self.x[batch], self.y[batch]).item())
            if save is not None:
                save(step + 1)
        return losses

    def state(self):
        tensors = {**self.model.state_dict(), **{f"ema.{k}": v for k, v in self.average.state_dict().items()}}
        return {k: v.numpy_copy().tobytes() for k, v in tensors.items()} | {
            "lr": self.optimizer.lr, "random": mg.random.get_state(), "place": str(self.place),
        }


def check_resumed(folder, jit):
    whole = Training(jit)
    losses = whole.run(range(11))
    first = Training(jit)
    checkpoints = mg.io.Checkpoints(folder, keep=2, **first.parts())
    assert checkpoints.resume() == 0
    before = first.run(range(5), checkpoints.save)
    second = Training(jit, seed=9)
    checkpoints = mg.io.Checkpoints(folder, keep=2, **second.parts())
    assert checkpoints.steps() == [4, 5] and checkpoints.resume() == 5
    assert before + second.run(range(5, 11)) == losses
    assert second.state() == whole.state()


def test_a_resumed_run_equals_the_uninterrupted_one(tmp_path):
    check_resumed(tmp_path, jit=False)


@pytest.mark.slow
def test_resumed_run_under_jit(tmp_path, numpy_kernels):
    check_resumed(tmp_path, jit=True)


@pytest.mark.slow
def test_resumed_run_with_compiled_kernels(tmp_path):
    check_resumed(tmp_path, jit=True)


@pytest.mark.slow
def test_a_killed_run_is_resumed(tmp_path):
    """The process is killed while it writes.  The unfinished file is not taken for a checkpoint."""
    code = textwrap.dedent("""
        import os, sys
        import minigrad as mg
        from minigrad.support import files

        w = mg.asarray([0.0], requires_grad=True)
        checkpoints = mg.io.Checkpoints(sys.argv[1], weights={"w": w}, order=mg.random.Generator(3))
        for step in (1, 2):
            checkpoints.save(step)
        files.os.fsync = lambda _: os.kill(os.getpid(), 9)
        checkpoints.save(3)
    """)
    command = [sys.executable, "-c", code, str(tmp_path)]
    assert subprocess.run(command, cwd=Path(mg.__file__).parents[1]).returncode == -signal.SIGKILL
    assert len(os.listdir(tmp_path)) == 3  # and one unfinished file
    order = mg.random.Generator(0)
    checkpoints = mg.io.Checkpoints(tmp_path, weights={}, order=order)
    assert checkpoints.resume() == 2 and order.get_state() == {"key": 3, "block": 0}
    checkpoints.save(3)
    assert sorted(os.listdir(tmp_path)) == [f"step-0000000{n}.safetensors" for n in (1, 2, 3)]


def test_a_checkpoint_is_a_file_of_weights_as_well(tmp_path):
    model = mg.nn.Linear(2, 3)
    optimizer = mg.optim.Adam(model.parameters())
    mg.io.save_checkpoint(tmp_path / "c.safetensors", 3, model=model, optimizer=optimizer)
    arrays = safetensors.numpy.load_file(tmp_path / "c.safetensors")
    assert arrays["model.weight"].tolist() == model.weight.tolist()
    assert "optimizer.state.0.exp_avg" in arrays


@pytest.fixture
def three(tmp_path):
    """Checkpoints of three steps of a single weight."""
    w = mg.asarray([0.0], requires_grad=True)
    optimizer = mg.optim.SGD([w], lr=1.0)
    checkpoints = mg.io.Checkpoints(tmp_path, optimizer=optimizer, model=mg.nn.Linear(1, 1))
    for step in (1, 2, 3):
        checkpoints.save(step)
    return checkpoints


def test_the_newest_whole_checkpoint_is_taken(three):
    newest, before = three.path(3), three.path(2)
    newest.write_bytes(newest.read_bytes()[:-4])
    content = bytearray(before.read_bytes())
    content[-1] ^= 1
    before.write_bytes(content)
    with pytest.warns(UserWarning) as caught:
        assert three.resume() == 1
    words = [str(warning.message) for warning in caught]
    assert "is not a safetensors file, or it is damaged" in words[0] and words[0].endswith("it was renamed")
    assert "are not those that were saved" in words[1]
    assert three.steps() == [1] and newest.with_name(newest.name + ".damaged").is_file()
    three.path(1).write_bytes(b"")
    with pytest.warns(UserWarning), pytest.raises(mg.FileError, match=r"all checkpoints in .* are damaged"):
        three.resume()


def test_checkpoints_of_another_run_are_not_mixed_in(three):
    other = mg.io.Checkpoints(three.folder, keep=1, **three.parts)
    with pytest.raises(mg.FileError, match=r"has a checkpoint of step 3 already, of a run that this one does"):
        other.save(1)
    assert other.resume() == 3
    other.save(4)
    assert other.steps() == [4]


def edited(path, change):
    """The same file with other metadata."""
    with mg.io.open_file(path) as file:
        data = json.loads(file.metadata[KEY])
        arrays = {name: file[name] for name in file}
    data = change(data)
    mg.io.save_file(arrays, path, {KEY: data if isinstance(data, str) else json.dumps(data)})


def put(key, value):
    return lambda data: data | {key: value}


HOSTILE = {
    "no JSON": (lambda data: "[" * 100_000, "is damaged: RecursionError"),
    "half of it": (lambda data: "{", "is damaged: JSONDecodeError"),
    "another format": (put("format", 99), "is a checkpoint of another format\n  Expected: 1\n  Got: 99"),
    "a step of text": (put("step", "ten"), "a step is a whole number"),
    "no parts": (put("parts", [1, 2]), "is damaged: ProgramError: load: .* is not a value"),
    "something unknown": (put("parts", {"call": "os.system"}), "is damaged: .* is not a value"),
    "tensors that are not there": (put("parts", {"dict": [["model", {"tensor": 77}]]}), "its tensors are not those"),
    "no tensors": (put("arrays", []), "its tensors are not those that its list names"),
    "another tensor": (put("arrays", [["../../etc/passwd", "tensor", 0]] * 2), "there is no tensor"),
}


@pytest.mark.parametrize(("change", "words"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_checkpoint_is_refused_and_nothing_changes(three, change, words):
    edited(three.path(3), change)
    three.parts["optimizer"].lr = 0.5
    with pytest.raises(mg.FileError, match=words):
        mg.io.load_checkpoint(three.path(3), **three.parts)
    assert three.parts["optimizer"].lr == 0.5


def test_mismatched_parts_are_listed_together(three):
    with pytest.raises(mg.FileError) as error:
        mg.io.load_checkpoint(three.path(3), model=three.parts["model"], average=mg.nn.Linear(1, 1), place={})
    for part in ("nothing was loaded", "missing:    average, place", "unexpected: optimizer"):
        assert part in str(error.value)


def test_missing_or_extra_parts_are_refused(three):
    for parts, words in ((three.parts | {"place": {}}, "missing:    place"), ({}, "unexpected: ")):
        with pytest.raises(mg.FileError, match=words):
            mg.io.load_checkpoint(three.path(3), **parts)


def test_mismatch_in_one_part_leaves_the_others_unchanged(three):
    model = mg.nn.Linear(1, 1)
    before, drawn = model.state_dict(), mg.random.get_state()
    optimizer = mg.optim.SGD([mg.ones(7, requires_grad=True), mg.ones(7, requires_grad=True)], lr=1.0)
    mg.random.seed(drawn["key"] + 1)
    with pytest.raises(mg.MinigradError, match=r"the state does not fit SGD"):
        mg.io.load_checkpoint(three.path(3), model=model, optimizer=optimizer)
    assert all((before[name] == tensor).all() for name, tensor in model.state_dict().items())
    assert mg.random.get_state()["key"] == drawn["key"] + 1


def test_mismatch_in_the_optimizer_leaves_the_rate_that_a_schedule_has_set_already(tmp_path):
    def made(size):
        optimizer = mg.optim.SGD([mg.ones(size, requires_grad=True)], lr=1.0, momentum=0.5)
        return {"optimizer": optimizer, "schedule": mg.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)}

    saved, other = made(2), made(3)
    saved["schedule"].step()
    mg.io.save_checkpoint(tmp_path / "c", **saved)
    with pytest.raises(mg.MinigradError, match=r"the state does not fit SGD"):
        mg.io.load_checkpoint(tmp_path / "c", **other)
    assert other["optimizer"].lr == 1.0 and other["schedule"].state_dict()["last_epoch"] == 0


def test_unsupported_parts_are_refused(tmp_path):
    with pytest.raises(mg.FileError, match=r"a checkpoint cannot hold 'model', a list\n  Expected: an object with"):
        mg.io.Checkpoints(tmp_path, model=[1])
    with pytest.raises(mg.FileError, match=r'the name "random" is taken by minigrad\'s default generator'):
        mg.io.save_checkpoint(tmp_path / "c", random={})
    with pytest.raises(mg.FileError, match=r"keep is a whole number, 1 or more, not 0"):
        mg.io.Checkpoints(tmp_path, keep=0)
    with pytest.raises(mg.MinigradError, match=r"the checkpoint.* is a function, which cannot be part of a file"):
        mg.io.save_checkpoint(tmp_path / "c", place={"f": check_resumed})
    mg.io.save_file({"a": mg.ones(1)}, tmp_path / "w.safetensors")
    with pytest.raises(mg.FileError, match=r"w.safetensors is not a checkpoint\n  Hint: mg.io.load_file"):
        mg.io.load_checkpoint(tmp_path / "w.safetensors")
    assert os.listdir(tmp_path) == ["w.safetensors"]


def test_callback_of_fit_saves_checkpoints_at_intervals(tmp_path):
    w = mg.asarray([1.0], requires_grad=True)
    optimizer = mg.optim.SGD([w], lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = ((w - x) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    checkpoints = mg.io.Checkpoints(tmp_path, every=4, optimizer=optimizer)
    train = pytest.importorskip("minigrad.train")
    train.fit(step, [1.0, 2.0, 3.0], epochs=3, callbacks=[checkpoints], quiet=True)
    assert checkpoints.steps() == [4, 8] and repr(checkpoints) == "<checkpoints of steps 4, 8>"


def test_loader_continues_in_the_middle_of_an_epoch(tmp_path):
    def loader(seed):
        return mg.data.DataLoader(mg.data.TensorDataset(np.arange(10)), batch_size=3, shuffle=True, seed=seed)

    whole = loader(1)
    expected = [batch.tolist() for _ in range(2) for (batch,) in whole]
    first, seen = loader(1), []
    for (batch,) in first:
        seen.append(batch.tolist())
        if len(seen) == 2:
            mg.io.save_checkpoint(tmp_path / "c", 2, loader=first)
            break
    second = loader(8)
    assert mg.io.load_checkpoint(tmp_path / "c", loader=second) == 2
    assert seen + [batch.tolist() for _ in range(2) for (batch,) in second] == expected
