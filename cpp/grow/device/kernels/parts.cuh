// Histograms of segments whose rows several blocks have shared: sums of parts.
#pragma once

#include "grow/device/kernels/rows.cuh"

// Blocks that share the rows of a batch; each has some. Of a worker there may be few rows.
inline std::uint32_t shares_of(const BatchWork& batch) {
  return max(1u, min(batch.n_shares, batch.state->n_rows));
}

// The block among n_shares that has a row of the batch.
inline std::uint32_t share_of(std::uint64_t row, std::uint64_t n_rows, std::uint32_t n_shares) {
  auto b = static_cast<std::uint32_t>(row * n_shares / n_rows);
  while (n_rows * b / n_shares > row) --b;
  while (n_rows * (b + 1) / n_shares <= row) ++b;
  return b;
}

struct SegmentParts {
  std::int64_t* histogram;    // of the segment; null: it needs none
  const std::int64_t* first;  // part
  std::uint32_t n;
  bool is_divided;  // else the one block with all its rows has written the histogram itself
};

inline SegmentParts parts_of(const BatchWork& batch, std::uint32_t s) {
  const Segment segment = batch.segments[s];
  const std::uint32_t size = segment.end - segment.begin, n_rows = batch.state->n_rows;
  if (batch.parts == nullptr) return {segment.histogram, nullptr, 0, false};
  if (size == 0) return {segment.histogram, nullptr, 0, true};
  const std::uint32_t first = share_of(segment.first_row, n_rows, shares_of(batch));
  const std::uint32_t last = share_of(segment.first_row + size - 1, n_rows, shares_of(batch));
  return {segment.histogram,
          batch.parts + static_cast<std::uint64_t>(first + s) * batch.histogram_size,
          last - first + 1, first != last};
}

// The sum of every n_adders-th part of a slot.
inline std::int64_t sum_of_parts(const SegmentParts& parts, const BatchWork& batch,
                                 std::uint32_t slot, std::uint32_t adder, std::uint32_t n_adders) {
  std::int64_t sum = 0;
#pragma unroll 4
  for (std::uint32_t b = adder; b < parts.n; b += n_adders)
    sum += parts.first[static_cast<std::uint64_t>(b) * batch.histogram_size + slot];
  return sum;
}

// A slot of a segment's histogram.
inline std::int64_t slot_of(const SegmentParts& parts, const BatchWork& batch, std::uint32_t slot) {
  return parts.is_divided ? sum_of_parts(parts, batch, slot, 0, 1) : parts.histogram[slot];
}
