// Parallel over rows, with one kernel call for each piece of nearby rows.
#include "grow/trees/tree_walk.h"

#include <algorithm>
#include <cmath>  // log2

#include "base/buffer.h"
#include "bin/codes/sparse_codes.h"

namespace arboost {
namespace {

constexpr std::size_t chunk_rows = 16384, least_chunk = 2048;
constexpr std::size_t rows_together = 512;
constexpr std::size_t fewest_together = 2048;  // rows that pay for the program of a tree
// Cost of a row that walks together with others, for each split, in steps of a row that walks
// alone.
constexpr double split_steps = 0.02;
// Rows whose codes are copied at a time: from a file, or those that span sparse columns.
constexpr std::size_t stored_rows = 4096, sparse_rows = 32768;

}  // namespace

TreeWalk::TreeWalk(const GrownTrees& forest, std::size_t tree, const Codes& codes,
                   const TreeRows& rows)
    : codes_(codes),
      rows_(rows),
      nodes_(forest.n_nodes(tree)),
      stride_(static_cast<std::size_t>(codes.width)),
      source_of_(nodes_.size(), std::uint32_t{in_memory}) {
  const std::size_t start = forest.first(tree);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const auto f = static_cast<std::uint32_t>(forest.feature[start + i]);
    const auto child = static_cast<std::uint32_t>(forest.left[start + i]);
    if (child == 0) {  // a leaf: every code goes left, to the leaf itself
      nodes_[i] = {nodes_[i].column, no_code, no_code, static_cast<std::uint32_t>(i), no_set};
      continue;
    }
    const std::int32_t set = forest.set[start + i];
    const SplitRule rule =
        rule_of(codes, f,
                {.bin = static_cast<std::uint32_t>(forest.bin[start + i]),
                 .missing_left = forest.default_left[start + i] != 0 && codes.has_missing[f] != 0,
                 .levels = set < 0 ? nullptr : &forest.sets[static_cast<std::size_t>(set)]});
    if (rule.by_set) sets_.push_back(rule.left);
    const auto set_number = rule.by_set ? static_cast<std::uint32_t>(sets_.size() - 1) : no_set;
    nodes_[i] = {nullptr, rule.bin, rule.missing_left, child, set_number};
    add_column(i, f);
    splits_.push_back(static_cast<std::uint32_t>(i));
    // Leaves read a code, too, that of their parent.
    nodes_[child].column = nodes_[child + 1].column = nodes_[i].column;
    source_of_[child] = source_of_[child + 1] = source_of_[i];
  }
  make_program(forest.feature.data() + start);
}

void TreeWalk::add_column(std::size_t node, std::uint32_t feature) {
  const FeatureStorage& storage = codes_.where[feature];
  const bool is_sparse = storage.kind == Storage::sparse;
  source_of_[node] = in_memory;
  if (!is_sparse && !codes_.stored_rows) {
    nodes_[node].column = codes_.column_bytes(storage.store);
    return;
  }
  const std::uint32_t source = is_sparse ? feature : storage.store;
  const auto entry = std::find(sources_.begin(), sources_.end(), source);
  source_of_[node] = static_cast<std::uint32_t>(entry - sources_.begin());
  if (entry == sources_.end()) sources_.push_back(source);
}

// Whether to walk all rows of the table between the first and the last one together, or each row
// alone.
bool TreeWalk::pays_together() const {
  if (codes_.width != 1 || rows_.n < fewest_together || nodes_.size() >= 2 * most_bit_leaves)
    return false;
  if (rows_.is_all() || codes_.stored_rows) return true;  // as the kernel sees the rows
  if (!sources_.empty()) return false;
  const TableSpan span = rows_.span();
  const double n_splits = static_cast<double>(nodes_.size() / 2);
  const double alone = static_cast<double>(rows_.n) * (1 + std::log2(n_splits + 1));
  return static_cast<double>(span.end - span.begin) * split_steps * n_splits < alone;
}

// A row that walks alone reads one short row of codes instead of a line of each column.
void TreeWalk::read_by_row() {
  constexpr std::size_t short_row = 64;
  if (!sources_.empty() || codes_.by_row.size() == 0 || codes_.row_stride > short_row) return;
  stride_ = codes_.row_stride;
  for (WalkNode& node : nodes_) {
    if (node.column == nullptr) continue;
    const auto offset = static_cast<std::size_t>(node.column - codes_.by_column.data());
    node.column = codes_.by_row.data() + offset / codes_.n_rows;
  }
}

void TreeWalk::make_program(const std::int32_t* features) {
  if (!pays_together()) return read_by_row();
  std::sort(splits_.begin(), splits_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return features[a] < features[b]; });
  const std::size_t n = nodes_.size();
  const ProgramMaker maker(
      n, [&](std::size_t i) { return nodes_[i].left == i ? 0 : nodes_[i].left; },
      [](std::size_t i) { return static_cast<std::uint32_t>((i + 1) * bit_words); });
  program_ = maker.add(steps_, leaves_);
  program_.steps = steps_.data();
}

void TreeWalk::run(Team& team, GrownTrees::UseLeaves use) const {
  const auto [begin_row, end_row] = codes_.stored_rows ? rows_.span() : TableSpan{0, codes_.n_rows};
  codes_.each_window(begin_row, end_row, [&](const RowWindow& window) {
    const std::size_t first = codes_.stored_rows ? rows_.first_from(window.begin) : 0;
    const std::size_t n = (codes_.stored_rows ? rows_.first_from(window.end) : rows_.n) - first;
    const auto members = static_cast<std::size_t>(team.size());
    const std::size_t share = (n / members + rows_together) / rows_together * rows_together;
    team.for_chunks(0, n, std::clamp(share, least_chunk, chunk_rows),
                    [&](std::size_t begin, std::size_t end, int) {
                      Buffer<std::uint32_t> leaves(end - begin);
                      walk(window, first + begin, first + end, leaves.data());
                      use(first + begin, first + end, leaves.data());
                    });
  });
}

WalkArgs TreeWalk::args_of(const WalkNode* nodes, const TreeRows& rows) const {
  const bool together = !leaves_.empty();
  return {.width = codes_.width,
          .stride = stride_,
          .rows = rows,
          .nodes = nodes,
          .sets = sets_.empty() ? nullptr : sets_.data(),
          .program = together ? &program_ : nullptr,
          .leaves = together ? leaves_.data() : nullptr,
          .splits = splits_.data(),
          .n_splits = splits_.size(),
          .n_table_rows = codes_.n_rows};
}

void TreeWalk::walk(const RowWindow& window, std::size_t begin, std::size_t end,
                    std::uint32_t* leaves) const {
  if (sources_.empty())
    return grow_kernels().walk(args_of(nodes_.data(), rows_), begin, end, leaves);
  codes_.stored_rows ? walk_stored(window, begin, end, leaves) : walk_sparse(begin, end, leaves);
}

// Copied rows are all rows of a small table.
void TreeWalk::walk_stored(const RowWindow& window, std::size_t begin, std::size_t end,
                           std::uint32_t* leaves) const {
  std::vector<WalkNode> nodes = nodes_;
  const auto width = static_cast<std::size_t>(codes_.width);
  std::vector<std::uint8_t> columns(sources_.size() * stored_rows * width);
  for (std::size_t first = begin; first < end; first += stored_rows) {
    const std::size_t n = std::min(stored_rows, end - first);
    width == 1 ? copy_rows<std::uint8_t>(window, first, n, columns.data())
               : copy_rows<std::uint16_t>(window, first, n, columns.data());
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (source_of_[i] != in_memory) nodes[i].column = columns.data() + source_of_[i] * n * width;
    grow_kernels().walk(args_of(nodes.data(), {n, nullptr, nullptr}), 0, n,
                        leaves + (first - begin));
  }
}

template <class Code>
void TreeWalk::copy_rows(const RowWindow& window, std::size_t first, std::size_t n,
                         std::uint8_t* columns) const {
  auto* to = reinterpret_cast<Code*>(columns);
  for (const std::uint32_t store : sources_) {
    const ColumnCodes from = codes_.codes_in_rows(store, window.row_zero);
    for (std::size_t i = 0; i < n; ++i)
      *to++ = *reinterpret_cast<const Code*>(from.first + rows_.row(first + i) * from.stride);
  }
}

// The rows between the first and the last row of a piece are a small table, whose sparse columns
// are copied.
void TreeWalk::walk_sparse(std::size_t begin, std::size_t end, std::uint32_t* leaves) const {
  std::vector<WalkNode> nodes = nodes_;
  std::vector<std::uint8_t> columns;
  std::vector<RowId> piece;
  for (std::size_t first = begin, last; first < end; first = last) {
    const std::size_t row = rows_.row(first);
    for (last = first + 1; last < end && rows_.row(last) - row < sparse_rows;) ++last;
    const std::size_t n_rows = rows_.row(last - 1) - row + std::size_t{1};
    codes_.width == 1 ? expand<std::uint8_t>(row, n_rows, columns, nodes)
                      : expand<std::uint16_t>(row, n_rows, columns, nodes);
    piece.clear();
    for (std::size_t i = first; i < last && n_rows > last - first; ++i)
      piece.push_back(rows_.row(i) - static_cast<RowId>(row));
    const TreeRows piece_rows{last - first, nullptr, piece.empty() ? nullptr : piece.data()};
    grow_kernels().walk(args_of(nodes.data(), piece_rows), 0, last - first,
                        leaves + (first - begin));
  }
}

template <class Code>
void TreeWalk::expand(std::size_t row, std::size_t n_rows, std::vector<std::uint8_t>& columns,
                      std::vector<WalkNode>& nodes) const {
  const std::size_t bytes = n_rows * sizeof(Code);
  columns.resize(std::max(columns.size(), sources_.size() * bytes));
  for (std::size_t s = 0; s < sources_.size(); ++s)
    read_sparse(codes_, sources_[s], row, row + n_rows,
                reinterpret_cast<Code*>(columns.data() + s * bytes));
  for (std::size_t i = 0; i < nodes.size(); ++i)
    nodes[i].column = source_of_[i] == in_memory ? nodes_[i].column + row * sizeof(Code)
                                                 : columns.data() + source_of_[i] * bytes;
}

}  // namespace arboost
