// Partitions of nodes. About 1 ns a row; parallel for large nodes.
#include "grow/rows/row_partition.h"

#include <algorithm>
#include <atomic>
#include <bit>  // bit_width
#include <cstring>
#include <limits>

#include "grow/search/node_score.h"

namespace arboost {
namespace {

constexpr std::size_t chunk_rows = 4096;

}  // namespace

RowPartition::RowPartition(const Codes& codes, std::span<const RowId> table_rows,
                           std::size_t outputs, bool wide, int sum_bits, Workspace& workspace,
                           Collective& workers)
    : codes_(codes),
      table_rows_(table_rows.begin(), table_rows.end()),
      n_training_(table_rows.empty() ? codes.n_rows : table_rows.size()),
      sums_{nullptr, static_cast<int>(outputs), false},
      always_wide_(wide),
      sum_bits_(sum_bits),
      space_(workspace),
      workers_(workers) {}

void RowPartition::make_marks(std::size_t n_members) {
  space_.marks.resize(std::max(space_.marks.size(), n_members));
  for (auto& marks : space_.marks) {
    if (marks.size() >= codes_.n_rows) continue;
    marks = Buffer<std::uint8_t>(codes_.n_rows);
    std::memset(marks.data(), 0, marks.size());
  }
}

void RowPartition::read_values(const Element* e, std::size_t n, std::int64_t* values) const {
  const auto narrow = [](Element element) {
    const auto pair = static_cast<std::int32_t>(element >> 32);
    return pack(pair >> 16, pair & 0xffff);
  };
  if (sums_.channels() == 1 && sums_.wide == nullptr)
    return grow_kernels().read_narrow(e, n, values);
  if (sums_.channels() == 1) {
    for (std::size_t i = 0; i < n; ++i) values[i] = sums_.wide[row_of(e[i])];
    return;
  }
  const auto outputs = static_cast<std::size_t>(sums_.outputs);
  for (std::size_t i = 0; i < n; ++i) {
    if (sums_.wide == nullptr)
      *values++ = narrow(e[i]);
    else
      for (std::size_t k = 0; k < outputs; ++k) *values++ = sums_.wide[row_of(e[i]) * outputs + k];
    if (sums_.counted) *values++ = 1;
  }
}

std::pair<std::int64_t, std::int64_t> RowPartition::hessian_range(const Element* elements,
                                                                  std::size_t n) const {
  if (sums_.wide == nullptr) {
    std::int32_t low = 0xffff, high = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const auto h = static_cast<std::int32_t>(elements[i] >> 32 & 0xffff);
      low = h < low ? h : low;
      high = h > high ? h : high;
    }
    return {low, high};
  }
  std::int64_t low = std::numeric_limits<std::int64_t>::max(), high = 0;
  const auto outputs = static_cast<std::size_t>(sums_.outputs);
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t h = sum_of_h(sums_.wide + row_of(elements[i]) * outputs, outputs);
    low = std::min(low, h);
    high = std::max(high, h);
  }
  return {low, high};
}

// A split on a sparse feature as a column of bytes: 1 for rows on the other side than the usual
// code. Lives during the split of one node; marks are cleared one by one.
class RowPartition::Marks {
 public:
  Marks(const Codes& codes, std::size_t feature, const SplitRule& rule, const Element* elements,
        std::size_t n, std::uint8_t* marks)
      : Marks(marks) {  // constructed from here on: an exception below clears the marks
    const FeatureStorage& storage = codes.where[feature];
    const SparseCodes& sparse = codes.sparse;
    const bool usual_left = goes_left(rule, storage.usual);
    const RowId* begin = sparse.rows.data() + sparse.start[storage.store];
    const RowId* end = sparse.rows.data() + sparse.start[storage.store + std::size_t{1}];
    const auto mark = [&](const RowId* row) {
      const auto k = static_cast<std::size_t>(row - sparse.rows.data());
      const std::uint32_t code =
          codes.width == 1 ? sparse.codes[k]
                           : reinterpret_cast<const std::uint16_t*>(sparse.codes.data())[k];
      if (goes_left(rule, code) == usual_left) return;
      marked_.push_back(*row);
      marks_[*row] = 1;
    };
    // Few rows: search each in the column.
    const auto size = static_cast<std::size_t>(end - begin);
    if (size <= n * static_cast<std::size_t>(std::bit_width(size))) {
      for (const RowId* row = begin; row < end; ++row) mark(row);
    } else {
      for (std::size_t i = 0; i < n; ++i) {
        const RowId* row = std::lower_bound(begin, end, row_of(elements[i]));
        if (row < end && *row == row_of(elements[i])) mark(row);
      }
    }
    rule_ = {0, no_code, true, {}};
    put(rule_.left, usual_left ? 0 : 1, true);
  }
  ~Marks() {
    for (const RowId row : marked_) marks_[row] = 0;
  }
  Marks(const Marks&) = delete;
  Marks& operator=(const Marks&) = delete;

  const SplitRule& rule() const { return rule_; }

 private:
  explicit Marks(std::uint8_t* marks) : marks_(marks) {}

  std::uint8_t* marks_;
  std::vector<RowId> marked_;
  SplitRule rule_{};
};

SplitRule RowPartition::rule(const GrowNode& node) const {
  return rule_of(codes_, static_cast<std::size_t>(node.feature),
                 {.bin = node.split.bin,
                  .missing_left = node.split.missing_left,
                  .levels = node.split.by_set ? &node.split.left : nullptr});
}

template <class Use>
auto RowPartition::with_column(const GrowNode& node, const SplitRule& rule, const Element* e,
                               std::size_t n, const ColumnCodes& codes, int member, Use use) {
  const auto feature = static_cast<std::size_t>(node.feature);
  if (codes_.where[feature].kind != Storage::sparse) return use(codes, rule);
  std::uint8_t* marks = space_.marks[static_cast<std::size_t>(member)].data();
  const Marks column(codes_, feature, rule, e, n, marks);
  return use(ColumnCodes{marks, 1, 1}, column.rule());
}

std::size_t RowPartition::split(const GrowNode& node, int member, Team& team) {
  const std::size_t n = node.n_rows();
  const ColumnCodes codes =
      column_of(codes_.where[static_cast<std::size_t>(node.feature)].store, n);
  return with_column(node, rule(node), elements(node), n, codes, member,
                     [&](const ColumnCodes& column, const SplitRule& column_rule) {
                       return split_by(column, column_rule, node, member, team);
                     });
}

void RowPartition::split_stretch(const GrowNode& node, const SplitRule& rule,
                                 const Stretches::Range& range, const RowWindow& window,
                                 int member) {
  const std::size_t n = range.size();
  const std::uint32_t store = codes_.where[static_cast<std::size_t>(node.feature)].store;
  const ColumnCodes codes = codes_.stored_rows ? codes_.codes_in_rows(store, window.row_zero)
                                               : codes_.column_codes(store);
  Element* from = space_.elements[0].data() + range.begin;
  Element* buffer = space_.buffers[static_cast<std::size_t>(member)].data();
  const std::size_t n_left = with_column(
      node, rule, from, n, codes, member,
      [&](const ColumnCodes& column, const SplitRule& column_rule) {
        return grow_kernels().partition(column, column_rule, from, n, buffer, buffer + n);
      });
  std::memcpy(from, buffer, n * sizeof(Element));
  stretches_->divide(node, stretches_->number_of(node, range), n_left);
}

// The codes to split a node of n rows by. Few rows are on a cache line each, in either order; the
// lines of the row-major order then serve the histogram of a child.
ColumnCodes RowPartition::column_of(std::size_t store, std::size_t n) const {
  constexpr std::size_t scattered = 128, short_row = 128;
  const bool in_rows =
      codes_.by_row.size() > 0 && codes_.row_stride <= short_row && n <= codes_.n_rows / scattered;
  return in_rows ? codes_.codes_in_rows(store) : codes_.column_codes(store);
}

std::size_t RowPartition::split_by(const ColumnCodes& column, const SplitRule& rule,
                                   const GrowNode& node, int member, Team& team) {
  const Element* from = elements(node);
  Element* to = space_.elements[1 - node.buffer].data() + node.begin;
  const std::size_t n = node.n_rows();
  if (team.size() == 1 || n < shared_node_rows)
    return grow_kernels().partition(column, rule, from, n, to, to + n);
  // Each chunk is split in a local buffer, then copied to the next free ranges on both sides.
  std::atomic<std::size_t> left{0}, right{n};
  team.for_chunks(member, n, chunk_rows, [&](std::size_t begin, std::size_t end, int) {
    Element local[chunk_rows];
    const std::size_t size = end - begin;
    const std::size_t n_left =
        grow_kernels().partition(column, rule, from + begin, size, local, local + size);
    const std::size_t n_right = size - n_left;
    std::memcpy(to + left.fetch_add(n_left), local, n_left * sizeof(Element));
    std::memcpy(to + right.fetch_sub(n_right) - n_right, local + n_left, n_right * sizeof(Element));
  });
  return left.load();
}

}  // namespace arboost
