// Half precision, as CUDA's header of this name has it.
#pragma once
typedef _Float16 __half;
static inline float __half2float(__half x) { return x; }
static inline __half __float2half(float x) { return (__half)x; }
