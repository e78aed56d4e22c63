// Sparse columns -> distinct values with weights. The cost depends on the stored values, not on all
// rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bin/edges/keys.h"
#include "table/columns.h"

namespace arboost {

// Row of the table -> row of the fit, which uses all rows of the table or those of an index.
class RowNumbers {
 public:
  static constexpr std::uint32_t nowhere = ~std::uint32_t{0};

  RowNumbers(const Columns& table, const Rows& rows);
  std::uint32_t of(RowId row) const { return numbers_.empty() ? row : numbers_[row]; }

 private:
  std::vector<std::uint32_t> numbers_;
};

// Sampled rows and their weights, for sparse columns.
class ThinSampler {
 public:
  // `places`: rows of the fit, ascending, that are in the sample; empty: all. `weights`: of all
  // rows of the fit; empty: all weights are equal.
  ThinSampler(const Columns& table, const Rows& rows, std::span<const std::uint32_t> places,
              std::span<const std::int64_t> weights);

  struct Scratch {
    std::vector<Placed<std::uint64_t>> items, spare;
  };

  // Distinct values of the sample, ascending, and running sums of their weights.
  void run(const Column& column, Scratch& scratch, std::vector<double>& values,
           std::vector<double>& sums) const;

  // Distinct values of all rows of the fit, ascending; false where there are more than `most`.
  bool find_values(const Column& column, std::size_t most, std::vector<double>& values) const;

 private:
  template <class Use>
  void each_stored(const Column& column, Use use) const;

  RowNumbers numbers_;
  std::span<const std::int64_t> weights_;
  std::size_t n_rows_, sample_size_;
  std::int64_t sample_weight_ = 0;
  std::vector<std::uint8_t> in_sample_;  // by row of the fit; empty: all are
};

}  // namespace arboost
