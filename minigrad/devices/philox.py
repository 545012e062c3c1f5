"""Random bits by counting: Philox4x64, a block of 256 bits for each pair of a key and a counter.

There is no hidden state: block 7 of key 5 has the same 256 bits on every device, in any order of blocks.  The bits are
those of NumPy's `random_raw`: block b is its result with the counter b + 1, and its eight 32-bit words come low half
first.  A float32 is the upper 24 bits of one word, a float64 the upper 53 bits of two.
"""

from __future__ import annotations

import math
import threading
from functools import cache
from typing import Any

import numpy as np

from ..core import dtypes

BLOCK_BYTES = 32
LARGE = 1 << 15  # elements from which memory comes out of the device's pool
WORD = (1 << 64) - 1
MULTIPLIERS = 0xD2E7470EE14C6C93, 0xCA5A826395121157
KEY_STEPS = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B
ROUNDS = 10


def blocks_for(shape: tuple[int, ...], dtype: Any) -> int:
    """The number of blocks of a draw: a block has 8 elements of 4 bytes, or 4 of 8 bytes.

    >>> blocks_for((3, 3), dtypes.float32), blocks_for((3, 3), dtypes.float64)
    (2, 3)
    """
    return -(-math.prod(shape) * int(dtype.itemsize) // BLOCK_BYTES)


class Stream(threading.local):
    """One NumPy Philox for each thread.  A draw sets it to its block, in a tenth of the time of making a new one."""

    def __init__(self) -> None:
        self.bits = np.random.Philox(key=0)
        self.numbers = np.random.Generator(self.bits)
        self.counter, self.words = [0, 0, 0, 0], [0, 0]  # lists: NumPy reads them in a third of the time of arrays
        self.state: Any = self.bits.state | {
            "state": {"counter": self.counter, "key": self.words},
            "buffer": [0, 0, 0, 0],
            "buffer_pos": 4,  # nothing is left over from the block before
        }

    def seek(self, key: int, block: int) -> None:
        """Set the generator to the beginning of a block."""
        self.words[:] = key & WORD, key >> 64
        self.counter[0] = block
        self.bits.state = self.state


@cache
def stream() -> Stream:
    """The streams of all threads, made at the first draw because `numpy.random` takes long to import."""
    return Stream()


def draw(shape: tuple[int, ...], dtype: Any, key: int, block: int, device: Any) -> Any:
    """The kernel `random` of a CPU device.

    >>> draw((2,), dtypes.float32, 5, 0, None).dtype
    dtype('float32')
    """
    own = stream()
    own.seek(key, block)
    if dtype.kind == "f":
        count = math.prod(shape)
        if count < LARGE:
            return own.numbers.random(shape, dtype)
        return own.numbers.random(dtype=dtype, out=device.pool.take(shape, dtype))
    count = math.prod(shape)
    words = own.bits.random_raw(-(-count * dtype.itemsize // 8))
    return words.view(dtype)[:count].reshape(shape)


# The same, written out -----------------------------------------------------------------------------------------------


def _product(xp: Any, multiplier: int, x: Any) -> tuple[Any, Any]:
    """The upper and the lower 64 bits of a product of 64-bit words, from products of their halves."""
    half, low_half = xp.uint64(32), xp.uint64(0xFFFFFFFF)
    m_high, m_low = xp.uint64(multiplier >> 32), xp.uint64(multiplier & 0xFFFFFFFF)
    high, low = x >> half, x & low_half
    middle = high * m_low + (low * m_low >> half)
    other = low * m_high + (middle & low_half)
    return high * m_high + (middle >> half) + (other >> half), x * xp.uint64(multiplier)


def philox_words(xp: Any, key: int, block: int, count: int) -> Any:
    """`count` blocks from number `block` on, as rows of four 64-bit words, in array operations.

    >>> np.array_equal(philox_words(np, 5, 0, 2).ravel(), np.random.Philox(key=5).random_raw(8))
    True
    """
    zero = xp.zeros(count, xp.uint64)
    a, b, c, d = xp.arange(count, dtype=xp.uint64) + xp.uint64(block + 1), zero, zero, zero
    keys = [key & WORD, key >> 64]
    for _ in range(ROUNDS):
        a_high, a_low = _product(xp, MULTIPLIERS[0], a)
        c_high, c_low = _product(xp, MULTIPLIERS[1], c)
        a, b, c, d = c_high ^ b ^ xp.uint64(keys[0]), c_low, a_high ^ d ^ xp.uint64(keys[1]), a_low
        keys = [(k + step) & WORD for k, step in zip(keys, KEY_STEPS)]
    return xp.stack([a, b, c, d], axis=1)


def draw_in_array_operations(xp: Any, shape: tuple[int, ...], dtype: Any, key: int, block: int) -> Any:
    """`draw` for any array library: the reference, and the kernel where there is no faster one.

    >>> same = draw_in_array_operations(np, (5,), dtypes.float32, 5, 0)
    >>> np.array_equal(same, draw((5,), dtypes.float32, 5, 0, None))
    True
    """
    words = philox_words(xp, key, block, blocks_for(shape, dtype)).reshape(-1)
    count = math.prod(shape)
    if dtype is dtypes.float32:
        values = (words.view(xp.uint32) >> xp.uint32(8)).astype(dtype) * xp.float32(2.0**-24)
    elif dtype is dtypes.float64:
        values = (words >> xp.uint64(11)).astype(dtype) * 2.0**-53
    else:
        values = words.view(dtype)
    return values[:count].reshape(shape)


# On a CUDA device ----------------------------------------------------------------------------------------------------

CUDA_SOURCE = """
typedef unsigned long long word;

__device__ void philox_block(word counter, word key_0, word key_1, word *out) {
    word a = counter, b = 0, c = 0, d = 0;
    for (int round = 0; round < 10; ++round) {
        word a_high = __umul64hi(a, 0xD2E7470EE14C6C93ULL), a_low = a * 0xD2E7470EE14C6C93ULL;
        word c_high = __umul64hi(c, 0xCA5A826395121157ULL), c_low = c * 0xCA5A826395121157ULL;
        a = c_high ^ b ^ key_0;
        b = c_low;
        c = a_high ^ d ^ key_1;
        d = a_low;
        key_0 += 0x9E3779B97F4A7C15ULL;
        key_1 += 0xBB67AE8584CAA73BULL;
    }
    out[0] = a; out[1] = b; out[2] = c; out[3] = d;
}

#define RANDOM(NAME, TYPE, PER_BLOCK, VALUE)                                                       \\
    __device__ void fill_##NAME(TYPE *out, long long count, word key_0, word key_1, word block) {  \\
        long long group = blockIdx.x * (long long)blockDim.x + threadIdx.x;                        \\
        if (group * PER_BLOCK >= count) return;                                                    \\
        word words[4];                                                                             \\
        philox_block(block + 1 + group, key_0, key_1, words);                                      \\
        for (int i = 0; i < PER_BLOCK && group * PER_BLOCK + i < count; ++i)                       \\
            out[group * PER_BLOCK + i] = VALUE;                                                    \\
    }                                                                                              \\
    extern "C" __global__ void NAME(TYPE *out, long long count, word key_0, word key_1, word block) { \\
        fill_##NAME(out, count, key_0, key_1, block);                                              \\
    }                                                                                              \\
    extern "C" __global__ void NAME##_from(TYPE *out, long long count, const word *start, word block) { \\
        fill_##NAME(out, count, start[0], start[1], start[2] + block);                             \\
    }

#define HALF_WORD ((unsigned int)(words[i / 2] >> (32 * (i % 2))))

RANDOM(random_float32, float, 8, (HALF_WORD >> 8) * 5.9604644775390625e-08f)
RANDOM(random_float64, double, 4, (words[i] >> 11) * 1.1102230246251565e-16)
RANDOM(random_int32, int, 8, (int)HALF_WORD)
RANDOM(random_int64, long long, 4, (long long)words[i])

extern "C" __global__ void set_start(word *start, word key_0, word key_1, word block) {
    if (threadIdx.x == 0) { start[0] = key_0; start[1] = key_1; start[2] = block; }
}
"""


@cache
def cuda_module(xp: Any) -> Any:
    """The kernels above, compiled by CuPy when one is first called.

    Those whose names end in `_from` read key and block from the GPU's memory, where `set_start` puts them: a launch
    that is recorded once can then give other numbers each time.
    """
    return xp.RawModule(code=CUDA_SOURCE)


def key_words(key: int, block: int) -> list[Any]:
    """A key and a block in the form that these kernels take."""
    return [np.uint64(word) for word in (key & WORD, key >> 64, block)]


def draw_on_cuda(xp: Any, shape: tuple[int, ...], dtype: Any, key: int, block: int) -> Any:
    """`draw` on CuPy's current device.  An `xp` that cannot compile CUDA C uses array operations."""
    if not hasattr(xp, "RawModule"):
        return draw_in_array_operations(xp, shape, dtype, key, block)
    out = xp.empty(shape, dtype)
    groups = blocks_for(shape, dtype)
    if groups:
        launch = cuda_module(xp).get_function(f"random_{dtype.name}")
        launch((-(-groups // 128),), (128,), (out, np.int64(out.size), *key_words(key, block)))
    return out
