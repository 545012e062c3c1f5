"""Uses an installed minigrad, without the repository: `.ci/install.py` runs this in an empty folder."""

import contextlib
import importlib.util
import io
import pkgutil
import sys
from importlib import import_module
from pathlib import Path

import minigrad as mg
import minigrad_course as course
from minigrad_course.feedback import Wrong

HERE = Path(sys.prefix).resolve()
DEPENDENCIES = {"numpy", "graphviz", "llvmlite", "tqdm"}
OTHERS = ("matplotlib", "IPython", "ipywidgets", "anywidget", "scipy", "onnx", "pandas", "pytest", "safetensors")

# The environment is empty.
assert import_module("minigrad.course") is course  # its name before 0.2.0
assert HERE in Path(mg.__file__).resolve().parents, mg.__file__
assert list(Path.cwd().iterdir()) == []
assert all(map(importlib.util.find_spec, DEPENDENCIES)) and not any(map(importlib.util.find_spec, OTHERS))

# Every module can be imported, and every name of `mg` is there.
for module in pkgutil.walk_packages(mg.__path__, "minigrad."):
    if not module.name.endswith("__main__"):
        import_module(module.name)
assert all(hasattr(mg, name) for name in dir(mg))

# A training step, eagerly and compiled.
digits, tested = mg.data.digits()
images, labels = digits[:32]
model = mg.nn.Sequential(mg.nn.Flatten(), mg.nn.Linear(64, 10))


@mg.jit
def loss(images: mg.Tensor, labels: mg.Tensor) -> mg.Tensor:
    return mg.cross_entropy(model(images), labels)


loss(images, labels).backward()
assert all(p.grad is not None for p in model.parameters())
assert abs(loss(images, labels).item() - loss.function(images, labels).item()) < 1e-5
mg.io.save_file(model.state_dict(), "model.safetensors")
model.load_state_dict(mg.io.load_file("model.safetensors"))

# Data sets.
assert len(digits) + len(tested) > 1000
assert all(map(len, (mg.data.names(), mg.data.karate(), mg.data.airfoil())))

# Views, with their scripts and styles.
for name, view in {
    "graph": mg.viz.graph(loss, images, labels), "step": mg.viz.step(model(images).sum()),
    "fusion": mg.viz.fusion(loss, images, labels), "memory": mg.viz.memory(loss, images, labels),
    "bench": mg.viz.bench(mg.tanh),
}.items():
    view.save(f"{name}.html")
    page = Path(f"{name}.html").read_text(encoding="utf-8")
    assert "<html" in page and len(page) > 1000, name
    assert view.text(), name

# Checks of the course: a right answer passes, and a wrong one gets a hint.
course.begin("06_reverse_mode", student="Ada")


def backward_order(result):
    found, to_visit = {result}, [result]
    while to_visit:
        for source in course.made_from(to_visit.pop()):
            if source not in found:
                found.add(source)
                to_visit.append(source)
    return sorted(found, key=lambda node: node.serial, reverse=True)


def feedback():
    """What the check prints, or raises, about the student's answer."""
    with contextlib.redirect_stdout(io.StringIO()) as text:
        try:
            course.check("backward_order")
        except Wrong as wrong:
            return str(wrong)
    return text.getvalue()


assert feedback().startswith("✓"), feedback()
backward_order = lambda result: [result]  # noqa: E731, F811 - the answer of a student who forgot the rest
assert feedback().startswith("✗") and "Hint: " in feedback(), feedback()
print("import, a compiled step, files, data sets, views and checks of the course work in", HERE)
