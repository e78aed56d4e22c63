// Gradients -> scaled integers in the elements; partitions of nodes. About 1 ns a row; parallel for
// large nodes.
#include "grow/rows/row_partition.h"

#include <algorithm>
#include <atomic>
#include <bit>  // bit_width
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "base/random.h"  // short_hash
#include "grow/rows/wide_rounding.h"

namespace arboost {
namespace {

constexpr std::size_t chunk_rows = 4096;

// From this many rows on, elements carry pairs of 15 bits. Smaller data stay in the cache, where
// wide pairs cost nothing.
constexpr std::size_t narrow_rows = 32768;

std::int32_t rounded(double x) {
  return static_cast<std::int32_t>(x + (x < 0 ? -0.5 : 0.5));
}

// Number of bits that numbers grow by when multiplied by a factor of at least 1.
int bits_of(float factor) {
  int exponent = 0;
  const float mantissa = std::frexp(factor, &exponent);
  return mantissa == 0.5f ? exponent - 1 : exponent;
}

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

void RowPartition::prepare(const Gradients& gradients, std::size_t output, const Sample* sample,
                           std::uint32_t seed, Team& team) {
  for (auto& elements : space_.elements) make_room(elements, n_training_);
  if (codes_.sparse.size() > 0) make_marks(static_cast<std::size_t>(team.size()));
  weights_ = sample == nullptr ? nullptr : sample->weights_or_null();
  rows_ = sample == nullptr ? training_rows()
                            : TreeRows{sample->size, sample->positions.data(), table_rows()};
  is_sample_ = sample != nullptr;
  pairs_ = pairs_of_rows(gradients, output, team);
  add_workers(pairs_);
  const TreePairs& pairs = pairs_;
  const auto n = static_cast<std::int64_t>(all_rows_);
  const int g_shift = shift_for(pairs.sum_abs_g[0], 16), h_shift = shift_for(pairs.sum_h[0], 16);
  const bool narrow = !always_wide_ && sums_.outputs == 1 && all_rows_ >= narrow_rows &&
                      (pairs.sum_abs_g[0] >> g_shift) >= fine_mean_units * n &&
                      (pairs.sum_h[0] >> h_shift) >= fine_mean_units * n;
  if (narrow)
    prepare_narrow(pairs, g_shift, h_shift, seed, team);
  else
    prepare_wide(pairs, seed, team);
}

// The smallest shift, at least `lowest`, after which a sum over the rows of all workers fits
// sum_bits_ even if each number was rounded up.
int RowPartition::shift_for(std::int64_t sum, int lowest) const {
  int shift = lowest;
  while (shift < 30 &&
         (sum >> shift) + static_cast<std::int64_t>(all_rows_) >= (std::int64_t{1} << sum_bits_))
    ++shift;
  return shift;
}

// Sums and numbers of rows, over all workers: the scale of the tree is chosen from them.
void RowPartition::add_workers(TreePairs& pairs) {
  workers_.sum(pairs.sum_abs_g);
  workers_.sum(pairs.sum_h);
  const std::int64_t own[2] = {static_cast<std::int64_t>(n_training_),
                               static_cast<std::int64_t>(rows_.n)};
  all_rows_ = 0;
  first_position_ = 0;
  std::size_t rank = 0;
  for (const std::vector<std::int64_t>& counts : workers_.gather(own)) {
    if (rank++ < workers_.rank()) first_position_ += static_cast<std::uint32_t>(counts[0]);
    all_rows_ += static_cast<std::size_t>(counts[1]);
  }
}

void RowPartition::make_marks(std::size_t n_members) {
  space_.marks.resize(std::max(space_.marks.size(), n_members));
  for (auto& marks : space_.marks) {
    if (marks.size() >= codes_.n_rows) continue;
    marks = Buffer<std::uint8_t>(codes_.n_rows);
    std::memset(marks.data(), 0, marks.size());
  }
}

void RowPartition::use_all(const Gradients& gradients, std::size_t output, Team& team) {
  weights_ = nullptr;
  rows_ = training_rows();
  pairs_ = pairs_of_rows(gradients, output, team);
}

TreePairs RowPartition::pairs_of_rows(const Gradients& gradients, std::size_t output, Team& team) {
  if (rows_.positions != nullptr) return gather(gradients, output, team);
  const auto first = static_cast<std::ptrdiff_t>(output), n = std::ptrdiff_t{sums_.outputs};
  const auto some = [=](const std::vector<std::int64_t>& sums) {
    return std::vector<std::int64_t>(sums.begin() + first, sums.begin() + first + n);
  };
  return {gradients.pairs.data() + output * gradients.output_stride(),
          gradients.row_stride(),
          gradients.output_stride(),
          gradients.g_exponent,
          gradients.h_exponent,
          some(gradients.sum_abs_g),
          some(gradients.sum_h)};
}

// The weighted pairs of the sample, contiguous. Weights could make them larger than 30 bits.
TreePairs RowPartition::gather(const Gradients& gradients, std::size_t output, Team& team) {
  const auto outputs = static_cast<std::size_t>(sums_.outputs);
  make_room(space_.pairs, rows_.n * outputs);
  FixedPair* gathered = space_.pairs.data();
  const FixedPair* from = gradients.pairs.data() + output * gradients.output_stride();
  // As many low bits are lost as the largest weight needs.
  float largest = 1;
  if (weights_ != nullptr && rows_.n > 0) largest = *std::max_element(weights_, weights_ + rows_.n);
  std::int64_t drop_of_all = bits_of(largest);
  workers_.max({&drop_of_all, 1});
  const int drop = static_cast<int>(drop_of_all);
  const double factor = std::ldexp(1.0, -drop);
  TreePairs pairs{gathered,
                  outputs,
                  1,
                  gradients.g_exponent - drop,
                  gradients.h_exponent - drop,
                  std::vector<std::int64_t>(outputs, 0),
                  std::vector<std::int64_t>(outputs, 0)};
  std::mutex mutex;
  team.for_chunks(0, rows_.n, 4 * chunk_rows, [&](std::size_t begin, std::size_t end, int) {
    std::vector<std::int64_t> own_g(outputs, 0), own_h(outputs, 0);
    for (std::size_t i = begin; i < end; ++i) {
      const double scale = weights_ == nullptr ? 1.0 : double{weights_[i]} * factor;
      const FixedPair* row = from + rows_.position(i) * gradients.row_stride();
      for (std::size_t k = 0; k < outputs; ++k) {
        const FixedPair pair = row[k * gradients.output_stride()];
        const FixedPair scaled{rounded(pair.g * scale), rounded(pair.h * scale)};
        gathered[i * outputs + k] = scaled;
        own_g[k] += std::abs(scaled.g);
        own_h[k] += scaled.h;
      }
    }
    std::lock_guard lock(mutex);
    for (std::size_t k = 0; k < outputs; ++k) {
      pairs.sum_abs_g[k] += own_g[k];
      pairs.sum_h[k] += own_h[k];
    }
  });
  return pairs;
}

void RowPartition::prepare_narrow(const TreePairs& pairs, int g_shift, int h_shift,
                                  std::uint32_t seed, Team& team) {
  const NarrowArgs args{pairs.pairs, rows_, g_shift, h_shift, seed, first_position_};
  team.for_chunks(0, rows_.n, 4 * chunk_rows, [&](std::size_t begin, std::size_t end, int) {
    grow_kernels().quantise_narrow(args, begin, end, space_.elements[0].data());
  });
  sums_.wide = nullptr;
  set_scale(pairs, g_shift, h_shift);
}

void RowPartition::prepare_wide(const TreePairs& pairs, std::uint32_t seed, Team& team) {
  const auto outputs = static_cast<std::size_t>(sums_.outputs);
  const auto rounding_of = [&](const std::vector<std::int64_t>& sums) {
    const std::int64_t largest = *std::max_element(sums.begin(), sums.end());
    return WideRounding(largest, all_rows_, shift_for(largest, 0));
  };
  const WideRounding g_rounding = rounding_of(pairs.sum_abs_g);
  const WideRounding h_rounding = rounding_of(pairs.sum_h);
  const bool stochastic = g_rounding.stochastic() || h_rounding.stochastic();
  make_room(space_.wide, codes_.n_rows * outputs);
  team.for_chunks(0, rows_.n, 4 * chunk_rows, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) {
      const RowId row = rows_.row(i);
      space_.elements[0][i] = row;
      for (std::size_t k = 0; k < outputs; ++k) {
        const FixedPair pair = pairs.at(i, k);
        const std::uint32_t random = stochastic ? short_hash(first_position_ + rows_.position(i),
                                                             seed + static_cast<std::uint32_t>(k))
                                                : 0;
        space_.wide[row * outputs + k] =
            pack(g_rounding(pair.g, random & 0xffff), h_rounding(pair.h, random >> 16));
      }
    }
  });
  sums_.wide = space_.wide.data();
  set_scale(pairs, g_rounding.shift(), h_rounding.shift());
}

std::pair<std::int64_t, std::int64_t> RowPartition::hessian_range(std::size_t begin,
                                                                  std::size_t end) const {
  const Element* e = space_.elements[0].data();
  if (sums_.wide == nullptr) {
    std::int32_t low = 0xffff, high = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const auto h = static_cast<std::int32_t>(e[i] >> 32 & 0xffff);
      low = h < low ? h : low;
      high = h > high ? h : high;
    }
    return {low, high};
  }
  std::int64_t low = std::numeric_limits<std::int64_t>::max(), high = 0;
  const auto outputs = static_cast<std::size_t>(sums_.outputs);
  for (std::size_t i = begin; i < end; ++i) {
    std::int64_t h = 0;
    for (std::size_t k = 0; k < outputs; ++k) h += sum_h(sums_.wide[row_of(e[i]) * outputs + k]);
    low = std::min(low, h);
    high = std::max(high, h);
  }
  return {low, high};
}

void RowPartition::read_values(const Element* e, std::size_t n, std::int64_t* values) const {
  const auto narrow = [](Element element) {
    const auto pair = static_cast<std::int32_t>(element >> 32);
    return pack(pair >> 16, pair & 0xffff);
  };
  if (sums_.channels() == 1) {
    for (std::size_t i = 0; i < n; ++i)
      values[i] = sums_.wide == nullptr ? narrow(e[i]) : sums_.wide[row_of(e[i])];
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

void RowPartition::set_scale(const TreePairs& pairs, int g_shift, int h_shift) {
  g_shift_ = g_shift;
  h_shift_ = h_shift;
  g_scale_ = std::ldexp(1.0, g_shift - pairs.g_exponent);
  h_scale_ = std::ldexp(1.0, h_shift - pairs.h_exponent);
}

TreeScale RowPartition::scale() const {
  double weight = 0;
  for (const std::int64_t h : pairs_.sum_h)
    weight +=
        std::ldexp(static_cast<double>(h), -pairs_.h_exponent) / static_cast<double>(sums_.outputs);
  return {.g_unit = g_scale_,
          .h_unit = h_scale_,
          .weight = weight,
          .n_rows = all_rows_,
          .counted = sums_.counted,
          .least_h = 1};
}

bool RowPartition::values_are_exact(const Gradients& gradients, std::size_t output) const {
  // Also before the weights of a sample took their bits.
  const int drop = gradients.g_exponent - pairs_.g_exponent;
  const FixedPair* unweighted = gradients.pairs.data() + output * gradients.output_stride();
  std::int32_t g_bits = 0, h_bits = 0, all_g_bits = 0, all_h_bits = 0;
  for (std::size_t i = 0; i < rows_.n; ++i)
    for (std::size_t k = 0; k < static_cast<std::size_t>(sums_.outputs); ++k) {
      const FixedPair& from =
          unweighted[rows_.position(i) * gradients.row_stride() + k * gradients.output_stride()];
      g_bits |= pairs_.at(i, k).g;
      h_bits |= pairs_.at(i, k).h;
      all_g_bits |= from.g;
      all_h_bits |= from.h;
    }
  constexpr int coarse = 16;
  const auto lost = [](std::int64_t bits, int shift) {
    return bits & ((std::int64_t{1} << shift) - 1);
  };
  const int g_shift = std::max(g_shift_, coarse), h_shift = std::max(h_shift_, coarse);
  return lost(g_bits, g_shift) == 0 && lost(h_bits, h_shift) == 0 &&
         lost(all_g_bits, g_shift + drop) == 0 && lost(all_h_bits, h_shift + drop) == 0;
}

bool RowPartition::any_empty(const GrowNode& node) const {
  if (sums_.counted) return false;
  const Element* e = elements(node);
  const auto outputs = static_cast<std::size_t>(sums_.outputs);
  bool any = false;
  for (std::size_t i = 0; i < node.n_rows(); ++i) {
    std::uint64_t h = sums_.wide == nullptr ? e[i] >> 32 & 0xffff : 0;
    if (sums_.wide != nullptr)
      for (std::size_t k = 0; k < outputs; ++k)
        h |= static_cast<std::uint32_t>(sum_h(sums_.wide[row_of(e[i]) * outputs + k]));
    any |= h == 0;
  }
  return any;
}

// A split on a sparse feature as a column of bytes: 1 for rows on the other side than the usual
// code. Lives during the split of one node; marks are cleared one by one.
class RowPartition::Marks {
 public:
  Marks(const Codes& codes, std::size_t feature, const SplitRule& rule, const Element* elements,
        std::size_t n, std::uint8_t* marks)
      : Marks(marks) {  // constructed from here on: an exception below clears the marks
    const Place& place = codes.where[feature];
    const SparseCodes& sparse = codes.sparse;
    const bool usual_left = goes_left(rule, place.usual);
    const RowId* begin = sparse.rows.data() + sparse.start[place.store];
    const RowId* end = sparse.rows.data() + sparse.start[place.store + std::size_t{1}];
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

std::size_t RowPartition::split(const GrowNode& node, int member, Team& team) {
  const auto feature = static_cast<std::size_t>(node.feature);
  const SplitRule rule = rule_of(codes_, feature,
                                 {.bin = node.split.bin,
                                  .missing_left = node.split.missing_left,
                                  .levels = node.split.by_set ? &node.split.left : nullptr});
  const Place& place = codes_.where[feature];
  if (place.storage != Storage::sparse)
    return split_by(column_of(place.store, node.n_rows()), rule, node, member, team);
  std::uint8_t* marks = space_.marks[static_cast<std::size_t>(member)].data();
  const Marks column(codes_, feature, rule, elements(node), node.n_rows(), marks);
  return split_by({marks, 1, 1}, column.rule(), node, member, team);
}

// The codes to split a node of n rows by. Few rows are on a cache line each, in either order; the
// lines of the row-major order then serve the histogram of a child.
ColumnCodes RowPartition::column_of(std::size_t store, std::size_t n) const {
  constexpr std::size_t line = 64, cached_rows = 16384, short_row = 128;
  const bool in_rows = codes_.by_row.size() > 0 && codes_.row_stride <= short_row &&
                       n <= cached_rows && n <= codes_.n_rows / line;
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
