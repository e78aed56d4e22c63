// Reading: one pass over the sections, 30 ns a node. Validation: one pass over the nodes, about 3
// ns a node. Single-threaded.
#include "save/read_forest.h"

#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>  // invalid_argument
#include <string>
#include <unordered_map>
#include <utility>  // move

#include "save/bits.h"

namespace arboost {
namespace {

constexpr std::uint64_t largest_int = std::numeric_limits<std::int32_t>::max();
constexpr std::uint64_t whole_end = std::uint64_t{1} << 53;  // beyond, not all are doubles
constexpr std::size_t widest = std::size_t{1} << 31;

[[noreturn]] void refuse(const std::string& what) {
  throw std::invalid_argument(what);
}

// Adds the name of the section to errors of its reader.
template <class Make>
auto named(const char* name, const Make& make) {
  try {
    return make();
  } catch (const std::invalid_argument& error) {
    refuse(std::string(name) + ": " + error.what());
  }
}

class Integers {
 public:
  Integers(const char* name, std::span<const std::uint8_t> packed, std::size_t count,
           std::uint64_t largest)
      : name_(name),
        largest_(largest),
        reader_(named(name, [&] { return BitsReader(packed, count); })) {}

  std::uint64_t next() {
    const std::uint64_t number = reader_.next();
    if (number > largest_) refuse_number(number);
    return number;
  }

 private:
  [[noreturn]] void refuse_number(std::uint64_t number) const {
    refuse(std::string(name_) + " of " + std::to_string(number) + ", above " +
           std::to_string(largest_));
  }

  const char* name_;
  std::uint64_t largest_;
  BitsReader reader_;
};

class Doubles {
 public:
  using Form = DoublesSection::Form;

  Doubles(const char* name, const DoublesSection& section, std::size_t count)
      : form_(section.form), numbers_(section.numbers) {
    if (form_ == Form::as_they_are && numbers_.size() != count)
      refuse(std::string(name) + " of " + std::to_string(numbers_.size()) + " numbers");
    if (form_ == Form::table && numbers_.empty() && count > 0)
      refuse(std::string(name) + " without a table");
    if (form_ == Form::whole) integers_.emplace(name, section.packed, count, whole_end - 1);
    if (form_ == Form::table)
      integers_.emplace(name, section.packed, count, count > 0 ? numbers_.size() - 1 : 0);
    if (form_ == Form::scaled)
      scaled_.emplace(named(name, [&] { return ScaledReader(section.packed, count); }));
  }

  double next() {
    switch (form_) {
      case Form::as_they_are:
        return numbers_[at_++];
      case Form::whole:
        return static_cast<double>(integers_->next());
      case Form::table:
        return numbers_[integers_->next()];
      default:
        return scaled_->next();
    }
  }

 private:
  Form form_;
  std::span<const double> numbers_;
  std::size_t at_ = 0;
  std::optional<Integers> integers_;
  std::optional<ScaledReader> scaled_;
};

// Thresholds of the splits: by index in a table of each feature's thresholds, or as numbers.
class Thresholds {
 public:
  Thresholds(const ForestSections& sections, std::size_t n_splits)
      : has_table_(sections.has_thresholds), table_(sections.thresholds) {
    if (!has_table_) {
      numbers_.emplace("threshold", sections.threshold, n_splits);
      return;
    }
    first_.push_back(0);
    for (const std::uint32_t count : sections.thresholds_of)
      first_.push_back(first_.back() + count);
    if (first_.back() != table_.size())
      refuse("a table of " + std::to_string(table_.size()) + " thresholds instead of " +
             std::to_string(first_.back()));
    index_.emplace("threshold", sections.threshold.packed, n_splits, largest_int);
  }

  double next(std::int32_t feature) {
    if (!has_table_) return numbers_->next();
    const std::size_t index = index_->next(), f = static_cast<std::size_t>(feature);
    if (feature < 0 || f + 1 >= first_.size() || index >= first_[f + 1] - first_[f])
      refuse("a threshold that its feature does not have");
    return table_[first_[f] + index];
  }

 private:
  bool has_table_;
  std::span<const double> table_;
  std::vector<std::size_t> first_;
  std::optional<Integers> index_;
  std::optional<Doubles> numbers_;
};

struct Counts {
  std::size_t nodes = 0, splits = 0, leaves = 0, width = 1;
};

Counts count(const ForestSections& sections) {
  Counts counts{.width = sections.width};
  std::uint64_t n_splits = 0;  // of less than 2^32 trees: nothing can wrap around
  for (const std::uint32_t splits : sections.splits) n_splits += splits;
  counts.splits = n_splits;
  counts.leaves = n_splits + sections.splits.size();
  counts.nodes = counts.splits + counts.leaves;
  const std::size_t bytes = counts.nodes / 8 + (counts.nodes % 8 != 0);
  if (sections.structure.size() != bytes)
    refuse("the structure of " + std::to_string(counts.nodes) + " nodes in " +
           std::to_string(sections.structure.size()) + " bytes");
  if (counts.nodes % 8 != 0 && sections.structure.back() >> (counts.nodes % 8) != 0)
    refuse("the structure has bits after its last node");
  if (sections.width < 1 || sections.width > widest)
    refuse("leaves of width " + std::to_string(sections.width));
  if (counts.leaves > std::numeric_limits<std::size_t>::max() / 64 / sections.width)
    refuse("leaves of width " + std::to_string(sections.width));
  return counts;
}

class Reader {
 public:
  Reader(const ForestSections& sections, const Counts& counts)
      : sections_(sections),
        n_(counts),
        order_(optional_order()),
        feature_{"feature", sections.feature, n_, largest_int},
        default_left_{"default_left", sections.default_left, n_, 1},
        by_set_{"by_set", sections.by_set, n_, 1},
        threshold_(sections, n_.splits),
        threshold_of_leaves_("threshold of leaves", sections.threshold_of_leaves, n_.leaves),
        cover_{"cover", sections.cover, sections.cover_of_leaves, n_, 1},
        value_{"value", sections.value, sections.value_of_leaves, n_, n_.width},
        gain_{"gain", sections.gain, sections.gain_of_leaves, n_, 1} {}

  ForestVectors read() {
    allocate();
    std::size_t begin = 0;
    for (const std::uint32_t splits : sections_.splits) {
      const std::size_t size = 1 + 2 * std::size_t{splits};
      read_links(begin, size, splits);
      read_numbers(begin, size);
      begin += size;
      out_.tree_start.push_back(static_cast<std::int64_t>(begin));
    }
    return std::move(out_);
  }

 private:
  struct Nodes {
    Nodes(const char* name, const NodeBits& bits, const Counts& n, std::uint64_t largest)
        : of_leaves(name, bits.of_leaves, n.leaves, largest),
          of_splits(name, bits.of_splits, n.splits, largest) {}
    std::uint64_t next(bool split) { return split ? of_splits.next() : of_leaves.next(); }

    Integers of_leaves, of_splits;
  };

  struct Derived {
    Derived(const char* name, std::span<const std::uint8_t> away, const DoublesSection& leaves,
            const Counts& n, std::size_t width)
        : of_leaves(name, leaves, n.leaves * width),
          away_of_splits(name, away, n.splits * width, ~std::uint64_t{0}) {}

    Doubles of_leaves;
    Integers away_of_splits;
  };

  std::optional<Integers> optional_order() const {
    if (!sections_.has_order) return std::nullopt;
    return Integers("order", sections_.order, n_.splits, largest_int / 2 - 1);
  }

  void allocate() {
    for (auto* numbers : {&out_.feature, &out_.left, &out_.level_set}) numbers->resize(n_.nodes);
    for (auto* numbers : {&out_.threshold, &out_.gain, &out_.cover}) numbers->resize(n_.nodes);
    out_.value.resize(n_.nodes * n_.width);
    out_.default_left.resize(n_.nodes);
    out_.tree_start.reserve(sections_.splits.size() + 1);
    out_.tree_start.push_back(0);
  }

  bool is_split(std::size_t node) const { return sections_.structure[node / 8] >> node % 8 & 1; }

  void read_links(std::size_t begin, std::size_t size, std::size_t n_splits) {
    if (size > largest_int) refuse("a tree of " + std::to_string(size) + " nodes");
    std::size_t n_seen = 0;
    for (std::size_t i = begin; i < begin + size; ++i) n_seen += is_split(i);
    // This guarantees the numbers of splits and of leaves over all trees.
    if (n_seen != n_splits) refuse("the structure and the numbers of splits disagree");
    n_seen = 0;
    for (std::size_t i = begin; i < begin + size; ++i) {
      const bool split = is_split(i);
      const auto feature = static_cast<std::int32_t>(feature_.next(split)) - 1;
      out_.feature[i] = feature;
      out_.default_left[i] = static_cast<std::uint8_t>(default_left_.next(split));
      out_.level_set[i] = by_set_.next(split) != 0 ? next_set() : -1;
      out_.threshold[i] = split ? threshold_.next(feature) : threshold_of_leaves_.next();
      if (split)
        out_.left[i] = static_cast<std::int32_t>(1 + 2 * (order_ ? order_->next() : n_seen));
      n_seen += split;
    }
  }

  std::int32_t next_set() {
    if (sets_ == static_cast<std::int32_t>(largest_int)) refuse("too many sets of levels");
    return sets_++;
  }

  void read_numbers(std::size_t begin, std::size_t size) {
    double *cover = out_.cover.data() + begin, *gain = out_.gain.data() + begin,
           *value = out_.value.data() + begin * n_.width;
    for (std::size_t i = 0; i < size; ++i) {
      if (is_split(begin + i)) continue;
      cover[i] = cover_.of_leaves.next();
      gain[i] = gain_.of_leaves.next();
      for (std::size_t k = 0; k < n_.width; ++k) value[i * n_.width + k] = value_.of_leaves.next();
    }
    derive_tree({out_.left.data() + begin, size},
                {.width = n_.width, .cover = cover, .value = value, .gain = gain},
                sections_.shrinkage, sums_);
    for (std::size_t i = 0; i < size; ++i) {
      if (!is_split(begin + i)) continue;
      cover[i] = moved(cover[i], cover_.away_of_splits.next());
      gain[i] = moved(gain[i], gain_.away_of_splits.next());
      for (std::size_t k = i * n_.width; k < (i + 1) * n_.width; ++k)
        value[k] = moved(value[k], value_.away_of_splits.next());
    }
  }

  const ForestSections& sections_;
  Counts n_;
  std::optional<Integers> order_;
  Nodes feature_, default_left_, by_set_;
  Thresholds threshold_;
  Doubles threshold_of_leaves_;
  Derived cover_, value_, gain_;
  std::int32_t sets_ = 0;
  std::vector<double> sums_;
  ForestVectors out_;
};

// ---- validation ----

constexpr std::size_t set_words = 4;

void require_model(bool holds, const char* what) {
  if (!holds) refuse(std::string("inconsistent model: ") + what);
}

void check_starts(std::span<const std::int64_t> start, std::size_t n_nodes) {
  require_model(
      !start.empty() && start.front() == 0 && start.back() == static_cast<std::int64_t>(n_nodes),
      "trees that do not hold all nodes");
  for (std::size_t t = 0; t + 1 < start.size(); ++t)
    require_model(start[t] < start[t + 1], "a tree without nodes");
}

// Children come after their parent, and every node but the root is the child of exactly one node:
// by induction, every node is reached from its root, and there is no cycle.
void check_links(std::span<const std::int32_t> left, std::vector<std::uint8_t>& is_child) {
  is_child.assign(left.size(), 0);
  std::size_t children = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (left[i] == 0) continue;
    require_model(left[i] > 0, "a negative child");
    const auto child = static_cast<std::size_t>(left[i]);
    require_model(child > i, "a child before its parent");
    require_model(child + 1 < left.size(), "a child outside its tree");
    require_model(!is_child[child] && !is_child[child + 1], "a lost node");
    is_child[child] = is_child[child + 1] = 1;
    children += 2;
  }
  require_model(children + 1 == left.size(), "a lost node");
}

// Without branches, so that the loop vectorises.
void check_finite(std::span<const double> numbers, const char* what) {
  std::uint64_t not_finite = 0;
  for (const double x : numbers) not_finite |= !(std::abs(x) <= std::numeric_limits<double>::max());
  require_model(not_finite == 0, what);
}

void check_numbers(const CheckedForest& forest) {
  std::uint64_t nan = 0, negative = 0;
  for (const double x : forest.trees.threshold) nan |= x != x;
  require_model(nan == 0, "a threshold that is not a number");
  check_finite(forest.trees.value, "a value that is not finite");
  check_finite(forest.gain, "a gain that is not finite");
  check_finite(forest.cover, "a cover that is not finite");
  for (const double x : forest.cover) negative |= x < 0;
  require_model(negative == 0, "a negative cover");
}

// Kind of each feature's splits, by the schema or else by its first split.
class Kinds {
 public:
  explicit Kinds(const CheckedForest& forest) : categorical_(forest.categorical) {}

  void check(std::size_t feature, bool by_set) {
    if (!categorical_.empty()) {
      require_model((categorical_[feature] != 0) == by_set, "sets for splits of no category");
      return;
    }
    const auto entry = seen_.try_emplace(feature, by_set).first;
    require_model(entry->second == by_set,
                  "a feature that is both split by sets and by thresholds");
  }

 private:
  std::span<const std::uint8_t> categorical_;
  std::unordered_map<std::size_t, bool> seen_;
};

void check_splits(const CheckedForest& forest) {
  const Forest& trees = forest.trees;
  const std::size_t n_sets = trees.level_sets.size() / set_words;
  std::size_t sets = 0;
  Kinds kinds(forest);
  for (std::size_t i = 0; i < trees.left.size(); ++i) {
    const bool by_set = trees.level_set[i] != -1;
    require_model(
        !by_set || (sets < n_sets && trees.level_set[i] == static_cast<std::int32_t>(sets)),
        "sets of levels that are not in the order of their nodes");
    sets += by_set;
    require_model(!by_set || trees.left[i] != 0, "a leaf with a set of levels");
    if (trees.left[i] == 0) continue;
    const std::int32_t feature = trees.feature[i];
    require_model(feature >= 0 && static_cast<std::size_t>(feature) < forest.n_features,
                  "a split on an unknown feature");
    if (n_sets > 0 || !forest.categorical.empty())
      kinds.check(static_cast<std::size_t>(feature), by_set);
  }
  require_model(sets == n_sets, "sets of levels that are not in the order of their nodes");
}

}  // namespace

ForestVectors read_forest(const ForestSections& sections) {
  return Reader(sections, count(sections)).read();
}

void check_forest(const CheckedForest& forest) {
  const Forest& trees = forest.trees;
  check_starts(trees.tree_start, trees.left.size());
  require_model(trees.width == 1 || trees.width == forest.n_outputs, "leaves of another width");
  const std::size_t outputs = trees.width == 1 ? forest.n_outputs : 1;
  std::vector<std::uint8_t> is_child;
  for (std::size_t t = 0; t + 1 < trees.tree_start.size(); ++t) {
    require_model(trees.output[t] >= 0 && static_cast<std::size_t>(trees.output[t]) < outputs,
                  "an unknown output");
    const auto begin = static_cast<std::size_t>(trees.tree_start[t]);
    const auto end = static_cast<std::size_t>(trees.tree_start[t + 1]);
    check_links(trees.left.subspan(begin, end - begin), is_child);
  }
  check_splits(forest);
  check_numbers(forest);
}

}  // namespace arboost
