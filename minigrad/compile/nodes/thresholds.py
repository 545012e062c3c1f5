"""The thresholds of the compiler and of the loops of eager mode: from which size on a different method is faster.

Each has one unit, which its name or its comment says.  In brackets is a line of `benchmarks` whose program depends on
it: halve or double the number, and measure that line.
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

# Reductions across rows, in `fusion.group` -----------------------------------------------------------------------

MOST_CHUNKS = 64  # parts of the rows, which threads share [eager: sum over 0, jitted]
SHORTEST_CHUNK = 1 << 16  # elements [eager: sum over 0, jitted]
ELEMENTS_OF_A_PARTIAL = 4  # at least, for each partial result [compiled: layer norm + backward]
ADDITIONS_IN_A_ROW = 512  # of floats to one place, from which on there are more chunks [numerics: sum]
ENOUGH_CHUNKS = 16  # for all threads, if their results are apart [eager: sum over 0, jitted]

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
PANEL_COLUMNS = (128, 64)  # the number of sums in registers; half of it for several rows [inference: MLP]
MOST_PACKED_ROWS = 512  # rows of the other factor: libraries are as fast for more [inference: MLP]

# Lowering -------------------------------------------------------------------------------------------------------------

DEAR_BYTES = 6.0  # cost, in bytes of memory traffic, from which on a value is kept for later passes [compiled: softmax]
SHORTEST_PART = 16  # columns: the loops of shorter parts take longer than choices between them [applications]
SHORTEST_PANEL, LONGEST_PANEL = 128, 1024  # elements of a sum that are read while a cache has them [training: CNN]
MOST_VECTORS = 8  # of columns in a block of a product [training: CNN]
FEW_ROW_BLOCKS = 8  # blocks of rows, which are too few for threads to share [inference: MLP]
PRODUCTS_UNDER_WAY = 8  # multiplications that a processor has begun and not ended [training: CNN]
PRODUCTS_PER_CYCLE = 2  # multiplications of vectors, and twice as many loads [training: CNN]
TIMES_KEPT = 4  # times the bytes of carry and inputs: the most for products that a scan keeps [compiled: RNN]

# Loops ----------------------------------------------------------------------------------------------------------------

BAND_COLUMNS = 16  # more would share too few lines of a cache where rows are powers of two apart [training: CNN]
FAR_BYTES = 512  # between neighbours, from which on they are on lines of their own [training: CNN]
CACHE_LINE = 64  # bytes
ROWS_AT_ONCE = 8  # [eager: sum over 0, jitted]
MOST_ROW_STATEMENTS = 48  # of a round: with more, registers are short [compiled: layer norm + backward]
FEWEST_ROW_ROUNDS = 2  # [eager: sum over 0, jitted]
LONG_ROW_BYTES = 256  # from here on, a row does not wait for what the one before stores [eager: sum over 0, jitted]
BLOCK_ROUNDS = 2048  # in a block of a sum in 32 lanes or more [numerics: sum]
FEWER_ROUNDS = 4  # times fewer rounds in a block, and lanes, if a round takes several steps [numerics: sum]
BLOCKS_IN_A_ROW = 16  # blocks, or rows, that are added up one after the other [numerics: sum]
WASM_BLOCK_ROUNDS = 256  # in a block of a sum in few lanes [browser_kernels]
VECTORS_AT_ONCE = 4  # they wait less for each other [compiled: chain]
STRAIGHT_STATEMENTS = 2000  # of all rounds: so much code needs no loop [first_calls: CNN]
LONG_BODY, VERY_LONG_BODY = 24, 100  # statements, from which on vectors are fewer, or single [first_calls: GPT]
SHORTER_VECTORS = 8  # times fewer lanes for the rounds that are left of a sum [compiled: layer norm]
FEW_STATEMENTS = 8  # of all rounds, for which a loop would be longer than straight code [first_calls: MLP]

# Kernels of GPUs, in `codegen` [compiled, with `--device cuda`] -------------------------------------------------------

BLOCK_THREADS = 256  # of a block over elements, and of a block whose warps have a row each
FEW_TO_REDUCE = 64  # elements that a thread reduces to one: more are shared by a team of threads, or reduced in blocks
MOST_TEAM_RESULTS = 8192  # that teams reduce; where there are more, each thread has one, and all are busy
BLOCK_ADDITIONS = 64  # that a thread makes in a block of a long sum
MOST_PLACES = 3  # of a value in recorded launches; one that has been at more is copied
MOST_RECORDINGS = 8  # of a frame
FEWEST_RECORDED_STEPS = 3  # of a run that is worth recording

# Running --------------------------------------------------------------------------------------------------------------

FLOP = 0.5  # cost of an operation in a kernel, in bytes of memory traffic that take as long [compiled: chain]
PRODUCT_FLOP = 0.1  # of an operation in a matrix product, which reuses operands in registers [training: MLP]
WORTH_SHARING_BYTES = 1_000_000  # cost of a step in bytes: from here on, threads share it [compiled: chain]
WORTH_A_THREAD_BYTES = 500_000  # cost of a step in bytes: a smaller one ends while a thread wakes [compiled: chain]
LOOKS_BEFORE_SLEEP = 200_000  # loads of a word: a sleeping core takes as long to wake [compiled: chain, two threads]
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

# Reductions and stacks of eager mode ----------------------------------------------------------------------------------

FEW_ELEMENTS = 1 << 12  # of which NumPy's reduction takes less time than a call of machine code [eager: sum]
SHORT_ROW = 64  # elements: shorter rows have a kernel for their length [eager: sum]
ROW_BLOCK = 1 << 12  # elements of a long row that are added up by themselves [numerics: sum]
PART_ELEMENTS = 1 << 16  # of a part of a large array, whose reductions are reduced again [numerics: sum]
FEWEST_PART_ROWS = 8  # [eager: sum over 0]
REDUCTION_PIECES = 3  # of the work for each thread [eager: sum]
WORTH_SHARING_ELEMENTS = 1 << 18  # for several threads [eager: sum]
WIDEST_ROW = 1 << 12  # columns of a kernel, so that few kernels serve long rows of any length [eager: rows]
RECORDED_RUNS = 7  # calls of which a record shows the quickest
MATRICES_AT_ONCE = 1 << 12  # that a thread takes of a stack [positions: small matrices]
