// Copies between a device and memory of the host that is not pinned: through two pinned buffers,
// one of which threads fill or empty while the device reads or writes the other.
#pragma once

#include <cstddef>

#include "base/parallel.h"
#include "cuda/device.h"

namespace arboost::cuda {

// Both return when the copy is done; the device must be current. The buffers, 32 MiB for each
// device, are kept for the life of the process: pinning memory takes longer than a large copy.
void upload_staged(const Device& device, const void* from, std::size_t bytes, Address to,
                   Team& team);
void download_staged(const Device& device, Address from, std::size_t bytes, void* to, Team& team);

template <class T>
DeviceArray<T> uploaded(const Device& device, const T* from, std::size_t n, Team& team) {
  DeviceArray<T> to(n);
  upload_staged(device, from, n * sizeof(T), to.address(), team);
  return to;
}

}  // namespace arboost::cuda
