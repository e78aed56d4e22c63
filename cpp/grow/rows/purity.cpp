// Cost: one pass over the node's rows, up to the first that differs from those before it.
#include "grow/rows/purity.h"

#include <algorithm>

namespace arboost {
namespace {

// The ratios g / h that a pair may stand for: each number was rounded by up to 1/2. The ends are
// fractions of integers below 2^32, so that products of two fit 64 bits.
struct Fraction {
  std::int64_t numerator, denominator;  // above 0

  bool operator<(const Fraction& other) const {
    return numerator * other.denominator < other.numerator * denominator;
  }
};

Fraction lower_end(const FixedPair& pair) {
  const std::int64_t g = pair.g, h = pair.h;
  return {2 * g - 1, 2 * h + (g > 0 ? 1 : -1)};
}

Fraction upper_end(const FixedPair& pair) {
  const std::int64_t g = pair.g, h = pair.h;
  return {2 * g + 1, 2 * h + (g < 0 ? 1 : -1)};
}

}  // namespace

Purity::Purity(std::size_t n_table_rows, std::span<const RowId> table_rows) {
  if (table_rows.empty()) return;
  position_.resize(n_table_rows);
  for (std::size_t i = 0; i < table_rows.size(); ++i)
    position_[table_rows[i]] = static_cast<std::uint32_t>(i);
}

void Purity::start_tree(const Gradients& gradients, std::size_t output, std::size_t width) {
  pairs_ = gradients.pairs.data() + output * gradients.output_stride();
  row_stride_ = gradients.row_stride();
  output_stride_ = gradients.output_stride();
  width_ = width;
}

const FixedPair* Purity::pairs_of(Element e) const {
  const RowId row = row_of(e);
  return pairs_ + (position_.empty() ? row : position_[row]) * row_stride_;
}

bool Purity::is_pure(const Element* elements, std::size_t n) const {
  for (std::size_t k = 0; k < width_; ++k)
    if (!is_pure(elements, n, k * output_stride_)) return false;
  return true;
}

bool Purity::is_pure(const Element* elements, std::size_t n, std::size_t output) const {
  std::size_t i = 0;
  while (i < n && pairs_of(elements[i])[output].h == 0) ++i;
  if (i == n) return true;
  const FixedPair& first = pairs_of(elements[i])[output];
  Fraction lower = lower_end(first), upper = upper_end(first);
  for (++i; i < n; ++i) {
    const FixedPair& pair = pairs_of(elements[i])[output];
    if (pair.h == 0) continue;
    lower = std::max(lower, lower_end(pair));
    upper = std::min(upper, upper_end(pair));
    if (upper < lower) return false;
  }
  return true;
}

}  // namespace arboost
