"""The thresholds of fusion, rewriting and running: from where on which way is faster.

Each has one unit, which its name or its comment says.  In brackets is a line of `benchmarks` whose program it decides
about: halve or double the number, and measure that line.  Loops, lowering and printers have their own.
"""

# Kernels, in `fusion` -------------------------------------------------------------------------------------------------

MOST_NODES = 200  # nodes of a kernel: compilers take more than linear time [first_calls: GPT]
MOST_OUTPUTS = 16  # results of a kernel [optimizers: Adam]
LONGEST_ROW = 1 << 16  # elements of a row that a kernel goes through several times [compiled: softmax]
SHORTEST_ROW = 8  # elements: a loop over a shorter row costs more than it saves [compiled: layer norm]
FEWEST_ROUNDS = 4  # rounds of a loop that takes several elements in each [training: CNN]
FEWEST_TO_REDUCE = 16  # rounds of such a loop that reduces to these elements [training: CNN]
FEW_PARTIALS = 4  # partial results that are added up where the sum is used [compiled: layer norm + backward]
SHORTEST_VECTOR = 8  # columns of a product by loops: fewer do not fill a vector [compiled: FIR]
ROWS_TO_COPY = 8  # rows for which it pays to copy columns that are not neighbours [compiled: FIR]

# Attention in blocks, in `fusion.blocks` and `rewriting.positions` [compiled: attention] ------------------------------

LARGE_MATRIX = 1 << 16  # elements: a smaller matrix stays in a cache between two steps
BLOCK_ELEMENTS = 1 << 17  # of a block, which a core's cache holds
FEWEST_BLOCK_ROWS, MOST_BLOCK_ROWS = 64, 256  # smaller products are slower
MOST_TRIANGLE_ROWS = 128  # rows of a block that computes all columns up to that of its last row
TIMES_LONGER = 4  # times the length of the sums in a product: the least height and width of its result
LONGEST_SUMS = 128  # elements: a product of such sums takes less time than to store and load its result

# Rewriting ------------------------------------------------------------------------------------------------------------

MOST_PARTS = 25  # elements of a window, each of which becomes a term of a sum [training: CNN]
MOST_JOINED = 4  # tensors of a join by position: each is a choice at each element [applications]
PANEL_COLUMNS = (128, 64)  # so many sums, or half as many for several rows, are in registers [inference: MLP]
MOST_PACKED_ROWS = 512  # rows of the other factor: libraries are as fast for more [inference: MLP]

# Running --------------------------------------------------------------------------------------------------------------

FLOP = 0.5  # cost of an operation in a kernel, in bytes of memory traffic that take as long [compiled: chain]
PRODUCT_FLOP = 0.1  # of an operation in a matrix product, which reuses operands in registers [training: MLP]
WORTH_SHARING_BYTES = 1_000_000  # cost of a step in bytes: from here on, threads share it [compiled: chain]
WORTH_A_THREAD_BYTES = 500_000  # cost of a step in bytes: a smaller one ends while a thread wakes [compiled: chain]
PIECES = 2  # of the work for each thread, so that a busy thread causes little delay [compiled: softmax]
PIECE_ELEMENTS = 16  # pieces begin where vectors do [compiled: chain]
UNINTERRUPTED_BYTES = 2e8  # cost of steps in one call, some 20 ms: Python raises interrupts between calls
POOLED_BYTES = 1 << 16  # larger memory comes from a pool [compiled: chain]
FEWEST_LOOP_ROUNDS = 4  # rounds of a loop that are worth running in machine code [compiled: RNN]
MOST_ROUNDS = 4000  # rounds of a loop in one call, however little they do: Python raises interrupts between calls

# Products by OpenBLAS's own kernels for small ones, with AVX-512: up to which sizes it uses them.
DIRECT_ELEMENTS, DIRECT_TERMS = 1024, 10**6  # of the result, and in all its sums [training: MLP, b64]
MOST_DIRECT_ROWS, FEWEST_DIRECT_COLUMNS = 64, 8  # slower for more rows [training: MLP, b64]
LONGEST_STACK = 1 << 14  # products of a stack: the offsets of more would take much memory
