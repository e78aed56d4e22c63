// Rows that come in batches -> edges: a sample of the rows, and the distinct values of columns that
// have few. The edges are those of quantiles() on all rows at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>  // pair
#include <vector>

#include "base/parallel.h"
#include "bin/edges/keys.h"
#include "table/columns.h"

namespace arboost {

// Distinct values of a column, ascending; none where they are more than max_bins.
using Distinct = std::optional<std::vector<double>>;

// Edges of columns of numbers by the sample of a sketch. `places` has the positions of the sampled
// rows among all n_rows, ascending; weights as quantiles() has them.
std::vector<std::vector<double>> sketch_edges(const Columns& sample,
                                              std::span<const std::uint32_t> places,
                                              std::size_t n_rows, std::span<const double> weights,
                                              const std::vector<Distinct>& distinct,
                                              std::size_t max_bins, Team& team);

// Memory: about 200,000 sampled rows, 4 bytes a value where float32 holds it, else 8; and up to a
// quarter more between two batches.
class TableSketch {
 public:
  // A share of the rows: the position of its first row, and the number of all rows. The samples of
  // all shares, one after the other, are the sample of all rows.
  using Share = std::pair<std::size_t, std::size_t>;
  TableSketch(std::size_t n_columns, std::size_t max_bins,
              const std::optional<Share>& share = std::nullopt);

  // The next rows of the fit. Throws std::invalid_argument for another number of columns, and for
  // more rows than there are.
  void push(const Columns& table, const Rows& rows, Team& team);

  // Codes of a column of levels, sampled and distinct ones: code c becomes codes[c], when all
  // levels are known.
  void replace_codes(std::size_t column, std::span<const double> codes);

  // A further column, derived from another one: its values in the sampled rows, missing where the
  // other's are. It has no distinct values.
  void add_column(std::span<const float> values, std::size_t source);

  std::size_t n_rows() const { return n_rows_; }
  std::size_t n_columns() const { return columns_.size(); }

  // Edges of the columns of numbers, none for those of levels, where `is_level` has 1; weights as
  // quantiles() has them.
  std::vector<std::vector<double>> edges(std::span<const double> weights,
                                         const std::vector<std::uint8_t>& is_level, Team& team);

  // Sampled rows as a table that shares their values, and their positions among all rows; after the
  // last batch.
  Columns sample();
  const std::vector<std::uint32_t>& places();
  // Calls use(values) with the sampled values of a column, a vector of float or double.
  template <class Use>
  void visit_values(std::size_t column, const Use& use) {
    finish();
    columns_.at(column).visit([&](const auto& values) { use(*values); });
  }
  Distinct distinct(std::size_t column) const;

  // 1 where a row has a missing value; columns of many values may have more than are seen here.
  std::vector<std::uint8_t> has_missing() const;

 private:
  struct SampledColumn {
    // Narrow while all types of the column fit float32.
    std::shared_ptr<std::vector<float>> narrow = std::make_shared<std::vector<float>>();
    std::shared_ptr<std::vector<double>> wide = std::make_shared<std::vector<double>>();
    bool is_wide = false;
    bool too_many = false;  // distinct values, more than max_bins
    bool any_missing = false;
    KeySet seen;

    template <class Visitor>
    void visit(Visitor&& visitor) {
      is_wide ? visitor(wide) : visitor(narrow);
    }
  };

  void see(const Column& column, const Rows& rows, SampledColumn& sampled) const;
  void keep(const Column& column, std::span<const RowId> rows, SampledColumn& sampled) const;
  static void widen(SampledColumn& sampled);
  void drop_rows(std::uint64_t threshold, Team& team);
  void finish();

  // Rows that the sample is of: those so far, or all rows of a fit of which these are a share.
  std::size_t n_sampled_of() const { return is_share_ ? n_all_ : first_ + n_rows_; }

  std::size_t max_bins_, n_rows_ = 0;
  bool is_share_ = false;
  std::size_t first_ = 0, n_all_ = 0;  // of a share: position of its first row, number of all rows
  std::size_t n_filtered_ = 0;         // number of rows when sampled rows were last dropped
  std::vector<SampledColumn> columns_;
  std::vector<std::uint32_t> places_;  // of the sampled rows
};

}  // namespace arboost
