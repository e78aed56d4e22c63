// Threads of a CUDA block as fibers of one thread of the host.
//
// A fiber runs until it meets the others: the block at a barrier, or lanes of its warp at an
// exchange. Fibers run in order, so a run is reproducible; missing barriers show themselves because
// a thread is far ahead of those after it. Shuffled, blocks, warps and lanes take turns in a random
// order, and a fiber may stop before an atomic operation: results that depend on any of it change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace emulator {

struct Three {
  std::uint32_t x = 0, y = 0, z = 0;
};

struct Launch {
  Three grid_size, block_size, block;
};

struct Thread {
  Three index;
};

// A lane's word in an exchange.
struct Word {
  enum Kind { none, shuffle, ballot, match } kind;
  std::uint64_t bits;
  std::uint32_t lane;  // shuffle: whose word is asked for
};

const Launch& launch();
const Thread& thread();
void* shared_memory();

// Shuffles all launches from here on by a seed; 0: in order again.
void shuffle(std::uint32_t seed);
// Before an atomic operation: where launches are shuffled, lets others run first, now and then.
void pause();

void wait_for_block();
std::uint64_t exchange(std::uint32_t mask, Word word);

// Runs all blocks of a launch; false if its threads wait for each other for ever, or exchange words
// with a lane that has ended.
bool run(Three grid, Three block, std::size_t shared_bytes, const std::function<void()>& kernel);

}  // namespace emulator
