"""The stages of a jitted function, as objects that print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..nodes.thresholds import RECORDED_RUNS

if TYPE_CHECKING:  # what shows the stages is imported when a stage is first looked at
    from ..functions.function import TracedFunction
    from ..fusion.group import Partition
    from ..nodes.graph import Graph
    from ..rewriting.passes import Log
    from ..running.plain import PlainProgram
    from ..running.program import Program
    from .code import Code
    from .cost import Cost
    from .ran import Ran
    from .record import Record
    from .stage import Stage
    from .values import Values


class Stages:
    """The stages of the compiler for a function, of the last call with such arguments or of the next one."""

    def ran(self, *args: Any, **kwargs: Any) -> Ran:
        """The programs of the last call with such arguments."""
        raise NotImplementedError

    def traced(self, *args: Any, **kwargs: Any) -> TracedFunction:
        """The traced function for these arguments, with its graph and its program."""
        return self.ran(*args, **kwargs).recording.traced

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """The graph for these arguments, with the nodes of the gradient if it was computed.

        >>> print(mg.jit(lambda x: (x * x).sum()).graph(mg.ones(3)))
        tensor_1: float32 (3,)
        multiply_1: float32 (3,) = multiply(tensor_1, tensor_1)
        sum_1: float32 () = sum(multiply_1, axis=(0,), keepdims=False, dtype=None)
        return sum_1
        """
        return self.ran(*args, **kwargs).graph

    def program(self, *args: Any, **kwargs: Any) -> Program | PlainProgram:
        """The program for these arguments: its steps, the place of each value, and which step waits for which.

        >>> print(mg.jit(lambda x: mg.tanh(x @ x) @ x).program(mg.ones((8, 8))))
        turn  step      writes               reads                                after
        0     matmul_1  matmul_1 [slot 0]    tensor_1 [input 0]                   -
        1     kernel_1  tanh_1 [slot 1]      matmul_1 [slot 0]                    matmul_1
        2     matmul_2  matmul_2 [result 0]  tanh_1 [slot 1], tensor_1 [input 0]  kernel_1
        arena of 512 B in 2 slots (256 B, 256 B)

        The program of the gradient, if it was computed, is printed below:

        >>> f = mg.jit(lambda x: (x * x).sum())
        >>> gradient = mg.grad(f)(mg.ones(3))
        >>> print(f.program(mg.ones(3)))
        forward pass, keeps values for the gradient:
        turn  step      writes            reads               after
        0     kernel_0  sum_1 [result 0]  tensor_1 [input 0]  -
        arena of 0 B in 0 slots
        <BLANKLINE>
        gradient:
        turn  step      writes            reads                                      after
        0     kernel_0  add_1 [result 0]  cotangent_1 [input 1], tensor_1 [input 0]  -
        arena of 0 B in 0 slots
        >>> f.program(mg.ones(3)).gradient
        <Program of 1 steps, 1 of them kernels, arena 0 B>
        """
        return self.ran(*args, **kwargs).program

    def values(self, *args: Any, **kwargs: Any) -> Values:
        """The values of all nodes for these arguments, each computed when it is read, without any effects.

        With the nodes of a gradient, the gradients of all results are ones.

        >>> f = mg.jit(lambda x: mg.tanh(x * 2).sum())
        >>> values = f.values(mg.zeros(2))
        >>> values["tanh_1"].tolist(), [node.name for node in values]
        ([0.0, 0.0], ['tensor', 'multiply', 'tanh', 'sum'])
        """
        return self.ran(*args, **kwargs).values

    def passes(self, *args: Any, **kwargs: Any) -> Log:
        """The log of the passes; `.gradient` is the log of the gradient, if it was computed.

        >>> mg.jit(lambda x: x * 1 + 0 * x).passes(mg.ones(3)).counts()["x * 1 -> x"]
        1
        """
        return self.ran(*args, **kwargs).passes

    def kernels(self, *args: Any, **kwargs: Any) -> Partition:
        """The kernels and library calls of the graph, and the reasons; `.gradient` has those of the gradient.

        >>> print(mg.jit(lambda x: mg.exp(x - x.max(-1, keepdims=True)).sum(-1)).kernels(mg.ones((4, 16))))
        kernel_0 (level 0): 4 rows of 16
          for each row: max_1, sum_1
          for each element: subtract_1, exp_1
          reads tensor_1
          writes sum_1
        """
        return self.ran(*args, **kwargs).kernels

    def code(self, *args: Any, **kwargs: Any) -> Code:
        """The text of each kernel: LLVM's language, WebAssembly in a browser, or C where NumPy runs the kernels.

        >>> code = mg.jit(lambda x: mg.tanh(x) * 2).code(mg.ones(100))
        >>> list(code.kernels), "kernel" in str(code)
        (['kernel_0'], True)
        """
        return self.ran(*args, **kwargs).code

    def stages(self, *args: Any, **kwargs: Any) -> list[Stage]:
        """All stages of the program as a list, each with a name, an object and its text.

        >>> [stage.name for stage in mg.jit(lambda x: mg.tanh(x * 1)).stages(mg.ones(3))]
        ['as traced', 'simplify', 'kernels', 'loops', 'widened', 'code', 'program']
        """
        from .stage import stages_of

        return stages_of(self.ran(*args, **kwargs).programs[0])

    def cost(self, *args: Any, **kwargs: Any) -> Cost:
        """The cost of the program, and of the graph node by node: bytes, operations, launches, memory.

        A launch is one call of machine code or of a library; checks of positions do not count.  Bytes are those of
        memory, each buffer once for each kernel.  A loop counts its rounds: a while_loop those of the last run, and
        one round before the first run.

        >>> print(mg.jit(lambda x: mg.tanh(x @ x) * 2).cost(mg.ones((8, 8))))
        step      computes             read  written  flops  flops/byte  read and written node by node
        matmul_1  matmul_1            256 B    256 B  1,024        2.00                          512 B
        kernel_1  tanh_1, multiply_1  256 B    256 B    128        0.25                        1.02 kB
        ...
        """
        return self.ran(*args, **kwargs).cost

    def record(self, *args: Any, runs: int = RECORDED_RUNS, **kwargs: Any) -> Record:
        """Call the function many times, and return what the quickest call ran, when, and what that moved.

        Side effects happen in every call.  If the gradient of the last call ran, the record of its program, alone and
        on gradients that are ones, is the `gradient` of this one.  If these arguments do not require the gradients that
        those of the last call did, the program of the last call is run alone.

        >>> record = mg.jit(lambda x: mg.tanh(x @ x) * 2).record(mg.ones((64, 64)))
        >>> [(event.name, event.cost.bytes) for event in record.events]
        [('matmul_1', 32768), ('kernel_1', 32768)]
        """
        from .ran import recorded
        from .record import in_turns

        return in_turns([recorded(self, args, kwargs, runs)])[0]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function."""
        raise NotImplementedError
