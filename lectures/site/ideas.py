"""The ideas and terms of the three documents that the course is made from, in our own words: each one once.

A unit says where it teaches an idea by `Seed("000: JAX", "three_ways")`: the document, the idea as it is written here,
and a task or cell.  Tests fail where a unit names an idea that is not here, and where no unit teaches an idea.
"""

from __future__ import annotations

from collections.abc import Iterable

DOCUMENTS = {
    "000": "Eager mode, fusion and graph mode: a note",
    "001": "Machine-learning frameworks as systems: a lecture",
    "002": "The parts of a deep-learning framework: a lecture",
}

IDEAS: dict[str, tuple[str, ...]] = {
    "000": (
        "PyTorch began with eager mode, and TensorFlow with graph mode",
        "eager mode executes each operation at once, line by line",
        "eager mode shows intermediate results, which helps debugging and understanding",
        "each operation reads from memory, computes, and writes to memory",
        "eager mode needs more memory bandwidth",
        "operator fusion: several functions are computed in one pass",
        "fusion minimises reads and writes of memory",
        "fusion saves operator dispatch",
        "fusion saves memory bandwidth",
        "memory size, and how fusion saves it",
        "fusing by hand makes operators: PyTorch came to have more than 2,000",
        "graph mode has two phases: a graph is defined, then executed",
        "a graph is a series of interconnected nodes",
        "nodes represent operations or variables",
        "edges represent the data flow between nodes",
        "the deferred execution of an optimised version of the graph",
        "graph mode: nothing can be seen until the graph has been executed",
        "graph mode makes debugging and understanding harder",
        "interpreted versus compiled languages",
        "JAX",
        "Triton",
        "PyTorch: flexibility and usability",
    ),
    "001": (
        "many applications of machine learning appear",
        "algorithms, hardware and data: the three factors of the boom",
        "heterogeneous processors: CPUs, GPUs and TPUs",
        "TPUs",
        "10 to 100 times acceleration",
        "PB-scale data",
        "data centres with 100,000s of machines",
        "ML frameworks are a new category of system software",
        "neural-network libraries (Theano, Caffe) and what they lack",
        "data-parallel systems (Spark, Giraph) and what they lack",
        "ML frameworks (PyTorch, TensorFlow): all six columns of the table",
        "support for neural networks",
        "support for automatic differentiation",
        "management of unstructured and semi-structured data",
        "training and inference",
        "support for heterogeneous processors",
        "distributed execution",
        "programming abstraction: machine learning in different applications",
        "execution engine: gradient-based computation",
        "execution engine: parallel computation",
        "hardware runtime: uses all heterogeneous processors",
        "one unified programming abstraction for different applications",
        "DNNs: deep neural networks",
        "GNNs: graph neural networks",
        "DRL: deep reinforcement learning",
        "ML programs are expressed as computational graphs",
        "gradients are computed automatically by the chain rule",
        "the gradient function takes the inputs of its primitive",
        "the gradient function takes the output of its primitive",
        "the gradient function takes the gradient of the final output by its output",
        "an example of automatic differentiation",
        "parallelism is discovered in the graph",
        "front-end and back-end languages",
        "launching kernels from Python often has a large overhead",
        "sub-graphs are discovered and launched as one",
        "sub-graphs are offloaded to heterogeneous processors",
        "annotation by the user: @tf.function, @jit.script",
        "just-in-time compilation by tracing: @jit.trace",
        "operators have kernels for CPUs and GPUs",
        "kernel dispatchers",
        "a simple and flexible front end in a high-level language, Python",
        "support for the full life-cycle of a model",
        "one expression of computation for everything",
        "back-end execution: parallelism, offloading",
        "reading: Deep learning with PyTorch in 60 minutes",
        "reading: the TensorFlow paper",
        "reading: the PyTorch paper",
    ),
    "002": (
        "reverse mode fixes one output ℓ over ℝ",
        "reverse mode computes ∂ℓ/∂y for each value y",
        "reverse mode goes backward through the computation",
        "core component: a numerical linear algebra library",
        "core component: hardware support",
        "core component: a backpropagation engine",
        "core component: a library for neural networks",
        "all components are embedded in a high-level language, usually Python",
        "NumPy is a numerical linear algebra library",
        "arrays are objects that the library owns",
        "all arithmetic on arrays goes through the library",
        "the library calls an optimised function for each operation",
        "the function runs outside the Python interpreter",
        "control returns to Python when the function is finished",
        "by default one such function runs at a time",
        "arrays are mutable",
        "an array can have several references",
        "on-device arrays: a copy of NumPy for each kind of hardware",
        "every function has a copy for each kind of hardware",
        "an array lies explicitly on one device",
        "x.to moves an array to a device",
        "the library checks where the inputs lie",
        "inputs on one device: that device's version is called",
        "inputs on different devices: an exception is raised",
        "eager: manifest a node and compute its value at once",
        "graph: just manifest a node",
        "graph: a function is called later to compute the forward pass",
        "the classic distinction between TensorFlow and PyTorch",
    ),
}


def ideas() -> Iterable[str]:
    """All ideas as units write them: the number of the document and the words.

    >>> next(iter(ideas()))
    '000: PyTorch began with eager mode, and TensorFlow with graph mode'
    """
    return (f"{document}: {words}" for document, listed in IDEAS.items() for words in listed)
