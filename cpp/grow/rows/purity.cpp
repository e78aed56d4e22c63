// Cost: one pass over the node's rows, up to the first that differs from those before it.
#include "grow/rows/purity.h"

#include <algorithm>

namespace arboost {
namespace {

// The ratios g / h that a pair may stand for: each number was rounded by up to 1/2. The ends are
// fractions of integers below 2^32, so that products of two fit 64 bits.
ValueBounds bounds_of(const FixedPair& pair) {
  const std::int64_t g = pair.g, h = pair.h;
  return {{2 * g - 1, 2 * h + (g > 0 ? 1 : -1)}, {2 * g + 1, 2 * h + (g < 0 ? 1 : -1)}};
}

bool is_below(const std::int64_t (&a)[2], const std::int64_t (&b)[2]) {
  return a[0] * b[1] < b[0] * a[1];
}

}  // namespace

void ValueBounds::narrow(const ValueBounds& other) {
  if (other.lower[1] == 0) return;
  if (lower[1] == 0) {
    *this = other;
    return;
  }
  if (is_below(lower, other.lower)) std::copy_n(other.lower, 2, lower);
  if (is_below(other.upper, upper)) std::copy_n(other.upper, 2, upper);
}

bool ValueBounds::is_empty() const {
  return lower[1] != 0 && is_below(upper, lower);
}

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
    if (bounds(elements, n, k).is_empty()) return false;
  return true;
}

ValueBounds Purity::bounds(const Element* elements, std::size_t n, std::size_t output) const {
  ValueBounds bounds;
  for (std::size_t i = 0; i < n && !bounds.is_empty(); ++i) {
    const FixedPair& pair = pairs_of(elements[i])[output * output_stride_];
    if (pair.h != 0) bounds.narrow(bounds_of(pair));
  }
  return bounds;
}

}  // namespace arboost
