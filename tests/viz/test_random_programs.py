"""The views of random programs: those with which other tests compare modes, gradients and scripts."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings

import minigrad as mg
from tests.compile.programs import random_program as operations
from tests.scripting.test_programs import REFUSED, arguments, defined, sources
from tests.test_fuzz_mutation import OnTensors, run
from tests.test_fuzz_mutation import random_program as mutations
from tests.viz.test_any_program import seen


@pytest.mark.parametrize("seed", range(12))
def test_views_of_random_operations(seed):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outputs, _alive = operations(seed, 14)
        for output in [each for each in outputs if each.tracked and each.node.op is not None][:2]:
            seen(output.astype("float32").sum(), whole=False)


@pytest.mark.parametrize("seed", range(12))
def test_views_of_random_writes(seed):
    """Where a value that the gradient needs was overwritten, the view raises the error of `backward`."""
    x = mg.asarray(np.random.default_rng(seed).normal(size=(3, 4)), requires_grad=True)
    with np.errstate(all="ignore"):
        try:
            loss, _held = run(OnTensors(), x, mutations(seed))
        except mg.MutationError:
            return  # the program itself is an error
        if not loss.tracked:
            return
        try:
            loss.backward(retain_graph=True)
        except mg.MutationError as error:
            with pytest.raises(mg.MutationError, match=str(error).split(",")[0][:20]):
                mg.viz.step(loss)
            return
        mg.viz.graph(loss, backward=True, values=True)._repr_mimebundle_()
        stepper = mg.viz.step(loss)
        assert stepper.data() and stepper.text()
        assert "was changed since" in (stepper.recording.missing or "was changed since")


@settings(max_examples=8)
@given(source=sources())
def test_graphs_of_random_scripts(source):
    """Scripts have branches in loops in branches, which the picture writes out."""
    scripted = mg.script(defined(source))
    try:
        graph = mg.trace(scripted, *arguments(1, 2))
    except (mg.MutationError, mg.TraceError) as error:
        assert any(words in str(error) for words in REFUSED)
        return
    if graph.nodes:
        picture = mg.viz.graph(scripted, *arguments(1, 2), budget=400)
        words = picture.text() + picture.to_svg()
        assert "project" not in words and " 1 results" not in words
        has_loops = any(hasattr(held, "graph") for node in graph.nodes for held in node.attrs.values())
        assert has_loops == any(box.scope for part in picture.parts for box in part.scene.boxes)
