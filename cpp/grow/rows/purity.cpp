// Cost: one pass over the node's rows, up to the first that differs.
#include "grow/rows/purity.h"

#include <cstdlib>

namespace arboost {
namespace {

// Compares -g / h within rounding: each number was rounded by up to 1/2, which bounds the error of
// a.g b.h - b.g a.h.
bool is_same_value(const FixedPair& a, const FixedPair& b) {
  const std::int64_t difference = std::int64_t{a.g} * b.h - std::int64_t{b.g} * a.h;
  const std::int64_t sizes =
      std::int64_t{a.h} + b.h + std::abs(std::int64_t{a.g}) + std::abs(std::int64_t{b.g});
  return std::abs(difference) <= sizes / 2 + 1;
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
  const auto weighs = [&](std::size_t i) {
    const FixedPair* pairs = pairs_of(elements[i]);
    for (std::size_t k = 0; k < width_; ++k)
      if (pairs[k * output_stride_].h != 0) return true;
    return false;
  };
  std::size_t first = 0;
  while (first < n && !weighs(first)) ++first;
  if (first == n) return true;
  const FixedPair* like = pairs_of(elements[first]);
  for (std::size_t i = first + 1; i < n; ++i) {
    const FixedPair* pairs = pairs_of(elements[i]);
    for (std::size_t k = 0; k < width_; ++k)
      if (!is_same_value(like[k * output_stride_], pairs[k * output_stride_])) return false;
  }
  return true;
}

}  // namespace arboost
