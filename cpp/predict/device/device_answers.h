// Raw scores in device memory -> predictions and labels there. The same bits as on the host.
#pragma once

#include <cstddef>
#include <span>

#include "cuda/device.h"
#include "predict/links.h"

namespace arboost::cuda {

// Raw scores, `stride` numbers a row, the first `n_outputs` of which count.
struct RawRows {
  Address raw;
  std::size_t stride, n_outputs, n_rows;
};

// [row][answer_width]
void link_on_device(Device& device, Link link, const RawRows& rows, Address out);
// The scores of each row, ascending; they are one after the other.
void sort_on_device(Device& device, const RawRows& rows, Address out);
// The labels of the highest scores, each of the same number of bytes, to out[row * out_stride].
void label_on_device(Device& device, const RawRows& rows, std::span<const std::byte> labels,
                     std::size_t bytes, std::size_t out_stride, Address out);

}  // namespace arboost::cuda
