// Cost: about 100 ns a node, most of it for the ranks of thresholds.
#include "predict/device/forest_layout.h"

#include <algorithm>
#include <bit>  // bit_cast
#include <cmath>
#include <map>
#include <stdexcept>  // invalid_argument
#include <utility>

#include "predict/traverse.h"

namespace arboost::cuda {
namespace {

constexpr std::uint32_t most_levels = 8;        // of a small tree
constexpr std::size_t group_bytes = 24 * 1024;  // of its nodes and values in shared memory
constexpr std::size_t most_offset = std::size_t{1} << 16, most_sets = std::size_t{1} << 14;
constexpr std::uint32_t most_block_rows = 512, fewest_block_rows = 64;

class Builder {
 public:
  Builder(const Forest& forest, const Packed& packed, std::size_t n_outputs)
      : forest_(forest), packed_(packed), n_outputs_(n_outputs) {}

  ForestLayout build() {
    find_columns();
    for (std::size_t i = 0; i < forest_.left.size(); ++i) made_.nodes.push_back(node(i));
    made_.tree_start.assign(forest_.tree_start.begin(), forest_.tree_start.end());
    order_trees();
    if (forest_.width == 1 && made_.per_word == 4) made_.small = small();
    return std::move(made_);
  }

 private:
  using Key = std::pair<std::size_t, bool>;  // feature, of codes

  bool is_split(std::size_t node) const { return forest_.left[node] != 0; }
  bool has_set(std::size_t node) const { return forest_.level_set[node] >= 0; }
  Key key(std::size_t node) const {
    return {static_cast<std::size_t>(forest_.feature[node]), has_set(node)};
  }

  void find_columns() {
    std::map<Key, std::vector<double>> thresholds;
    for (std::size_t i = 0; i < forest_.left.size(); ++i) {
      if (!is_split(i)) continue;
      std::vector<double>& known = thresholds[key(i)];
      // Zeros of both signs are equal; no value is above NaN.
      if (!has_set(i) && !std::isnan(forest_.threshold[i]))
        known.push_back(forest_.threshold[i] + 0.0);
    }
    std::size_t most = 0;
    for (auto& [which, known] : thresholds) {
      std::sort(known.begin(), known.end());
      known.erase(std::unique(known.begin(), known.end()), known.end());
      most = std::max(most, known.size());
      number_[which] = static_cast<std::uint32_t>(made_.columns.size());
      made_.columns.push_back(
          {.column = {},
           .kind = which.second ? CodedColumn::level_codes : CodedColumn::thresholds,
           .first = static_cast<std::uint32_t>(made_.thresholds.size()),
           .n = static_cast<std::uint32_t>(known.size())});
      made_.features.push_back(which.first);
      made_.thresholds.insert(made_.thresholds.end(), known.begin(), known.end());
    }
    made_.per_word = most <= 254 ? 4 : most <= 65534 ? 2 : 1;
  }

  ForestNode node(std::size_t i) {
    if (!is_split(i)) return {0, 0, std::bit_cast<std::uint64_t>(forest_.value[i * forest_.width])};
    const auto next = static_cast<std::uint32_t>(forest_.left[i]);
    const std::uint32_t column = number_.at(key(i));
    if (has_set(i)) return {next, column | set_flag, set_of(i)};
    const bool left = forest_.default_left[i] != 0;
    if (std::isnan(forest_.threshold[i]))  // only missing values may go right
      return {next, column | (left ? 0 : shift_flag), ~std::uint32_t{1}};
    // The code of values above the threshold is larger than that of the threshold itself.
    const std::uint64_t code = made_.code_of(column, forest_.threshold[i]);
    return {next, column | (left ? 0 : shift_flag), left ? code : code - 1};
  }

  std::uint64_t set_of(std::size_t i) {
    const CodeSet set = forest_.left_codes(i);
    if (made_.sets.empty() || !(made_.sets.back() == set)) made_.sets.push_back(set);
    return made_.sets.size() - 1;
  }

  void order_trees() {
    const auto n_trees = static_cast<std::uint32_t>(forest_.output.size());
    for (std::size_t k = 0; k < n_outputs_; ++k) {
      made_.output_start.push_back(static_cast<std::uint32_t>(made_.order.size()));
      for (std::uint32_t t = 0; t < n_trees; ++t)
        if (static_cast<std::size_t>(forest_.output[t]) == k) made_.order.push_back(t);
    }
    made_.output_start.push_back(static_cast<std::uint32_t>(made_.order.size()));
  }

  std::optional<ForestLayout::Small> small() const {
    ForestLayout::Small layout{.nodes = {},
                               .values = {},
                               .groups = {},
                               .most_trees = 0,
                               .depth = 1,
                               .block_rows = most_block_rows};
    for (const Tree& tree : packed_.trees)
      layout.depth = std::max(layout.depth, static_cast<std::uint32_t>(tree.depth));
    while (made_.n_words() * layout.block_rows * 4 > most_offset) layout.block_rows /= 2;
    if (layout.depth > most_levels || layout.block_rows < fewest_block_rows ||
        made_.sets.size() > most_sets)
      return std::nullopt;
    const std::size_t size = std::size_t{1} << layout.depth;
    layout.most_trees = static_cast<std::uint32_t>(group_bytes / (size * 12) / 4 * 4);
    layout.nodes.assign(made_.order.size() * size, 0);
    layout.values.assign(made_.order.size() * size, 0.0);
    for (std::size_t i = 0; i < made_.order.size(); ++i)
      complete(layout, i, static_cast<std::size_t>(forest_.tree_start[made_.order[i]]), 0, 1, 0);
    for (std::uint32_t k = 0; k < n_outputs_; ++k) add_groups(layout, k);
    return layout;
  }

  void add_groups(ForestLayout::Small& layout, std::uint32_t output) const {
    const std::uint32_t begin = made_.output_start[output], end = made_.output_start[output + 1];
    std::uint32_t first = begin;
    do {
      const std::uint32_t n = std::min(layout.most_trees, end - first);
      layout.groups.push_back({first, n, output, first == begin, first + n == end});
      first += n;
    } while (first < end);
  }

  // Fills in a node, number `at` of tree i; a leaf above the last level passes rows on to the left.
  void complete(ForestLayout::Small& layout, std::size_t i, std::size_t first, std::size_t which,
                std::size_t at, std::uint32_t level) const {
    const std::size_t begin = i << layout.depth;
    const ForestNode& node = made_.nodes[first + which];
    if (level == layout.depth) {
      layout.values[begin + at - (std::size_t{1} << layout.depth)] =
          std::bit_cast<double>(node.content);
      return;
    }
    if (node.next == 0) {
      layout.nodes[begin + at] = 255;  // no code is above it
      return complete(layout, i, first, which, 2 * at, level + 1);
    }
    const std::uint32_t column = node.column & column_mask;
    const std::uint32_t offset = (column >> 2) * layout.block_rows * 4 + (column & 3);
    const auto content = static_cast<std::uint32_t>(node.content);
    const std::uint32_t number = node.column & set_flag
                                     ? small_set | (content & 255) | (content >> 8) << 10
                                     : std::min(content, 255u);
    layout.nodes[begin + at] = offset << 16 | (node.column & shift_flag ? small_shift : 0) | number;
    complete(layout, i, first, node.next, 2 * at, level + 1);
    complete(layout, i, first, node.next + 1, 2 * at + 1, level + 1);
  }

  const Forest& forest_;
  const Packed& packed_;
  std::size_t n_outputs_;
  std::map<Key, std::uint32_t> number_;  // of the columns
  ForestLayout made_;
};

}  // namespace

std::uint32_t ForestLayout::column_of(std::size_t feature, bool of_codes) const {
  for (std::uint32_t c = 0; c < columns.size(); ++c)
    if (features[c] == feature && (columns[c].kind == CodedColumn::level_codes) == of_codes)
      return c;
  return 0;
}

std::uint32_t ForestLayout::code_of(std::uint32_t column, double value) const {
  if (std::isnan(value)) return 0;
  const CodedColumn& which = columns[column];
  if (which.kind == CodedColumn::level_codes)
    return value >= 0 && value < 255 && value == std::floor(value)
               ? 1 + static_cast<std::uint32_t>(value)
               : 0;
  const double* first = thresholds.data() + which.first;
  return 1 + static_cast<std::uint32_t>(std::lower_bound(first, first + which.n, value) - first);
}

ForestLayout forest_layout(const Forest& forest, std::size_t n_columns, std::size_t n_outputs) {
  if (forest.width != 1 && forest.width != n_outputs)
    throw std::invalid_argument("leaves that do not fit the outputs");
  const Packed packed = pack_trees(forest, {0, forest.output.size()}, n_columns, n_outputs);
  return Builder(forest, packed, n_outputs).build();
}

}  // namespace arboost::cuda
