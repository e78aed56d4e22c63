// Copies between a device and memory of the host that is not pinned: through two pinned buffers,
// one of which threads fill or empty while the device reads or writes the other.
#pragma once

#include <cstddef>

#include "base/parallel.h"
#include "cuda/device.h"

namespace arboost::cuda {

constexpr std::size_t staged_bytes = 16 << 20;  // of each buffer

// Both return when the copy is done, and wait for no other work; the device must be current.
// Without a team, up to eight threads of their own copy. The buffers, 32 MiB for each device, are
// kept for the life of the process: pinning memory takes longer than a large copy.
void upload_staged(const Device& device, const void* from, std::size_t bytes, Address to,
                   Team* team = nullptr);
void download_staged(const Device& device, Address from, std::size_t bytes, void* to,
                     Team* team = nullptr);

// Copies memory of the host by the threads of a team.
void copy_by_threads(const void* from, std::size_t bytes, void* to, Team& team);

// Sends values to a device in chunks, and has each chunk used there: fill(chunk, buffer) writes at
// most staged_bytes and returns how many, and use(side, queue) launches work that reads them at
// to[side]. Sides take turns, 0 first.
void send_chunks(const Device& device, std::size_t n_chunks, const Address (&to)[2],
                 FunctionRef<std::size_t(std::size_t chunk, std::byte* buffer)> fill,
                 FunctionRef<void(std::size_t chunk, int side, Queue& queue)> use);

template <class T>
DeviceArray<T> uploaded(const Device& device, const T* from, std::size_t n, Team* team = nullptr) {
  DeviceArray<T> to(n);
  upload_staged(device, from, n * sizeof(T), to.address(), team);
  return to;
}

}  // namespace arboost::cuda
