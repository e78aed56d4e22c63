// What a search reads of a node: rows in the order of each feature's values, a histogram, or the
// codes of few rows. Each search of a node chooses its source once (SplitSearch::with_source).
#pragma once

#include <algorithm>
#include <utility>  // move

#include "grow/split/split_search.h"

namespace arboost {

// The node, and what is open of it; the defaults of the sources.
struct SplitSearch::Source {
  static constexpr bool counts_rows_late = false;  // leaf sizes may be in doubt

  const SplitSearch& in;
  const GrowNode& node;
  const Scratch& opened;

  void make_room(Scratch&) const {}

 protected:
  const std::int64_t* totals() const { return node.sums.data(); }
  Storage kind_of(std::uint32_t feature) const { return in.codes_.where[feature].kind; }
  // Of a feature that has no column to itself.
  const std::int64_t* derived_sums(std::uint32_t feature, Scratch& scratch) const {
    return opened.sums->of(feature, totals(), scratch.buffer);
  }
  FeatureSplit find_in_sums(const GainParams& p, std::uint32_t feature, const std::int64_t* sums,
                            double floor, Scratch& scratch) const {
    return grow_kernels().find_split(p, sums, in.codes_of(feature), totals(), floor, scratch.split);
  }
  // Calls use(code, sums) until it returns false, where the sums are not all zero.
  template <class Use>
  static bool visit(std::uint32_t code, const std::int64_t* sums, std::size_t channels, Use& use) {
    const auto is_zero = [](std::int64_t sum) { return sum == 0; };
    return std::all_of(sums, sums + channels, is_zero) || use(code, sums);
  }
  template <class Use>
  void each_code(std::uint32_t feature, const std::int64_t* sums, std::size_t channels,
                 Use& use) const {
    for (std::uint32_t code = 0; code < in.codes_.n_codes(feature); ++code)
      if (!visit(code, sums + code * channels, channels, use)) return;
  }
  template <class Use>
  void each_element(std::uint32_t feature, Use& use) const;
  std::uint32_t next_code_in(const std::int64_t* sums, std::size_t channels,
                             Scratch& scratch) const;
};

// All values, or candidates for each node: the rows by value, feature by feature.
struct SplitSearch::SortedSource : Source {
  std::size_t cost() const { return node.n_rows(); }
  void open(Scratch&) const {}
  const Element* elements(std::uint32_t feature) const {
    return in.sorted_->elements(feature, node);
  }
  static std::uint32_t code_of(Element e) { return static_cast<std::uint32_t>(e >> 32); }

  FeatureSplit find(const GainParams& p, std::uint32_t feature, double floor,
                    Scratch& scratch) const {
    const SortedRows rows{elements(feature), node.n_rows(), in.codes_.n_bins[feature],
                          in.codes_.has_levels(feature), in.rows_.sums()};
    return grow_kernels().find_split_sorted(p, rows, totals(), floor, scratch.split);
  }
  template <class Use>
  void each_sum(std::uint32_t feature, Scratch& scratch, Use use) const {
    const Element* rows = elements(feature);
    std::vector<std::int64_t>& sums = scratch.buffer;
    sums.assign(in.channels_, 1);  // the last one counts, or is written over
    for (std::size_t i = 0; i < node.n_rows(); ++i) {
      std::copy_n(in.rows_.sums().wide + row_of(rows[i]) * in.width_, in.width_, sums.data());
      if (!visit(code_of(rows[i]), sums.data(), in.channels_, use)) return;
    }
  }
  template <class Use>
  void each_row(std::uint32_t feature, Use use) const {
    const Element* rows = elements(feature);
    for (std::size_t i = 0; i < node.n_rows(); ++i) use(code_of(rows[i]), row_of(rows[i]));
  }
  std::uint32_t next_code(Scratch&) const {
    const Element* rows = elements(static_cast<std::uint32_t>(node.feature));
    return code_of(
        *std::upper_bound(rows, rows + node.n_rows(), Element{node.split.bin} << 32 | 0xffffffff));
  }
};

// Features that share stored columns have sums that are derived from those of the columns.
struct SplitSearch::HistogramSource : Source {
  static constexpr bool counts_rows_late = true;

  std::size_t cost() const { return in.histograms_.slots().n_slots / in.codes_.n_features; }
  void open(Scratch& to) const {
    if (to.sums != nullptr)
      to.sums->open(node.histogram, in.histograms_.slots(), in.histograms_.channels());
  }
  const std::int64_t* sums(std::uint32_t feature, Scratch& scratch) const {
    const std::uint32_t store = in.codes_.where[feature].store;
    return kind_of(feature) == Storage::single
               ? node.histogram + in.histograms_.slots().first[store] * in.histograms_.channels()
               : derived_sums(feature, scratch);
  }
  FeatureSplit find(const GainParams& p, std::uint32_t feature, double floor,
                    Scratch& scratch) const {
    return find_in_sums(p, feature, sums(feature, scratch), floor, scratch);
  }
  template <class Use>
  void each_sum(std::uint32_t feature, Scratch& scratch, Use use) const {
    each_code(feature, sums(feature, scratch), in.histograms_.channels(), use);
  }
  template <class Use>
  void each_row(std::uint32_t feature, Use use) const {
    each_element(feature, use);
  }
  std::uint32_t next_code(Scratch& scratch) const {
    return next_code_in(sums(static_cast<std::uint32_t>(node.feature), scratch),
                        in.histograms_.channels(), scratch);
  }
};

// Below some rows, a pass over them costs less than one over all bins.
struct SplitSearch::FewSource : Source {
  std::size_t cost() const { return node.n_rows(); }
  void open(Scratch& to) const {
    const Element* elements = in.rows_.elements(node);
    to.values.resize(node.n_rows() * in.channels_);
    in.rows_.read_values(elements, node.n_rows(), to.values.data());
    if (to.sums != nullptr)
      to.sums->open(elements, node.n_rows(), to.values.data(), in.rows_.sums());
  }
  void make_room(Scratch& scratch) const {
    if (in.codes_.width == 2) scratch.split.keys.resize(node.n_rows());
  }
  FeatureSplit find(const GainParams& p, std::uint32_t feature, double floor,
                    Scratch& scratch) const {
    const GrowKernels& k = grow_kernels();
    if (kind_of(feature) == Storage::single)
      return k.find_split_small(
          p, in.few_rows(in.rows_.elements(node), node.n_rows(), totals(), opened), feature, floor,
          scratch.split);
    if (kind_of(feature) == Storage::sparse)
      return k.find_split_listed(p, opened.sums->list(feature, totals(), scratch.split),
                                 in.codes_.n_bins[feature], totals(), floor, scratch.split);
    return find_in_sums(p, feature, derived_sums(feature, scratch), floor, scratch);
  }
  template <class Use>
  void each_sum(std::uint32_t feature, Scratch& scratch, Use use) const {
    if (kind_of(feature) != Storage::single)
      return each_code(feature, derived_sums(feature, scratch), in.channels_, use);
    const Element* elements = in.rows_.elements(node);
    const std::size_t store = in.codes_.where[feature].store;
    const auto each = [&](const auto* column) {
      for (std::size_t i = 0; i < node.n_rows(); ++i)
        if (!visit(column[row_of(elements[i])], opened.values.data() + i * in.channels_,
                   in.channels_, use))
          return;
    };
    in.codes_.width == 1 ? each(in.codes_.column<std::uint8_t>(store))
                         : each(in.codes_.column<std::uint16_t>(store));
  }
  template <class Use>
  void each_row(std::uint32_t feature, Use use) const {
    each_element(feature, use);
  }
  std::uint32_t next_code(Scratch& scratch) const {
    if (node.split.next != 0) return node.split.next;  // the search has seen it
    return next_code_in(derived_sums(static_cast<std::uint32_t>(node.feature), scratch),
                        in.channels_, scratch);
  }
};

template <class Use>
auto SplitSearch::with_source(const GrowNode& node, const Scratch& opened, Use use) const {
  if (sorted_ != nullptr) return use(SortedSource{{*this, node, opened}});
  if (node.histogram != nullptr) return use(HistogramSource{{*this, node, opened}});
  return use(FewSource{{*this, node, opened}});
}

// The code of one row in a sparse column.
inline std::uint32_t sparse_code(const Codes& codes, const FeatureStorage& storage, RowId row) {
  const SparseCodes& sparse = codes.sparse;
  const RowId* begin = sparse.rows.data() + sparse.start[storage.store];
  const RowId* end = sparse.rows.data() + sparse.start[storage.store + std::size_t{1}];
  const RowId* at = std::lower_bound(begin, end, row);
  if (at == end || *at != row) return storage.usual;
  const auto k = static_cast<std::size_t>(at - sparse.rows.data());
  return codes.width == 1 ? sparse.codes[k]
                          : reinterpret_cast<const std::uint16_t*>(sparse.codes.data())[k];
}

template <class Use>
void SplitSearch::Source::each_element(std::uint32_t feature, Use& use) const {
  const Codes& codes = in.codes_;
  const Element* elements = in.rows_.elements(node);
  const FeatureStorage& storage = codes.where[feature];
  const auto each = [&](auto code_of) {
    for (std::size_t i = 0; i < node.n_rows(); ++i)
      use(code_of(row_of(elements[i])), row_of(elements[i]));
  };
  const auto* one_byte = codes.column<std::uint8_t>(storage.store);
  const auto* two_bytes = codes.column<std::uint16_t>(storage.store);
  if (storage.kind == Storage::shared)
    each([&](RowId row) { return codes.decode(feature, one_byte[row]); });
  else if (storage.kind == Storage::single && codes.width == 1)
    each([&](RowId row) { return std::uint32_t{one_byte[row]}; });
  else if (storage.kind == Storage::single)
    each([&](RowId row) { return std::uint32_t{two_bytes[row]}; });
  else
    each([&](RowId row) { return sparse_code(codes, storage, row); });
}

// Calls use(code, sums) with nonzero sums [channels] of rows or of codes, each code once or several
// times, until it returns false.
template <class Use>
void SplitSearch::each_sum(const GrowNode& node, std::uint32_t feature, const Scratch& opened,
                           Scratch& scratch, Use use) const {
  with_source(node, opened,
              [&](const auto& source) { source.each_sum(feature, scratch, std::move(use)); });
}

// Calls use(code, row) for each row of the node.
template <class Use>
void SplitSearch::each_row(const GrowNode& node, std::uint32_t feature, const Scratch& opened,
                           Use use) const {
  with_source(node, opened, [&](const auto& source) { source.each_row(feature, std::move(use)); });
}

}  // namespace arboost
