// Choice and lazy preparation of a forest's forms. Thread-safe without locks.
#include "predict/packed_forest.h"

#include <atomic>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/require.h"
#include "predict/bits/bit_forest.h"
#include "predict/bits/row_forest.h"
#include "predict/coded.h"
#include "predict/traverse.h"

namespace arboost {
namespace {

// A block of bits costs the same for any number of rows; below this number, walks over values are
// faster.
constexpr std::size_t fewest_bit_rows = 96;
constexpr std::size_t fewest_coded_rows = 8;
constexpr std::size_t most_row_values = 256;  // that need no memory from the heap

// Lazily made object. Concurrent threads may both make it, so that none waits for another; the
// first result is kept.
template <class Thing>
class Kept {
 public:
  ~Kept() { delete kept_.load(); }

  // Null if the object does not exist yet and would not pay.
  template <class Make>
  const std::optional<Thing>* get(bool is_worth_it, Make make) const {
    const std::optional<Thing>* known = kept_.load();
    if (known != nullptr || !is_worth_it) return known;
    auto made = std::make_unique<const std::optional<Thing>>(make());
    return kept_.compare_exchange_strong(known, made.get()) ? made.release() : known;
  }

 private:
  mutable std::atomic<const std::optional<Thing>*> kept_{nullptr};
};

}  // namespace

struct PackedForest::Parts {
  Parts(const Forest& views, std::size_t columns, std::size_t outputs)
      : forest(views),
        n_columns(columns),
        n_outputs(outputs),
        packed(pack_trees(views, {0, views.output.size()}, columns, outputs)) {
    require(views.width == 1 || views.width == outputs, "leaves that do not fit the outputs");
    for (std::size_t t = 0; t < views.output.size(); ++t)
      is_deep |= views.tree_start[t + 1] - views.tree_start[t] >= 2 * std::int64_t{most_bit_leaves};
  }

  // Ranking thresholds takes several times as long as packing: it waits for a table that is large
  // enough.
  bool is_worth_numbering(std::size_t n_rows) const {
    constexpr std::size_t nodes_per_walk = 4;
    return n_rows * packed.trees.size() * nodes_per_walk >= packed.nodes.size();
  }

  const BitForest* bits(std::size_t n_rows) const {
    if (is_deep || n_rows < fewest_bit_rows) return nullptr;
    const auto* made = present_bits.get(is_worth_numbering(n_rows),
                                        [&] { return bit_forest(forest, n_columns, false); });
    return made != nullptr && made->has_value() ? &**made : nullptr;
  }
  // Only if the form without missing values exists.
  const BitForest& bits_with_missing() const {
    return **missing_bits.get(true, [&] { return bit_forest(forest, n_columns, true); });
  }

  // The form for single rows is always made: only the first call is slow.
  const RowForest* rows() const {
    if (is_deep) return nullptr;
    const auto* made = present_rows.get(true, [&]() -> std::optional<RowForest> {
      const auto* bits =
          present_bits.get(true, [&] { return bit_forest(forest, n_columns, false); });
      if (!bits->has_value()) return std::nullopt;
      return RowForest::make(**bits, forest);
    });
    return made->has_value() ? &**made : nullptr;
  }
  const RowForest* rows_with_missing() const {
    const auto* made =
        missing_rows.get(true, [&] { return RowForest::make(bits_with_missing(), forest); });
    return made->has_value() ? &**made : nullptr;
  }
  const CodedForest* coded(std::size_t n_rows) const {
    if (!is_deep || n_rows < fewest_coded_rows) return nullptr;
    const auto* made = coded_forest.get(is_worth_numbering(n_rows),
                                        [&] { return code_forest(forest, n_columns); });
    return made != nullptr && made->has_value() ? &**made : nullptr;
  }

  Forest forest;
  std::size_t n_columns, n_outputs;
  Packed packed;
  bool is_deep = false;  // a tree has more leaves than are walked by bits
  Kept<BitForest> present_bits, missing_bits;
  Kept<CodedForest> coded_forest;
  Kept<RowForest> present_rows, missing_rows;
};

PackedForest::PackedForest(const Forest& forest, std::size_t n_columns, std::size_t n_outputs)
    : parts_(std::make_unique<const Parts>(forest, n_columns, n_outputs)) {}

PackedForest::~PackedForest() = default;

std::size_t PackedForest::n_trees() const {
  return parts_->packed.trees.size();
}
std::size_t PackedForest::n_columns() const {
  return parts_->n_columns;
}
std::size_t PackedForest::n_outputs() const {
  return parts_->n_outputs;
}

void PackedForest::traverse(const Columns& table, std::size_t n_outputs, Team& team,
                            double* scores) const {
  const Parts& parts = *parts_;
  require(table.columns.size() == parts.n_columns && n_outputs == parts.n_outputs,
          "another number of columns or outputs than the forest was packed for");
  const auto with_missing = [&]() -> const BitForest& { return parts.bits_with_missing(); };
  if (const BitForest* bits = parts.bits(table.n_rows))
    return traverse_bits(table, {*bits, with_missing}, parts.forest, n_outputs, team, scores);
  if (const CodedForest* coded = parts.coded(table.n_rows))
    return traverse_coded(table, *coded, parts.forest, n_outputs, team, scores);
  walk_values(table, parts.packed, parts.forest, n_outputs, team, scores);
}

void PackedForest::traverse_leaves(const Columns& table, std::size_t n_trees, Team& team,
                                   FunctionRef<void(const LeafBlock&, int member)> consume) const {
  const Parts& parts = *parts_;
  require(table.columns.size() == parts.n_columns && n_trees == parts.packed.trees.size(),
          "another number of columns or trees than the forest was packed for");
  const auto with_missing = [&]() -> const BitForest& { return parts.bits_with_missing(); };
  if (const BitForest* bits = parts.bits(table.n_rows))
    return bit_leaves(table, {*bits, with_missing}, n_trees, team, consume);
  walk_leaves(table, parts.packed, n_trees, team, consume);
}

void PackedForest::traverse_row(FunctionRef<double(std::size_t column)> value_of,
                                double* scores) const {
  const Parts& parts = *parts_;
  const RowForest* rows = parts.rows();
  const std::vector<UsedColumn>& columns = parts.packed.columns;
  double few[most_row_values];
  std::vector<double> many;
  if (columns.size() >= most_row_values) many.resize(columns.size() + 1);
  double* row = many.empty() ? few : many.data();
  if (rows != nullptr) {
    bool missing = false;
    const std::vector<BitForest::Values>& values = rows->values();
    for (std::size_t i = 0; i < values.size(); ++i) {
      row[i] = value_of(values[i].feature);
      missing |= std::isnan(row[i]) && !values[i].of_levels;
    }
    if (missing) rows = parts.rows_with_missing();
    if (rows != nullptr) return rows->add(row, scores);
  }
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const double x = value_of(columns[i].feature);
    row[i] = columns[i].of_codes ? level_or_missing(x) : x;
  }
  walk_row(parts.packed, parts.forest, parts.n_outputs, row, scores);
}

}  // namespace arboost
