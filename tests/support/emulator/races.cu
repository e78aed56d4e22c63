// Kernels with a race each, for tests of the emulator.
#include <cstdint>

// The last block to run wins.
extern "C" __global__ void race_of_blocks(std::uint32_t* out) {
  if (threadIdx.x == 0) *out = blockIdx.x;
}

// Threads read what others write, without a barrier between the two.
extern "C" __global__ void race_of_threads(std::uint32_t* out) {
  out[threadIdx.x] = threadIdx.x;
  out[blockDim.x + threadIdx.x] = out[(threadIdx.x + 1) % blockDim.x];
}

// Threads of different warps count in two steps, the second of which is too late.
extern "C" __global__ void race_of_counts(std::uint32_t* out) {
  const std::uint32_t before = *out;
  atomicMax(out, before + 1);
}
