// Walks over codes, and edits of grown trees. Walks are parallel over rows, with one kernel call a
// chunk.
#include "grow/trees/grown_trees.h"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "bin/codes/sparse_codes.h"
#include "grow/kernels/grow_kernels.h"

namespace arboost {
namespace {

constexpr std::size_t chunk_rows = 16384;
constexpr std::size_t fewest_together = 2048;  // rows that pay for the program of a tree

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

}  // namespace

void GrownTrees::validate(const Codes& codes) const {
  const std::size_t n = feature.size();
  require(!tree_start.empty() && tree_start.front() == 0, "trees that do not start at 0");
  require(tree_start.back() == static_cast<std::int64_t>(n), "trees that do not hold all nodes");
  require(bin.size() == n && left.size() == n && default_left.size() == n && set.size() == n &&
              gain.size() == n && cover.size() == n && value.size() == n * width,
          "arrays of trees of different lengths");
  std::int32_t n_sets = 0;
  for (std::size_t t = 0; t < n_trees(); ++t) {
    require(tree_start[t] < tree_start[t + 1] && tree_start[t + 1] <= tree_start.back(),
            "a tree without nodes, or outside the arrays");
    const auto size = static_cast<std::int64_t>(n_nodes(t));
    for (std::int64_t i = 0; i < size; ++i) {
      const std::size_t at = first(t) + static_cast<std::size_t>(i);
      const std::int64_t child = left[at];
      require(child == 0 || (child > i && child + 1 < size), "a child outside its tree");
      require(feature[at] >= 0 && static_cast<std::size_t>(feature[at]) < codes.n_features &&
                  bin[at] >= 0,
              "a split on an unknown feature");
      const bool by_set = child != 0 && codes.has_levels(static_cast<std::size_t>(feature[at]));
      require(set[at] == (by_set ? n_sets++ : -1), "sets that do not fit the splits of categories");
    }
  }
  require(sets.size() == static_cast<std::size_t>(n_sets), "level sets that belong to no split");
}

// Reserves once: growth by doubling would copy all nodes, and fresh memory is slow.
void GrownTrees::make_room(std::size_t n) {
  const std::size_t used = feature.size(), needed = used + n;
  if (needed <= feature.capacity() || expected <= n_trees() + 1) return;
  constexpr double margin = 1.05;
  const double mean = static_cast<double>(needed) / static_cast<double>(n_trees() + 1);
  const auto size = static_cast<std::size_t>(mean * static_cast<double>(expected) * margin);
  feature.reserve(size);
  bin.reserve(size);
  left.reserve(size);
  default_left.reserve(size);
  set.reserve(size);
  value.reserve(size * width);
  gain.reserve(size);
  cover.reserve(size);
}

void GrownTrees::drop_last() {
  const std::size_t start = first(n_trees() - 1);
  const auto own_sets = std::count_if(set.begin() + static_cast<std::ptrdiff_t>(start), set.end(),
                                      [](std::int32_t which) { return which >= 0; });
  keep(n_trees() - 1, sets.size() - static_cast<std::size_t>(own_sets));
}

void GrownTrees::keep(std::size_t n_trees, std::size_t n_sets) {
  tree_start.resize(n_trees + 1);
  sets.resize(n_sets);
  const std::size_t start = first(n_trees);
  feature.resize(start);
  bin.resize(start);
  left.resize(start);
  default_left.resize(start);
  set.resize(start);
  value.resize(start * width);
  gain.resize(start);
  cover.resize(start);
}

namespace {

// Nodes on sparse features, with the codes of a range of rows expanded at a time.
class SparseNodes {
 public:
  SparseNodes(const Codes& codes, const std::vector<WalkNode>& nodes)
      : codes_(codes), nodes_(nodes) {}

  void add(std::size_t node, std::uint32_t feature) { of_.push_back({node, feature}); }
  bool empty() const { return of_.empty(); }

  // The leaves of rows [begin, end), in pieces of nearby table rows.
  void walk(WalkArgs args, std::size_t begin, std::size_t end, std::uint32_t* leaves) const {
    std::vector<WalkNode> nodes = nodes_;
    args.nodes = nodes.data();
    std::vector<std::uint8_t> codes;
    for (std::size_t first = begin, last; first < end; first = last) {
      const std::size_t row = args.rows.row(first);
      for (last = first + 1; last < end && args.rows.row(last) - row < most_rows;) ++last;
      const std::size_t n_rows = args.rows.row(last - 1) - row + std::size_t{1};
      codes_.width == 1 ? expand<std::uint8_t>(row, n_rows, codes, nodes)
                        : expand<std::uint16_t>(row, n_rows, codes, nodes);
      grow_kernels().walk(args, first, last, leaves + (first - begin));
    }
  }

 private:
  static constexpr std::size_t most_rows = 32768;

  template <class Code>
  void expand(std::size_t row, std::size_t n_rows, std::vector<std::uint8_t>& codes,
              std::vector<WalkNode>& nodes) const {
    const std::size_t bytes = n_rows * sizeof(Code);
    codes.resize(std::max(codes.size(), of_.size() * bytes));
    for (std::size_t i = 0; i < of_.size(); ++i) {
      std::uint8_t* column = codes.data() + i * bytes;
      read_sparse(codes_, of_[i].feature, row, row + n_rows, reinterpret_cast<Code*>(column));
      WalkNode& node = nodes[of_[i].node];
      node.column = column - row * sizeof(Code);  // where row 0 would be
      if (nodes_[node.left].left == node.left) nodes[node.left].column = node.column;
      if (nodes_[node.left + 1].left == node.left + 1) nodes[node.left + 1].column = node.column;
    }
  }

  struct Of {
    std::size_t node;
    std::uint32_t feature;
  };
  const Codes& codes_;
  const std::vector<WalkNode>& nodes_;
  std::vector<Of> of_;
};

// Program and columns of a tree whose rows walk together.
struct Together {
  explicit Together(const std::vector<WalkNode>& nodes) {
    const ProgramMaker maker(
        nodes.size(), [&](std::size_t i) { return nodes[i].left == i ? 0 : nodes[i].left; },
        [](std::size_t i) { return static_cast<std::uint32_t>((i + 1) * bit_words); });
    program = maker.add(steps, leaves);
    program.steps = steps.data();
    for (const WalkNode& node : nodes)
      if (node.column != nullptr) columns.push_back(node.column);  // null: sparse
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  }
  Together(const Together&) = delete;

  std::vector<std::uint32_t> steps, leaves;
  std::vector<const std::uint8_t*> columns;
  BitProgram program;
};

}  // namespace

void GrownTrees::walk(std::size_t tree, const Codes& codes, const TreeRows& rows, Team& team,
                      UseLeaves use) const {
  codes.fetch();
  const std::size_t start = first(tree), n = n_nodes(tree);
  std::vector<WalkNode> nodes(n);
  std::vector<CodeSet> stored;
  std::vector<int> depth(n, 0);
  SparseNodes sparse(codes, nodes);
  int deepest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto f = static_cast<std::uint32_t>(feature[start + i]);
    const auto child = static_cast<std::uint32_t>(left[start + i]);
    deepest = std::max(deepest, depth[i]);
    if (child == 0) {  // a leaf: every code goes left, to the leaf itself
      nodes[i] = {nodes[i].column, no_code, no_code, static_cast<std::uint32_t>(i), no_set};
      continue;
    }
    depth[child] = depth[child + 1] = depth[i] + 1;
    const SplitRule rule = rule_of(
        codes, f,
        {.bin = static_cast<std::uint32_t>(bin[start + i]),
         .missing_left = default_left[start + i] != 0 && codes.has_missing[f] != 0,
         .levels = set[start + i] < 0 ? nullptr : &sets[static_cast<std::size_t>(set[start + i])]});
    if (rule.by_set) stored.push_back(rule.left);
    const auto own = rule.by_set ? static_cast<std::uint32_t>(stored.size() - 1) : no_set;
    const Place& place = codes.where[f];
    const bool is_sparse = place.storage == Storage::sparse;
    const std::uint8_t* column = is_sparse ? nullptr : codes.column_bytes(place.store);
    nodes[i] = {column, rule.bin, rule.missing_left, child, own};
    // Leaves read a code, too, that of their parent.
    nodes[child].column = nodes[child + 1].column = column;
    if (is_sparse) sparse.add(i, f);
  }
  const bool all_walk =
      codes.width == 1 && rows.is_all() && rows.n >= fewest_together && n < 2 * most_bit_leaves;
  std::optional<Together> together;
  if (all_walk) together.emplace(nodes);
  const WalkArgs args{.width = codes.width,
                      .rows = rows,
                      .nodes = nodes.data(),
                      .n_nodes = n,
                      .sets = stored.empty() ? nullptr : stored.data(),
                      .depth = deepest,
                      .program = all_walk ? &together->program : nullptr,
                      .leaves = all_walk ? together->leaves.data() : nullptr,
                      .columns = all_walk ? together->columns.data() : nullptr,
                      .n_columns = all_walk ? together->columns.size() : 0};
  team.for_chunks(0, rows.n, chunk_rows, [&](std::size_t begin, std::size_t end, int) {
    Buffer<std::uint32_t> leaves(end - begin);
    if (sparse.empty())
      grow_kernels().walk(args, begin, end, leaves.data());
    else
      sparse.walk(args, begin, end, leaves.data());
    use(begin, end, leaves.data());
  });
}

void GrownTrees::add(std::size_t tree, const Codes& codes, const TreeRows& rows, double factor,
                     ScoreRows scores, Team& team) const {
  std::vector<double> scaled(values(tree), values(tree) + n_nodes(tree) * width);
  for (double& v : scaled) v *= factor;
  walk(tree, codes, rows, team,
       [&](std::size_t begin, std::size_t end, const std::uint32_t* leaves) {
         for (std::size_t i = begin; i < end; ++i) {
           const double* v = scaled.data() + leaves[i - begin] * width;
           double* score = scores.scores + i * scores.stride;
           for (std::size_t k = 0; k < width; ++k) score[k] += v[k];
         }
       });
}

void GrownTrees::set_values(std::size_t tree, std::span<const double> new_values,
                            std::span<const std::int8_t> monotone) {
  const std::size_t start = first(tree), n = n_nodes(tree);
  double* v = values(tree);
  std::copy(new_values.begin(), new_values.end(), v);
  if (monotone.empty()) return;
  // Nodes below node i, in order: a subtree is closed under children, which come after parents.
  const auto leaves_below = [&](std::size_t root) {
    std::vector<std::size_t> open{root}, leaves;
    while (!open.empty()) {
      const std::size_t i = open.back();
      open.pop_back();
      const auto child = static_cast<std::size_t>(left[start + i]);
      if (child == 0)
        leaves.push_back(i);
      else
        open.insert(open.end(), {child, child + 1});
    }
    return leaves;
  };
  // From the root down: changes below a split stay within that subtree's range of values, so they
  // preserve the order established above.
  for (std::size_t i = 0; i < n; ++i) {
    const auto child = static_cast<std::size_t>(left[start + i]);
    const int direction = monotone[static_cast<std::size_t>(feature[start + i])];
    if (child == 0 || direction == 0) continue;
    const auto low = leaves_below(direction > 0 ? child : child + 1);
    const auto high = leaves_below(direction > 0 ? child + 1 : child);
    double most = v[low.front()], least = v[high.front()];
    for (const std::size_t leaf : low) most = std::max(most, v[leaf]);
    for (const std::size_t leaf : high) least = std::min(least, v[leaf]);
    if (most <= least) continue;
    const double middle = least + (most - least) / 2;
    for (const std::size_t leaf : low) v[leaf] = std::min(v[leaf], middle);
    for (const std::size_t leaf : high) v[leaf] = std::max(v[leaf], middle);
  }
}

}  // namespace arboost
