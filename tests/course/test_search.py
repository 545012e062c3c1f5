"""The search answers questions: a page that answers is among the first three results."""

import pytest

from tests.viz.browser import needs_browser, opened

FIRST = 3
# What users type, and the beginning of the address that must be found.
QUESTIONS = {
    "how do I freeze layers": "howto_freeze",
    "freeze": "howto_freeze",
    "train only the last layer of a pretrained model": "howto_fine_tune",
    "transfer learning": "howto_fine_tune",
    "save a model and load it again": "howto_save_and_load",
    "load a model": "howto_save_and_load",
    "gradient accumulation": "howto_accumulate",
    "gradients explode, how can I clip them?": "howto_clip",
    "custom layer": "howto_own_layer",
    "custom dataset": "howto_own_dataset",
    "plot loss curve": "howto_plot_training",
    "model summary": "howto_summary",
    "how many parameters does my model have": "howto_summary",
    "learning rate schedule with warmup": "howto_schedules",
    "how to get the same result on every run": "howto_reproducible",
    "see what got fused": "howto_what_got_fused",
    "why does jit retrace": "howto_retrace",
    "my function is recompiled on each call": "howto_retrace",
    "make training faster on a laptop": "howto_fast",
    "train on GPU": "howto_gpu",
    "multiple GPUs data parallel": "howto_distributed",
    "mixed precision": "howto_mixed_precision",
    "export to onnx": "howto_export",
    "figure for my paper as svg": "howto_picture",
    "is my gradient correct?": "howto_check_gradient",
    "straight-through estimator": "howto_own_gradient",
    "per-sample gradients": "howto_per_example",
    "second derivative": "howto_second_derivatives",
    "I run out of memory": "howto_memory",
    "loss is nan": "howto_nan",
    "why is my grad None": "howto_grad_none",
    "step through the backward pass": "howto_step_through_backprop",
    "load pytorch weights": "howto_pytorch_weights",
    "use scipy minimize with gradients": "howto_with_scipy",
    "if statement inside jit": "howto_loops_in_jit",
    "install": "howto_install",
    "quickstart": "howto_train_a_network",
    "fuse": "howto_what_got_fused",
    "operator fusion": "11_fusion",
    "in-place": "museum",
    "unsqueeze": "coming_from",
    "allreduce": "13_distributed",
    "what is a view of an array": "02_arrays",
    # Titles of threads in issue trackers and forums.
    "How to extract middle layer features": "howto_inner_outputs",
    "Share weights of embedding layer with output layer": "howto_shared_weights",
    "More and more memory is used during training": "howto_memory",
    "Jit of grad uses a ton of memory": "howto_memory",
    "Expected all tensors to be on the same device, but found at least two devices, cpu and cuda:0!": "howto_gpu",
    "Trying to backward through the graph a second time (or directly access saved tensors)": "howto_backward_twice",
    "Why does PyTorch require to retain graph?": "errors",
    "Why didn't my loss drop in training?": "howto_loss_does_not_fall",
    "Loss does not decrease during training": "howto_loss_does_not_fall",
    "How to handle unbalanced data?": "howto_class_weights",
    "How to print values inside a @jit-compiled function?": "howto_print_in_jit",
    "Any way to convert a tracer back into a numpy or print out its values?": "howto_print_in_jit",
    "Apply JIT compiling for faster training": "howto_fast",
    "Can't Get Lower Loss": "howto_loss_does_not_fall",
    "Loss is not changing. Its remaining constant": "howto_loss_does_not_fall",
    "Why is my neural net not learning?": "howto_loss_does_not_fall",
    "PyTorch Neural Networks: Why Your Loss Isn't Decreasing": "howto_loss_does_not_fall",
    "Ensure backward() is idempotent": "howto_backward_twice",
    "Getting loss as `nan` with jit, but no `nan`s without jit": "howto_nan",
    "Random nan values from value_and_grad under jit": "howto_nan",
    "Help with gradient memory issue": "howto_memory",
    "BUG: JIT session error: Cannot allocate memory": "howto_memory",
    "difference between autograd.grad and autograd.backward": "howto_grad_or_backward",
    "The gradient argument in backward": "howto_grad_or_backward",
    "Micrograd subtraction gradient is wrong": "howto_check_gradient",
    "Writing distributed applications": "howto_distributed",
    "view() or reshape()": "02_arrays",
    "example of using the trained model for inference": "howto_predict",
    "How to run visualization using existing model": "howto_predict",
    "Resume": "howto_save_and_load",
    "nn.Module state_dict missing keys": "howto_pytorch_weights",
    "how to set requires_grad False": "howto_freeze",
    "Linear layer input shape mismatch": "howto_shapes_do_not_fit",
    "mat1 and mat2 shapes cannot be multiplied": "howto_shapes_do_not_fit",
}

FORMS = [
    "fuse fused fusing fusion", "accumulate accumulation accumulating", "retrace retracing retraced", "copy copies",
    "optimise optimizer optimizing", "clip clipping clipped", "layer layers", "class classes", "loss losses",
    "batch batches", "bias biases", "trace traces tracing", "stop stopped stopping", "order orders",
]


@pytest.fixture(scope="module")
def found(site):
    """For each question the addresses of the results, in order."""
    with opened(url=(site / "index.html").as_uri()) as page:
        return page.evaluate("(asked) => asked.map((text) => ranked(text).map((line) => line[2]))", [*QUESTIONS])


@needs_browser
def test_forms_of_a_word_have_one_stem_and_other_words_another(site):
    with opened(url=(site / "index.html").as_uri()) as page:
        stems = page.evaluate("(all) => all.map((words) => [...new Set(words.split(' ').map(stem))])", FORMS)
    assert [each for each in stems if len(each) > 1] == [] and len({*map(str, stems)}) == len(FORMS)


@needs_browser
def test_questions_find_their_page_in_the_first_results(found):
    missed = [
        (asked, addresses[:FIRST])
        for (asked, wanted), addresses in zip(QUESTIONS.items(), found, strict=True)
        if not any(address.startswith(wanted) for address in addresses[:FIRST])
    ]
    assert missed == []
