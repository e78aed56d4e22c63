// Forest -> groups of trees with shared tests. About 100 ns a node; single-threaded.
#include "predict/bits/bit_forest.h"

#include <algorithm>
#include <cmath>
#include <utility>  // move

namespace arboost {
namespace {

// Tests of a group, with the other data of its walk, should fit the L2 cache.
constexpr std::size_t most_tests = 12288;
constexpr std::size_t most_thresholds = 65533;   // of a feature: with missing ones they are numbers
constexpr std::size_t most_codes = 255;          // of a column, but the lowest
constexpr std::size_t rows_to_expect = 1 << 16;  // when tables of lookups are made

// Nodes of a tree.
struct Form {
  std::size_t first, size;  // in the forest's nodes
};

class Maker {
 public:
  Maker(const Forest& forest, std::size_t n_columns, bool with_missing)
      : forest_(forest),
        with_missing_(with_missing),
        values_of_(n_columns, none),
        n_columns_(n_columns) {}

  std::optional<BitForest> make() {
    if (!measure_trees() || !number_thresholds()) return std::nullopt;
    for (std::size_t begin = 0; begin < forms_.size();) {
      const std::size_t end = group_end(begin);
      make_group(begin, end);
      begin = end;
    }
    pack_values();
    return std::move(bits_);
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  bool measure_trees() {
    for (std::size_t t = 0; t < forest_.output.size(); ++t) {
      const auto first = static_cast<std::size_t>(forest_.tree_start[t]);
      const auto size = static_cast<std::size_t>(forest_.tree_start[t + 1]) - first;
      if (size >= 2 * most_bit_leaves) return false;
      forms_.push_back({first, size});
    }
    return true;
  }

  bool is_split(std::size_t node) const { return forest_.left[node] != 0; }
  bool by_set(std::size_t node) const { return forest_.level_set[node] >= 0; }
  std::size_t feature(std::size_t node) const {
    return static_cast<std::size_t>(forest_.feature[node]);
  }

  // Ranks the threshold of every split among those of its feature.
  bool number_thresholds() {
    std::vector<std::vector<double>> thresholds(n_columns_);
    std::vector<bool> of_levels(n_columns_), of_numbers(n_columns_);
    for (std::size_t i = 0; i < forest_.left.size(); ++i) {
      if (!is_split(i)) continue;
      (by_set(i) ? of_levels : of_numbers)[feature(i)] = true;
      if (by_set(i)) continue;
      if (std::isnan(forest_.threshold[i])) return false;
      thresholds[feature(i)].push_back(forest_.threshold[i]);
    }
    for (std::size_t f = 0; f < n_columns_; ++f) {
      if (of_levels[f] && of_numbers[f]) return false;
      if (!of_levels[f] && !of_numbers[f]) continue;
      std::vector<double>& sorted = thresholds[f];
      std::sort(sorted.begin(), sorted.end());
      sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
      if (sorted.size() > most_thresholds) return false;
      values_of_[f] = static_cast<std::uint32_t>(bits_.values.size());
      bits_.values.push_back({f, of_levels[f], {sorted, rows_to_expect}});
    }
    rank_.resize(forest_.left.size());
    for (std::size_t i = 0; i < rank_.size(); ++i) {
      if (!is_split(i) || by_set(i)) continue;
      const std::vector<double>& sorted = thresholds[feature(i)];
      rank_[i] = static_cast<std::uint16_t>(
          std::lower_bound(sorted.begin(), sorted.end(), forest_.threshold[i]) - sorted.begin());
    }
    first_key_.assign(1, 0);
    for (const BitForest::Values& values : bits_.values)
      for (int side = 0; side < 2; ++side)
        first_key_.push_back(first_key_.back() + thresholds[values.feature].size());
    test_.assign(first_key_.back(), none);
    return true;
  }

  // Index of a numerical test among all possible ones, by feature, side of missing values and rank;
  // those of one column are contiguous.
  std::size_t column_of(std::size_t node) const {
    const bool missing_left = with_missing_ && forest_.default_left[node] != 0;
    return 2 * std::size_t{values_of_[feature(node)]} + (missing_left ? 1 : 0);
  }
  std::size_t key_of(std::size_t node) const { return first_key_[column_of(node)] + rank_[node]; }

  // Adds trees while their tests are few enough.
  std::size_t group_end(std::size_t begin) {
    for (const std::uint32_t key : keys_) test_[key] = none;
    keys_.clear();
    std::size_t n_sets = 0, end = begin;
    std::vector<std::size_t> n_of(first_key_.size());
    for (; end < forms_.size(); ++end) {
      const std::size_t n_before = keys_.size();
      const Form& form = forms_[end];
      bool fits = true;
      for (std::size_t i = form.first; i < form.first + form.size; ++i) {
        if (!is_split(i)) continue;
        n_sets += by_set(i);
        if (by_set(i) || test_[key_of(i)] != none) continue;
        test_[key_of(i)] = 0;
        keys_.push_back(static_cast<std::uint32_t>(key_of(i)));
        fits &= ++n_of[column_of(i)] <= most_codes;
      }
      if (fits && keys_.size() + n_sets < most_tests) continue;
      if (end == begin) continue;  // a tree alone always fits
      for (std::size_t i = n_before; i < keys_.size(); ++i) test_[keys_[i]] = none;
      keys_.resize(n_before);
      break;
    }
    std::sort(keys_.begin(), keys_.end());
    return end;
  }

  void make_group(std::size_t begin, std::size_t end) {
    group_ = {};
    number_tests();
    level_sets_.assign(bits_.values.size(), {});
    for (std::size_t t = begin; t < end; ++t)
      for (std::size_t i = forms_[t].first; i < forms_[t].first + forms_[t].size; ++i)
        if (is_split(i) && by_set(i)) level_sets_[values_of_[feature(i)]].push_back(i);
    test_of_set_.assign(forest_.level_sets.size() / 4, 0);
    for (std::size_t v = 0; v < level_sets_.size(); ++v)
      if (!level_sets_[v].empty()) add_level_column(v);
    for (std::size_t t = begin; t < end; ++t) add_tree(t);
    std::stable_sort(group_.trees.trees.begin(), group_.trees.trees.end(),
                     [](const BitTree& a, const BitTree& b) { return a.output < b.output; });
    bits_.groups.push_back(std::move(group_));
  }

  // The columns of thresholds.
  void number_tests() {
    BitGroup& trees = group_.trees;
    std::size_t at = 0;
    for (std::size_t column = 0; column + 1 < first_key_.size(); ++column) {
      const std::size_t first = first_key_[column], begin = at;
      while (at < keys_.size() && keys_[at] < first_key_[column + 1]) ++at;
      const auto n = static_cast<std::uint32_t>(at - begin);
      if (n == 0) continue;
      std::vector<std::uint8_t> codes(first_key_[column + 1] - first + 2);
      std::uint32_t code = 0;
      for (std::size_t rank = 0; rank + 1 < codes.size(); ++rank) {
        codes[rank] =
            static_cast<std::uint8_t>(code);  // number of thresholds that a value is above
        if (code < n && keys_[begin + code] - first == rank) ++code;
      }
      codes.back() = static_cast<std::uint8_t>(column % 2 != 0 ? 0 : n);  // missing ones
      trees.columns.push_back({n, static_cast<std::uint32_t>(trees.n_tests), 0});
      const bool equal = !with_missing_ && n == first_key_[column + 1] - first;
      group_.columns.push_back({column / 2, std::move(codes), equal});
      for (std::size_t i = begin; i < at; ++i)
        test_[keys_[i]] = static_cast<std::uint32_t>(trees.n_tests++);
    }
  }

  void add_level_column(std::size_t values) {
    BitGroup& trees = group_.trees;
    std::uint32_t n_levels = 0;  // up to the last one in a set; all others are alike
    for (const std::size_t node : level_sets_[values])
      for (std::uint32_t level = n_levels; level < missing_level; ++level)
        if (holds(forest_.left_codes(node), level)) n_levels = level + 1;
    const std::uint32_t n = std::min<std::uint32_t>(n_levels + 1, most_codes);
    std::vector<std::uint8_t> codes(missing_level + 1);
    for (std::uint32_t level = 0; level < codes.size(); ++level)
      codes[level] = static_cast<std::uint8_t>(std::min(level, n_levels));
    codes.back() = static_cast<std::uint8_t>(n);
    const auto first = static_cast<std::uint32_t>(trees.sets.size());
    for (const std::size_t node : level_sets_[values]) {
      const CodeSet left = forest_.left_codes(node);
      BitSet set{static_cast<std::uint32_t>(trees.n_tests), {}};
      for (std::uint32_t code = 0; code < n; ++code) put(set.right, code, !holds(left, code));
      put(set.right, n, forest_.default_left[node] == 0);
      test_of_set_[static_cast<std::size_t>(forest_.level_set[node])] = set.test;
      trees.sets.push_back(set);
      ++trees.n_tests;
    }
    trees.columns.push_back({n, first, static_cast<std::uint32_t>(trees.sets.size()) - first});
    group_.columns.push_back({values, std::move(codes), false});
  }

  std::uint32_t test_of(std::size_t node) const {
    const std::size_t test = by_set(node)
                                 ? test_of_set_[static_cast<std::size_t>(forest_.level_set[node])]
                                 : test_[key_of(node)];
    return static_cast<std::uint32_t>(test * bit_words);
  }

  void add_tree(std::size_t t) {
    const Form& form = forms_[t];
    BitTree tree{};
    tree.program = static_cast<std::uint32_t>(group_.trees.program.size());
    tree.output = static_cast<std::uint32_t>(forest_.output[t]);
    tree.number = static_cast<std::uint32_t>(t);
    tree.leaves = bits_.leaf_nodes.size();
    const ProgramMaker maker(
        form.size,
        [&](std::size_t i) { return static_cast<std::uint32_t>(forest_.left[form.first + i]); },
        [&](std::size_t i) { return test_of(form.first + i); });
    const BitProgram program = maker.add(group_.trees.program, bits_.leaf_nodes);
    tree.n_splits = static_cast<std::uint32_t>(program.n_splits);
    tree.bits = static_cast<std::uint8_t>(program.bits);
    tree.even = program.even;
    group_.trees.trees.push_back(tree);
  }

  void pack_values() {
    if (forest_.width != 1) return;
    const BitKernels& kernels = bit_kernels();
    std::size_t bytes = 0;
    for (BitForest::Group& group : bits_.groups)
      for (BitTree& tree : group.trees.trees) {
        tree.values = bytes;
        bytes += (kernels.value_bytes(n_numbers(tree)) + 63) / 64 * 64;
      }
    bits_.packed = Buffer<std::uint8_t>(bytes);
    std::vector<double> values;
    for (const BitForest::Group& group : bits_.groups)
      for (const BitTree& tree : group.trees.trees) {
        values.resize(n_numbers(tree));
        const std::size_t first = forms_[tree.number].first;
        for (std::size_t i = 0; i < values.size(); ++i)
          values[i] = forest_.value[first + bits_.leaf_nodes[tree.leaves + i]];
        kernels.pack_values(values.data(), values.size(), bits_.packed.data() + tree.values);
      }
  }

  static std::size_t n_numbers(const BitTree& tree) {
    return tree.even ? std::size_t{1} << tree.bits : tree.n_splits + 1;
  }

  const Forest& forest_;
  bool with_missing_;
  std::vector<std::uint32_t> values_of_;  // each feature
  std::size_t n_columns_;
  std::vector<Form> forms_;
  std::vector<std::uint16_t> rank_;                   // of each split's threshold
  std::vector<std::size_t> first_key_;                // of each column there could be, and the end
  std::vector<std::uint32_t> test_;                   // of each key: the group's number of it
  std::vector<std::uint32_t> keys_;                   // of the group's tests by thresholds
  std::vector<std::vector<std::size_t>> level_sets_;  // splits of the group by sets, by values
  std::vector<std::uint32_t> test_of_set_;
  BitForest::Group group_;
  BitForest bits_;
};

}  // namespace

std::optional<BitForest> bit_forest(const Forest& forest, std::size_t n_columns,
                                    bool with_missing) {
  return Maker(forest, n_columns, with_missing).make();
}

}  // namespace arboost
