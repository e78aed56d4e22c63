// Columns and edges -> codes, by row and by column. Cost: a few nanoseconds a value; memory beside
// the codes: the lookup tables. Parallel over blocks of rows.
#include "encode.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>  // clears the pad of the rows
#include <limits>
#include <stdexcept>

#include "lookup.h"

namespace arboost {
namespace {

// Values that are no code of a level become missing.
void keep_levels(double n_levels, double* values, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const double value = values[i];
    const bool known = value >= 0 && value < n_levels && value == std::floor(value);
    values[i] = known ? value : std::numeric_limits<double>::quiet_NaN();
  }
}

void check_levels(const std::vector<std::span<const double>>& edges,
                  const std::vector<std::uint8_t>& categorical) {
  if (!categorical.empty() && categorical.size() != edges.size())
    throw std::invalid_argument("encode needs to know of every column if it is a category.");
  for (std::size_t f = 0; f < categorical.size(); ++f) {
    if (categorical[f] == 0) continue;
    bool right = edges[f].size() < 255;
    for (std::size_t i = 0; right && i < edges[f].size(); ++i)
      right = edges[f][i] == static_cast<double>(i) + 0.5;
    if (!right)
      throw std::invalid_argument(
          "The edges of a category must be 0.5, 1.5, ... between at most 255 levels.");
  }
}

template <class Code>
class Encoder {
 public:
  Encoder(const Columns& table, const Rows& rows, const std::vector<std::span<const double>>& edges,
          Codes& codes)
      : table_(table), rows_(rows), codes_(codes), missing_(edges.size()) {
    for (const auto& column : edges) lookups_.emplace_back(column, rows.size());
  }

  void run(Team& team) {
    // Chunks of whole cache lines of by_column, large enough to be worth waking a thread.
    constexpr std::size_t values_per_chunk = 1 << 17;
    const std::size_t blocks = values_per_chunk / (block_rows * (codes_.n_features + 1)) + 1;
    team.for_chunks(0, codes_.n_rows, blocks * block_rows,
                    [this](std::size_t begin, std::size_t end, int) {
                      for (; begin < end; begin += block_rows)
                        encode_block(begin, std::min(begin + block_rows, end));
                    });
    for (std::size_t f = 0; f < codes_.n_features; ++f)
      codes_.has_missing[f] = missing_[f].load() ? 1 : 0;
  }

 private:
  void encode_block(std::size_t begin, std::size_t end) {
    double values[block_rows];
    std::uint32_t buckets[block_rows];
    const std::size_t n = end - begin, stride = codes_.row_stride;
    std::uint8_t* by_row = codes_.by_row.data() + begin * stride;
    clear_pad(by_row, n);
    for (std::size_t f = 0; f < codes_.n_features; ++f) {
      rows_.read(table_.columns[f], begin, end, values);
      if (codes_.has_levels(f)) keep_levels(codes_.n_bins[f], values, n);
      Code* column = reinterpret_cast<Code*>(codes_.by_column.data()) + f * codes_.n_rows + begin;
      if (lookups_[f].codes(values, n, buckets, column))
        missing_[f].store(true, std::memory_order_relaxed);
      if constexpr (sizeof(Code) == 4) continue;
      for (std::size_t i = 0; i < n; ++i)
        *reinterpret_cast<Code*>(by_row + i * stride + f * sizeof(Code)) = column[i];
    }
  }

  void clear_pad(std::uint8_t* by_row, std::size_t n) const {
    if constexpr (sizeof(Code) == 4) return;
    const std::size_t used = codes_.n_features * sizeof(Code), pad = codes_.row_stride - used;
    for (std::size_t i = 0; i < n; ++i) std::memset(by_row + i * codes_.row_stride + used, 0, pad);
  }

  const Columns& table_;
  const Rows& rows_;
  Codes& codes_;
  std::vector<Lookup<Code>> lookups_;
  std::vector<std::atomic<bool>> missing_;
};

}  // namespace

void Codes::number_slots() {
  std::uint64_t slots = 0;
  first_slot.clear();
  for (std::size_t f = 0; f <= n_features; ++f) {
    first_slot.push_back(static_cast<std::uint32_t>(slots));
    if (f < n_features) slots += n_bins[f] + has_missing[f];
  }
  if (slots > std::numeric_limits<std::int32_t>::max())
    throw std::invalid_argument(
        "The table has " + std::to_string(slots) +
        " bins in all, but at most 2^31 - 1 are allowed. Lower max_bins, or pass fewer columns.");
}

Codes encode(const Columns& table, const Rows& rows,
             const std::vector<std::span<const double>>& edges,
             const std::vector<std::uint8_t>& categorical, Team& team) {
  check_levels(edges, categorical);
  if (rows.size() > std::numeric_limits<RowId>::max())
    throw std::invalid_argument("A fit holds at most 2^32 - 1 rows. Pass fewer rows.");
  Codes codes;
  codes.n_rows = rows.size();
  codes.n_features = table.columns.size();
  codes.has_missing.resize(codes.n_features);
  codes.is_category = categorical;
  for (const auto& column : edges) codes.edges.emplace_back(column.begin(), column.end());
  for (const auto& column : edges)
    codes.n_bins.push_back(static_cast<std::uint32_t>(column.size() + 1));
  const std::uint32_t most =
      codes.n_bins.empty() ? 1 : *std::max_element(codes.n_bins.begin(), codes.n_bins.end());
  codes.width = most <= 255 ? 1 : most <= 65535 ? 2 : 4;
  const std::size_t row_bytes = codes.n_features * static_cast<std::size_t>(codes.width);
  codes.by_column = Buffer<std::uint8_t>(codes.n_rows * row_bytes);
  if (codes.width == 4) {
    Encoder<std::uint32_t>(table, rows, edges, codes).run(team);
    return codes;
  }
  codes.row_stride = (row_bytes + 7) / 8 * 8;
  codes.by_row = Buffer<std::uint8_t>(codes.n_rows * codes.row_stride);
  if (codes.width == 1) {
    Encoder<std::uint8_t>(table, rows, edges, codes).run(team);
  } else {
    Encoder<std::uint16_t>(table, rows, edges, codes).run(team);
  }
  codes.number_slots();
  return codes;
}

}  // namespace arboost
