// Linear in cells, parallel over stored columns and blocks of rows. The rows of all workers: one
// message of a worker's rows to each other worker.
#include "bin/stream/parts.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <stdexcept>
#include <utility>

#include "base/random.h"  // mix_bits
#include "bin/codes/encode.h"
#include "bin/codes/layout.h"
#include "bin/codes/take.h"

namespace arboost {
namespace {

constexpr std::size_t chunk_rows = 1 << 12;

}  // namespace

StoragePlan plan_sample(const Columns& sample, std::span<const RowId> rows, std::size_t n_rows,
                        const std::vector<std::uint8_t>& has_missing, const Edges& edges,
                        const PlanOptions& options, Team& team) {
  StoragePlan plan = plan_from(sample, rows, n_rows, edges, options, team);
  Codes codes = start_codes(n_rows, edges, options.categorical);
  codes.has_missing = has_missing;
  while (!check_layout(lay_out(plan, sample, codes), codes, plan)) {
  }
  return plan;
}

// A change never moves the first share out of a digit, so that share names the digit.
StoragePlan join_plans(const StoragePlan& plan, std::span<const StoragePlan> changed) {
  struct Change {
    std::uint32_t n_codes = 0;
    bool moves_out = false;
  };
  std::map<std::uint32_t, std::uint32_t> leader_of;
  for (const DigitPlan& digit : plan.digits)
    for (const Share& share : digit.shares) leader_of[share.feature] = digit.shares.front().feature;
  std::map<std::uint32_t, Change> changes;
  for (const StoragePlan& changed_plan : changed)
    for (const DigitPlan& digit : changed_plan.digits)
      for (const Share& share : digit.shares) {
        Change& change = changes[share.feature];
        change.n_codes = std::max(change.n_codes, share.n_codes);
        change.moves_out |= digit.shares.front().feature != leader_of.at(share.feature);
      }
  StoragePlan joined = plan;
  joined.digits.clear();
  std::vector<DigitPlan> alone;
  for (const DigitPlan& digit : plan.digits) {
    DigitPlan& kept = joined.digits.emplace_back();
    for (Share share : digit.shares) {
      const Change& change = changes.at(share.feature);
      share.n_codes = change.n_codes;
      if (change.moves_out)
        alone.push_back({{share}});
      else
        kept.shares.push_back(share);
    }
    for (; kept.radix() > 256; kept.shares.pop_back()) alone.push_back({{kept.shares.back()}});
  }
  joined.digits.insert(joined.digits.end(), alone.begin(), alone.end());
  return joined;
}

void CodesParts::append(const Codes& part, Team& team) {
  const auto width = static_cast<std::size_t>(part.width);
  if (!has_layout_) {
    has_layout_ = true;
    all_ = part.empty_copy(n_rows_);
    all_.has_missing.assign(part.n_features, 0);
  }
  const bool belongs = part.width < 4 && part.width == all_.width && part.sparse.size() == 0 &&
                       part.n_stores == all_.n_stores && part.edges == all_.edges &&
                       part.digits.size() == all_.digits.size();
  if (!belongs || part.n_rows > n_rows_ - n_done_)
    throw std::invalid_argument("The part does not belong to the codes.");
  for (std::size_t f = 0; f < part.n_features; ++f) all_.has_missing[f] |= part.has_missing[f];
  constexpr std::size_t chunk = 1 << 14;
  team.for_chunks(0, part.n_rows, chunk, [&](std::size_t begin, std::size_t end, int) {
    std::memcpy(all_.by_row.data() + (n_done_ + begin) * part.row_stride,
                part.by_row.data() + begin * part.row_stride, (end - begin) * part.row_stride);
    for (std::size_t s = 0; s < part.n_stores; ++s)
      std::memcpy(all_.by_column.data() + (s * n_rows_ + n_done_ + begin) * width,
                  part.column_bytes(s) + begin * width, (end - begin) * width);
  });
  n_done_ += part.n_rows;
}

Codes CodesParts::finish() {
  if (n_done_ != n_rows_ || !has_layout_)
    throw std::invalid_argument("Some of the rows have not been appended.");
  all_.number_slots();
  n_done_ = 0;
  has_layout_ = false;
  return std::move(all_);
}

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
