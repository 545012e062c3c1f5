"""Machine code in eager mode: compiled programs and kernels that run without `jit`.

`programs` compiles composed functions, and `updates` the steps of optimizers.  `kernels` has the functions that devices
call, whose loops are written in `rows`, `stacks` and `reductions`.  `import minigrad` loads none of them.
"""
