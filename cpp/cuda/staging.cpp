// Two queues with a buffer each; a chunk waits for the one before the last.
#include "cuda/staging.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace arboost::cuda {
namespace {

constexpr std::size_t chunk_bytes = 16 << 20;
constexpr std::size_t grain_bytes = 1 << 20;  // of one thread
constexpr std::size_t small_bytes = 256 << 10;

struct Staging {
  std::mutex mutex;
  Queue queues[2];
  PinnedBytes buffers[2];
};

// Never destroyed: at the end of the process the driver may be gone.
Staging& staging_of(const Device& device) {
  static std::mutex mutex;
  static auto& all = *new std::map<const Device*, std::unique_ptr<Staging>>();
  std::lock_guard lock(mutex);
  std::unique_ptr<Staging>& found = all[&device];
  if (!found) found = std::make_unique<Staging>();
  return *found;
}

void copy_by_threads(const std::byte* from, std::size_t bytes, std::byte* to, Team& team) {
  team.for_chunks(0, bytes, grain_bytes, [&](std::size_t begin, std::size_t end, int) {
    std::memcpy(to + begin, from + begin, end - begin);
  });
}

}  // namespace

void upload_staged(const Device& device, const void* from, std::size_t bytes, Address to,
                   Team& team) {
  Staging& staging = staging_of(device);
  std::lock_guard lock(staging.mutex);
  const auto* source = static_cast<const std::byte*>(from);
  if (bytes <= small_bytes) {
    staging.queues[0].copy_in(from, bytes, to);
    return staging.queues[0].wait();
  }
  int side = 0;
  for (std::size_t begin = 0; begin < bytes; begin += chunk_bytes, side ^= 1) {
    const std::size_t n = std::min(chunk_bytes, bytes - begin);
    Queue& queue = staging.queues[side];
    queue.wait();
    std::byte* buffer = staging.buffers[side].room(chunk_bytes);
    copy_by_threads(source + begin, n, buffer, team);
    queue.copy_in(buffer, n, to + begin);
  }
  for (Queue& queue : staging.queues) queue.wait();
}

void download_staged(const Device& device, Address from, std::size_t bytes, void* to, Team& team) {
  Staging& staging = staging_of(device);
  std::lock_guard lock(staging.mutex);
  auto* target = static_cast<std::byte*>(to);
  if (bytes <= small_bytes) {
    staging.queues[0].copy_out(from, bytes, to);
    return staging.queues[0].wait();
  }
  const auto size_at = [&](std::size_t begin) { return std::min(chunk_bytes, bytes - begin); };
  const auto ask = [&](std::size_t begin, int side) {
    if (begin < bytes)
      staging.queues[side].copy_out(from + begin, size_at(begin),
                                    staging.buffers[side].room(chunk_bytes));
  };
  for (Queue& queue : staging.queues) queue.wait();
  ask(0, 0);
  int side = 0;
  for (std::size_t begin = 0; begin < bytes; begin += chunk_bytes, side ^= 1) {
    ask(begin + chunk_bytes, side ^ 1);
    staging.queues[side].wait();
    copy_by_threads(staging.buffers[side].room(chunk_bytes), size_at(begin), target + begin, team);
  }
}

}  // namespace arboost::cuda
