// One message of a worker's rows to each other worker; linear in cells, parallel over rows.
#include "bin/stream/shared_rows.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <vector>

#include "base/random.h"  // mix_bits
#include "bin/codes/take.h"

namespace arboost {
namespace {

constexpr std::size_t chunk_rows = 1 << 12;

}  // namespace

Codes gather_rows(const SharedCodes& codes, Team& team) {
  if (codes.local_codes.sparse.size() > 0)
    throw std::invalid_argument("sparse columns stay with their workers");
  Codes all = codes.local_codes.empty_copy(codes.n_rows);
  Collective::Bytes message;
  message.reserve(codes.local_codes.bytes_by_row());
  codes.local_codes.each_window(0, codes.local_codes.n_rows, [&](const RowWindow& window) {
    const std::size_t stride = codes.local_codes.row_stride;
    message.insert(message.end(), window.row_zero + window.begin * stride,
                   window.row_zero + window.end * stride);
  });
  const std::vector<Collective::Bytes>& received =
      codes.workers.exchange(Collective::View(message));
  std::uint8_t* to = all.by_row.data();
  for (std::size_t r = 0; r < received.size(); ++r) {
    const Collective::Bytes& rows = r == codes.workers.rank() ? message : received[r];
    if (static_cast<std::size_t>(all.by_row.data() + all.bytes_by_row() - to) < rows.size())
      throw std::logic_error("workers have more rows than the table");
    to = std::copy(rows.begin(), rows.end(), to);
  }
  team.for_chunks(0, all.n_rows, chunk_rows, [&](std::size_t begin, std::size_t end, int) {
    copy_by_column(all, begin, end);
  });
  return all;
}

std::uint64_t checksum(const SharedCodes& codes, Team& team) {
  const Codes& local = codes.local_codes;
  const std::size_t n_bytes = local.n_stores * static_cast<std::size_t>(local.width);
  std::atomic<std::uint64_t> total{0};
  local.each_window(0, local.n_rows, [&](const RowWindow& window) {
    team.for_chunks(
        window.begin, window.end, chunk_rows, [&](std::size_t begin, std::size_t end, int) {
          std::uint64_t sum = 0;
          for (std::size_t i = begin; i < end; ++i)
            sum += hash_codes(window.row_zero + i * local.row_stride, n_bytes, codes.first_row + i);
          total += sum;
        });
  });
  const std::size_t width = static_cast<std::size_t>(local.width);
  for (std::size_t c = 0; c < local.sparse.size(); ++c)
    for (std::uint64_t k = local.sparse.start[c]; k < local.sparse.start[c + 1]; ++k)
      total += hash_codes(local.sparse.codes.data() + k * width, width,
                          mix_bits(codes.first_row + local.sparse.rows[k]) + c);
  // As two numbers of 32 bits: sums of 64 bits may overflow, which signed ones must not.
  const std::uint64_t bits = total.load();
  std::int64_t halves[] = {static_cast<std::int64_t>(bits & 0xffffffff),
                           static_cast<std::int64_t>(bits >> 32)};
  codes.workers.sum(Collective::Numbers(halves));
  return static_cast<std::uint64_t>(halves[0]) + (static_cast<std::uint64_t>(halves[1]) << 32);
}

}  // namespace arboost
