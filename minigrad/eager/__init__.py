"""Machine code in eager mode: compiled programs and kernels that run without `jit`.

`calls` compiles composed functions, and `updates` the steps of optimizers.  `kernels` has the functions that devices
call; `row_loops`, `stack_loops` and `reduction_loops` write their loops.  `import minigrad` loads none of them.
"""
