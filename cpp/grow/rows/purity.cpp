// Cost: one pass over the node's rows, up to the first that differs from those before it.
#include "grow/rows/purity.h"

namespace arboost {

Purity::Purity(std::size_t n_table_rows, std::span<const RowId> table_rows) {
  if (table_rows.empty()) return;
  position_.resize(n_table_rows);
  for (std::size_t i = 0; i < table_rows.size(); ++i)
    position_[table_rows[i]] = static_cast<std::uint32_t>(i);
}

void Purity::start_tree(const Gradients& gradients, std::size_t output, std::size_t width,
                        std::int32_t tolerance) {
  pairs_ = gradients.pairs.data() + output * gradients.output_stride();
  row_stride_ = gradients.row_stride();
  output_stride_ = gradients.output_stride();
  width_ = width;
  tolerance_ = tolerance;
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
  for (std::size_t i = 0; i < n && !bounds.is_empty(); ++i)
    bounds.narrow(bounds_of(pairs_of(elements[i])[output * output_stride_], tolerance_));
  return bounds;
}

}  // namespace arboost
