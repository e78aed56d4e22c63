// Columns and edges -> codes, by row and by column. Cost: a few nanoseconds a value; temporary
// memory: the look-up tables. Parallel over blocks of rows.
#include "bin/codes/encode.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>  // clears the pad of the rows
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/require.h"
#include "bin/codes/layout.h"
#include "bin/codes/sparse_codes.h"
#include "bin/edges/lookup.h"

namespace arboost {
namespace {

// Values that are not a level code become missing.
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
    throw std::invalid_argument("encode needs an entry of `categorical` for every column.");
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

// Codes of the rows of a block: those of stored column s from first + s * stride on.
template <class Code>
struct BlockCodes {
  Code* first;
  std::size_t stride;

  Code* column(std::size_t store) const { return first + store * stride; }
};

template <class Code>
class Encoder {
 public:
  // Without column-major codes, those of a block are in memory of its thread until they are in the
  // rows.
  Encoder(const Columns& table, const Rows& rows, const Edges& edges, Codes& codes,
          std::deque<StoreSource>& shared, bool has_columns, int n_threads)
      : table_(table),
        rows_(rows),
        codes_(codes),
        shared_(shared),
        missing_(edges.size()),
        has_columns_(has_columns),
        blocks_(has_columns ? 0 : n_threads * block_rows * codes.n_stores) {
    for (std::size_t f = 0; f < codes.n_features; ++f) {
      const bool is_read = codes.where[f].kind == Storage::single || reads_shared(f);
      lookups_.emplace_back(is_read ? edges[f] : std::span<const double>(), rows.size());
      if (codes.where[f].kind == Storage::single) own_.push_back(f);
    }
  }

  // With rows_wait, row-major codes are written later, after sparse features have been added.
  void run(bool rows_wait, Team& team) {
    for_blocks(team, [&](std::size_t begin, std::size_t end, const BlockCodes<Code>& block) {
      encode_block(begin, end, block);
      if (!rows_wait) write_rows(begin, end, block);
    });
    for (std::size_t f = 0; f < codes_.n_features; ++f)
      if (missing_[f].load()) codes_.has_missing[f] = 1;
  }

  void complete_rows(Team& team) {
    for_blocks(team, [&](std::size_t begin, std::size_t end, const BlockCodes<Code>& block) {
      write_rows(begin, end, block);
    });
  }

 private:
  template <class Body>
  void for_blocks(Team& team, const Body& body) {
    // Chunks of whole cache lines of by_column, large enough to be worth waking a thread.
    constexpr std::size_t values_per_chunk = 1 << 17;
    const std::size_t blocks = values_per_chunk / (block_rows * (codes_.n_features + 1)) + 1;
    team.for_chunks(0, codes_.n_rows, blocks * block_rows,
                    [&](std::size_t begin, std::size_t end, int thread) {
                      for (; begin < end; begin += block_rows)
                        body(begin, std::min(begin + block_rows, end), block(begin, thread));
                    });
  }

  BlockCodes<Code> block(std::size_t begin, int thread) {
    if (has_columns_) return {codes_.template column<Code>(0) + begin, codes_.n_rows};
    const std::size_t size = block_rows * codes_.n_stores;
    return {blocks_.data() + static_cast<std::size_t>(thread) * size, block_rows};
  }

  bool reads_shared(std::size_t f) const {
    return codes_.where[f].kind == Storage::shared && !is_thin(table_, f, codes_.is_category);
  }

  void read(std::size_t f, std::size_t begin, std::size_t end, Code* out) {
    double values[block_rows];
    std::uint32_t buckets[block_rows];
    rows_.read(table_.columns[f], begin, end, values);
    if (codes_.has_levels(f)) keep_levels(codes_.n_bins[f], values, end - begin);
    if (lookups_[f].codes(values, end - begin, buckets, out))
      missing_[f].store(true, std::memory_order_relaxed);
  }

  void encode_block(std::size_t begin, std::size_t end, const BlockCodes<Code>& block) {
    for (const std::size_t f : own_) read(f, begin, end, block.column(codes_.where[f].store));
    if constexpr (sizeof(Code) == 1)
      for (StoreSource& source : shared_)
        encode_shared(source, begin, end, block.column(source.store));
  }

  void encode_shared(StoreSource& source, std::size_t begin, std::size_t end, Code* out) {
    const std::size_t n = end - begin;
    std::memset(out, 0, n);
    for (DigitSource& digit : source.digits) {
      std::uint8_t codes[block_rows], digits[block_rows] = {};
      for (ShareSource& share : digit.shares) {
        if (share.is_thin) {
          if (!digit.exclusive) std::memset(digits, static_cast<int>(share.usual), n);
          continue;
        }
        read(share.feature, begin, end, codes);
        std::size_t clashes = 0;
        for (std::size_t i = 0; i < n; ++i) {
          const std::uint8_t more = share.digit_of[codes[i]];
          clashes += digits[i] != 0 && more != 0 ? 1 : 0;
          digits[i] = digits[i] != 0 ? digits[i] : more;
        }
        if (clashes > 0) share.clashes.fetch_add(clashes, std::memory_order_relaxed);
      }
      for (std::size_t i = 0; i < n; ++i)
        out[i] = static_cast<Code>(out[i] + digits[i] * digit.stride);
    }
  }

  void write_rows(std::size_t begin, std::size_t end, const BlockCodes<Code>& block) {
    if (sizeof(Code) == 4 || codes_.n_stores == 0) return;
    const std::size_t stride = codes_.row_stride, used = codes_.n_stores * sizeof(Code);
    std::uint8_t* by_row = codes_.by_row.data() + begin * stride;
    for (std::size_t i = 0; i < end - begin; ++i)
      std::memset(by_row + i * stride + used, 0, stride - used);
    for (std::size_t s = 0; s < codes_.n_stores; ++s) {
      const Code* column = block.column(s);
      for (std::size_t i = 0; i < end - begin; ++i)
        *reinterpret_cast<Code*>(by_row + i * stride + s * sizeof(Code)) = column[i];
    }
  }

  const Columns& table_;
  const Rows& rows_;
  Codes& codes_;
  std::deque<StoreSource>& shared_;
  std::vector<std::size_t> own_;
  std::vector<Lookup<Code>> lookups_;
  std::vector<std::atomic<bool>> missing_;
  bool has_columns_;
  std::vector<Code> blocks_;  // of each thread
};

template <class Code>
bool encode_stores(const Columns& table, const Rows& rows, const Edges& edges, StoragePlan& plan,
                   bool rows_only, Codes& codes, Team& team) {
  std::deque<StoreSource> shared = lay_out(plan, table, codes);
  const bool any_thin = has_thin(shared);
  const bool has_columns = !rows_only || any_thin || sizeof(Code) == 4;
  const std::size_t row_bytes = codes.n_stores * sizeof(Code);
  codes.row_stride = sizeof(Code) == 4 ? 0 : (row_bytes + 7) / 8 * 8;
  if (has_columns) make_room(codes.by_column, codes.bytes_by_column());
  make_room(codes.by_row, codes.bytes_by_row());
  Encoder<Code> encoder(table, rows, edges, codes, shared, has_columns, team.size());
  encoder.run(any_thin, team);
  if (any_thin) {
    add_thin(table, rows, edges, shared, codes, team);
    encoder.complete_rows(team);
  }
  return check_layout(shared, codes, plan);
}

}  // namespace

Codes start_codes(std::size_t n_rows, const Edges& edges,
                  const std::vector<std::uint8_t>& categorical) {
  check_levels(edges, categorical);
  check_row_count(n_rows);
  Codes codes;
  codes.n_rows = n_rows;
  codes.n_features = edges.size();
  codes.has_missing.resize(codes.n_features);
  codes.is_category = categorical;
  for (const auto& column : edges) codes.edges.emplace_back(column.begin(), column.end());
  for (const auto& column : edges)
    codes.n_bins.push_back(static_cast<std::uint32_t>(column.size() + 1));
  const std::uint32_t most =
      codes.n_bins.empty() ? 1 : *std::max_element(codes.n_bins.begin(), codes.n_bins.end());
  codes.width = most <= 255 ? 1 : most <= 65535 ? 2 : 4;
  return codes;
}

std::optional<Codes> encode_part(const Columns& table, const Rows& rows, const Edges& edges,
                                 const std::vector<std::uint8_t>& categorical, StoragePlan& plan,
                                 Team& team, const PartOptions& options) {
  Codes codes = start_codes(rows.size(), edges, categorical);
  if (options.spent != nullptr) {
    codes.by_row = std::move(options.spent->by_row);
    codes.by_column = std::move(options.spent->by_column);
    *options.spent = {};
  }
  const auto run = codes.width == 1   ? encode_stores<std::uint8_t>
                   : codes.width == 2 ? encode_stores<std::uint16_t>
                                      : encode_stores<std::uint32_t>;
  if (!run(table, rows, edges, plan, options.rows_only, codes, team)) return std::nullopt;
  if (codes.width == 4) return codes;
  encode_sparse(table, rows, edges, plan.sparse, codes, team);
  codes.number_slots();
  return codes;
}

Codes encode(const Columns& table, const Rows& rows, const Edges& edges,
             const std::vector<std::uint8_t>& categorical, const StoragePlan* plan, Team& team) {
  const bool is_ranked = std::any_of(edges.begin(), edges.end(),
                                     [](const auto& column) { return column.size() > 65534; });
  StoragePlan stores;
  if (!is_ranked) stores = plan != nullptr ? *plan : plain_plan(table, categorical);
  // The first pass finds the features that do not fit and changes the plan; the second succeeds.
  while (true)
    if (auto codes = encode_part(table, rows, edges, categorical, stores, team))
      return std::move(*codes);
}

}  // namespace arboost
