// Runs CUDA kernels on the CPU, to test what generated code computes where there is no GPU.
//
// A thread of a block is a fiber.  Fibers run one after the other, each until it waits for the others: at a barrier for
// its block, at a shuffle for its warp.  The order in which they run is chosen (ascending, descending or shuffled), and
// shared memory is poisoned before each block, so that a barrier that is missing shows.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <ucontext.h>
#include <vector>

#define __global__
#define __device__ static
#define __forceinline__
#define __launch_bounds__(threads)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ static __attribute__((section("shared_memory")))

struct Position { unsigned x, y, z; };
static Position threadIdx, blockIdx, blockDim, gridDim;
extern char __start_shared_memory[], __stop_shared_memory[];
__attribute__((section("shared_memory"), used)) static int there_is_shared_memory;

enum State { READY, AT_BARRIER, AT_SHUFFLE, AT_WARP, DONE };
struct Fiber { ucontext_t context; std::vector<char> stack; State state; unsigned long long value; };
static std::vector<Fiber> fibers;
static ucontext_t scheduler;
static unsigned current;
static const std::function<void()> *kernel_call;

static void wait_as(State state) {
    unsigned own = current;
    fibers[own].state = state;
    swapcontext(&fibers[own].context, &scheduler);
}

static void __syncthreads() { wait_as(AT_BARRIER); }
static void __syncwarp() { wait_as(AT_WARP); }

template <class T> static T __shfl_xor_sync(unsigned, T value, int distance) {
    unsigned own = current;
    memcpy(&fibers[own].value, &value, sizeof value);
    wait_as(AT_SHUFFLE);  // all lanes have said theirs
    T other;
    memcpy(&other, &fibers[own ^ distance].value, sizeof other);
    wait_as(AT_SHUFFLE);  // all lanes have read theirs
    return other;
}

static unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned __int128)a * b >> 64;
}

static void fiber_main() {
    (*kernel_call)();
    fibers[current].state = DONE;
}

static void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    abort();
}

// Let those go on that all of the others they wait for have joined.
static void release(unsigned first, unsigned last, State state) {
    for (unsigned i = first; i < last; i++)
        if (fibers[i].state != state) return;
    for (unsigned i = first; i < last; i++) fibers[i].state = READY;
}

static void run_block(const std::vector<unsigned> &order) {
    memset(__start_shared_memory, 0xff, __stop_shared_memory - __start_shared_memory);
    for (auto &fiber : fibers) {
        getcontext(&fiber.context);
        fiber.stack.resize(1 << 16);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = fiber.stack.size();
        fiber.context.uc_link = &scheduler;
        fiber.state = READY;
        makecontext(&fiber.context, fiber_main, 0);
    }
    for (;;) {
        bool moved = false, done = true;
        for (unsigned i : order) {
            if (fibers[i].state != READY) continue;
            moved = true;
            current = i;
            threadIdx = {i, 0, 0};
            swapcontext(&scheduler, &fibers[i].context);
        }
        for (auto &fiber : fibers) done = done && fiber.state == DONE;
        if (done) return;
        if (!moved) fail("some threads wait at a barrier that others never come to");
        release(0, fibers.size(), AT_BARRIER);
        for (unsigned warp = 0; warp < fibers.size(); warp += 32) {
            release(warp, warp + 32, AT_SHUFFLE);
            release(warp, warp + 32, AT_WARP);
        }
    }
}

static std::vector<unsigned> ordered(unsigned count, int how) {  // 0: ascending, 1: descending, else: shuffled
    std::vector<unsigned> order(count);
    for (unsigned i = 0; i < count; i++) order[i] = how == 1 ? count - 1 - i : i;
    if (how > 1) std::shuffle(order.begin(), order.end(), std::mt19937(how));
    return order;
}

static void run_grid(unsigned blocks, unsigned threads, int how, const std::function<void()> &call) {
    if (threads % 32) fail("the threads of a block are not a multiple of 32");
    kernel_call = &call;
    gridDim = {blocks, 1, 1};
    blockDim = {threads, 1, 1};
    fibers.resize(threads);
    for (unsigned block : ordered(blocks, how)) {
        blockIdx = {block, 0, 0};
        run_block(ordered(threads, how));
    }
}
