// Linear in cells, parallel over stored columns and blocks of rows.
#include "bin/stream/parts.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>
#include <utility>

#include "bin/codes/encode.h"
#include "bin/codes/layout.h"

namespace arboost {

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

}  // namespace arboost
