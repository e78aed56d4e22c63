// Bindings of binning: quantiles, encode, Codes, ranks and proposals; and plans, which workers send
// to each other.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <cmath>  // isnan
#include <cstdint>
#include <limits>
#include <new>
#include <stdexcept>
#include <tuple>

#include "base/require.h"
#include "bin/codes/encode.h"
#include "bin/codes/plan.h"
#include "bin/codes/sparse_codes.h"
#include "bin/codes/take.h"
#include "bin/device/device_bins.h"
#include "bin/edges/quantiles.h"
#include "bin/propose.h"
#include "bin/rank.h"
#include "bindings/common.h"
#include "table/columns.h"

namespace arboost::bindings {
namespace {

using Index = Vector<RowId>;
using Doubles = Vector<double>;

// Sums of so large weights stay finite.
constexpr double most_weight = std::numeric_limits<double>::max() / static_cast<double>(most_rows);

template <class Table>
std::vector<Owned<double>> bound_quantiles(const Table& table, const std::optional<Index>& rows,
                                           const std::optional<Doubles>& weights,
                                           std::size_t max_bins, int n_threads) {
  if (max_bins < 2 || max_bins > 65535)
    throw std::invalid_argument("max_bins must be from 2 to 65535.");
  return each_to_numpy(with_rows(table, rows, n_threads, [&](const Rows& used, Team& team) {
    const std::span<const double> w = span_of(weights);
    if (weights && w.size() != used.size())
      throw std::invalid_argument("Quantiles need one weight for each used row.");
    const auto fits = [](double weight) { return weight >= 0 && weight <= most_weight; };
    require(std::all_of(w.begin(), w.end(), fits) &&
                (w.empty() || *std::max_element(w.begin(), w.end()) > 0),
            "The weights of quantiles must be finite and at least 0, and one of them above 0.");
    return quantiles(table, used, w, max_bins, team);
  }));
}

template <class Table>
Edges checked_edges(const Table& table, const std::vector<Doubles>& edges) {
  require(edges.size() == table.columns.size(), "encode needs the edges of every column.");
  Edges spans = spans_of(edges);
  const bool fit = std::all_of(spans.begin(), spans.end(), [](auto column) {
    const auto wrong = [](double a, double b) { return !(a < b); };
    return column.size() < 0xfffffffe && (column.empty() || !std::isnan(column[0])) &&
           std::adjacent_find(column.begin(), column.end(), wrong) == column.end();
  });
  if (!fit) throw std::invalid_argument("Edges must ascend.");
  return spans;
}

// A plan may be made from other rows, but has the features of the table, each once.
void check_plan(const StoragePlan& plan, std::size_t n_features) {
  std::vector<bool> is_seen(n_features);
  const auto see = [&](std::uint32_t feature) {
    require(feature < n_features && !is_seen[feature], "The storage plan is of another table.");
    is_seen[feature] = true;
  };
  for (const DigitPlan& digit : plan.digits)
    for (const Share& share : digit.shares) see(share.feature);
  for (const std::uint32_t feature : plan.sparse) see(feature);
}

// encode(table, ...), by a CUDA device where one is given.
template <class Table, class... Device>
Codes bound_encode(Device... device, const Table& table, const std::optional<Index>& rows,
                   const std::vector<Doubles>& edges, int n_threads,
                   const std::vector<bool>& categorical, const StoragePlan* plan) {
  const Edges spans = checked_edges(table, edges);
  if (plan != nullptr) check_plan(*plan, table.columns.size());
  return with_rows(table, rows, n_threads, [&](const Rows& used, Team& team) {
    const std::vector<std::uint8_t> is_category(categorical.begin(), categorical.end());
    if constexpr (sizeof...(Device) == 0)
      return encode(table, used, spans, is_category, plan, team);
    else
      return cuda::encode_on(device..., table, used, spans, is_category, plan, team);
  });
}

template <class Table>
StoragePlan bound_plan(const Table& table, const std::optional<Index>& rows,
                       const std::vector<Doubles>& edges, int n_threads,
                       const std::vector<bool>& categorical, bool bundling,
                       double max_conflict_rate) {
  const Edges spans = checked_edges(table, edges);
  require(categorical.empty() || categorical.size() == edges.size(),
          "A plan needs an entry of `categorical` for every column.");
  require(max_conflict_rate >= 0 && max_conflict_rate <= 1,
          "max_conflict_rate must be from 0 to 1.");
  return with_rows(table, rows, n_threads, [&](const Rows& used, Team& team) {
    check_row_count(used.size());
    return plan_storage(table, used, spans,
                        {{categorical.begin(), categorical.end()}, bundling, max_conflict_rate},
                        team);
  });
}

// Features of each digit of each stored column that is shared.
std::vector<std::vector<std::vector<std::uint32_t>>> shared_columns(const Codes& codes) {
  std::vector<std::vector<std::vector<std::uint32_t>>> columns;
  std::vector<std::vector<std::uint32_t>> digits(codes.digits.size());
  for (std::uint32_t f = 0; f < codes.n_features; ++f)
    if (codes.where[f].kind == Storage::shared) digits[codes.where[f].digit].push_back(f);
  for (std::size_t d = 0; d < digits.size(); ++d) {
    if (d == 0 || codes.digits[d].store != codes.digits[d - 1].store) columns.emplace_back();
    columns.back().push_back(digits[d]);
  }
  return columns;
}

// Codes of all features, decoded from stored columns.
Owned<std::uint16_t, 2> feature_codes(const Codes& codes) {
  std::vector<std::uint16_t> all(codes.n_rows * codes.n_features);
  std::vector<std::uint16_t> column(codes.n_rows);
  for (std::size_t f = 0; f < codes.n_features; ++f) {
    read_codes(codes, f, column.data());
    for (std::size_t i = 0; i < codes.n_rows; ++i) all[i * codes.n_features + f] = column[i];
  }
  return to_numpy<2>(std::move(all), {codes.n_rows, codes.n_features});
}

Codes bound_take(const Codes& codes, const std::optional<Index>& rows, int n_threads) {
  if (codes.width == 4) throw std::invalid_argument("Ranks are not copied.");
  TreeRows taken{codes.n_rows, nullptr, nullptr};
  if (rows) taken = {rows->size(), nullptr, rows->data()};
  for (std::size_t i = 0; rows && i < taken.n; ++i) {
    require(taken.row(i) < codes.n_rows, "A row outside the table.");
    require(!codes.stored_rows || i == 0 || taken.row(i - 1) < taken.row(i),
            "The rows of a table in a file must ascend.");
  }
  CallTeam team(taken.n * codes.n_features, n_threads);
  return take_rows(codes, taken, team);
}

Owned<std::uint64_t> bound_keys(const Codes& codes) {
  if (codes.width == 4) throw std::invalid_argument("Ranks have no row keys.");
  return to_numpy(without_gil([&] { return row_keys(codes); }));
}

Owned<RowId> bound_mixed(const Vector<std::uint64_t>& keys,
                         const Array<double, nb::ndim<2>>& targets) {
  require(targets.shape(0) == keys.size(), "There are not as many targets as keys.");
  return to_numpy(
      without_gil([&] { return mixed_rows(span_of(keys), span_of(targets), targets.shape(1)); }));
}

void require_memory(const Codes& codes) {
  require(!codes.stored_rows, "The codes are in a file: take() copies rows of them to memory.");
}

using View = nb::ndarray<nb::numpy, nb::ro, nb::ndim<2>>;

// Read-only view of one of the two tables as an array of shape (n_rows, n_stores).
View view_of(nb::handle self, bool by_row) {
  const auto& codes = nb::cast<const Codes&>(self);
  require_memory(codes);
  codes.fetch();
  by_row = by_row && codes.width < 4;  // ranks are kept by column only
  const auto width = static_cast<std::size_t>(codes.width);
  const std::size_t shape[2] = {codes.n_rows, codes.n_stores};
  const auto row_step = static_cast<std::int64_t>(by_row ? codes.row_stride / width : 1);
  const auto column_step = static_cast<std::int64_t>(by_row ? 1 : codes.n_rows);
  const std::int64_t strides[2] = {row_step, column_step};
  const auto dtype = width == 1   ? nb::dtype<std::uint8_t>()
                     : width == 2 ? nb::dtype<std::uint16_t>()
                                  : nb::dtype<std::uint32_t>();
  const auto* data = by_row ? codes.by_row.data() : codes.by_column.data();
  return View(data, 2, shape, self, strides, dtype);
}

// Read-only views of all codes as they are stored.
nb::list arrays_of(nb::handle self) {
  const auto& codes = nb::cast<const Codes&>(self);
  const SparseCodes& sparse = codes.sparse;
  nb::list arrays;
  if (codes.stored_rows) {
    arrays.append(to_numpy(std::vector<std::uint64_t>{codes.stored_rows->checksum()}));
    return arrays;
  }
  arrays.append(nb::cast(view_of(self, false)).attr("T"));
  if (sparse.size() == 0) return arrays;
  const auto add = [&](const auto* data, std::size_t size) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(data)>>;
    arrays.append(nb::ndarray<nb::numpy, const T, nb::ndim<1>>(data, {size}, self));
  };
  add(sparse.features.data(), sparse.features.size());
  add(sparse.start.data(), sparse.start.size());
  add(sparse.rows.data(), sparse.rows.size());
  add(sparse.codes.data(), sparse.codes.size());
  return arrays;
}

// Stages of binning, for one kind of table.
template <class Table>
void bind_stages(nb::module_& m) {
  m.def("quantiles", &bound_quantiles<Table>, "columns"_a, "rows"_a.noconvert().none(),
        "weights"_a.noconvert().none(), "max_bins"_a, "n_threads"_a,
        "Edges of every column, ascending; weights are those of the used rows.");
  m.def("encode", &bound_encode<Table>, "columns"_a, "rows"_a.noconvert().none(), "edges"_a,
        "n_threads"_a, "categorical"_a = std::vector<bool>(), "plan"_a.none() = nb::none(),
        "Codes of every value: the number of edges strictly below it. Values of columns that are "
        "categorical are codes of levels already, with the edges 0.5, 1.5, ...");
  m.def("plan_storage", &bound_plan<Table>, "columns"_a, "rows"_a.noconvert().none(), "edges"_a,
        "n_threads"_a, "categorical"_a, "bundling"_a, "max_conflict_rate"_a,
        "Plan for storing the codes of a table.");
}

// (feature, usual code, number of codes) of each share of each digit; sparse features, rows, rate.
using ShareState = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
using PlanState = std::tuple<std::vector<std::vector<ShareState>>, std::vector<std::uint32_t>,
                             std::size_t, double>;

PlanState plan_state(const StoragePlan& plan) {
  std::vector<std::vector<ShareState>> digits;
  for (const DigitPlan& digit : plan.digits) {
    digits.emplace_back();
    for (const Share& share : digit.shares)
      digits.back().emplace_back(share.feature, share.usual, share.n_codes);
  }
  return {std::move(digits), plan.sparse, plan.n_rows, plan.max_conflict_rate};
}

// Part by part: the casters of tuples are noexcept.
void set_plan_state(StoragePlan& plan, const nb::tuple& state) {
  StoragePlan restored{{},
                       nb::cast<std::vector<std::uint32_t>>(state[1]),
                       nb::cast<std::size_t>(state[2]),
                       nb::cast<double>(state[3])};
  for (const auto& digit : nb::cast<std::vector<std::vector<ShareState>>>(state[0])) {
    DigitPlan& digit_plan = restored.digits.emplace_back();
    for (const auto& [feature, usual, n_codes] : digit)
      digit_plan.shares.push_back({feature, usual, n_codes});
  }
  new (&plan) StoragePlan(std::move(restored));
}

Ranks bound_rank(const Columns& table, const std::optional<Vector<RowId>>& rows, int n_threads,
                 const std::vector<std::uint32_t>& n_levels) {
  return with_rows(table, rows, n_threads,
                   [&](const Rows& used, Team& team) { return rank(table, used, n_levels, team); });
}

// Rows by value, shape (n_features, n_rows).
Owned<RowId, 2> order_of(const Ranks& ranks) {
  std::vector<RowId> rows(ranks.n_rows * ranks.n_features);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = ranks.places[i] & (Ranks::begins - 1);
  return to_numpy<2>(std::move(rows), {ranks.n_features, ranks.n_rows});
}

nb::list edges_of(nb::handle self) {
  nb::list result;
  for (const auto& edges : nb::cast<const Ranks&>(self).edges)
    result.append(nb::cast(
        nb::ndarray<nb::numpy, const double, nb::ndim<1>>(edges.data(), {edges.size()}, self)));
  return result;
}

// A proposal for the rows of one process.
struct OwnProposal {
  OwnProposal(const Codes& table, double eps) : proposal(table, eps, alone) {}

  Alone alone;
  Proposal proposal;
};

void update(OwnProposal& self, const Vector<std::uint32_t>& hessians, int n_threads) {
  Proposal& proposal = self.proposal;
  require(hessians.size() == proposal.codes().n_rows,
          "A proposal needs one hessian for each row of the table.");
  CallTeam team(hessians.size() * proposal.codes().n_features, n_threads);
  proposal.update({hessians.data(), hessians.size()}, team);
}

const Codes& codes_of(const OwnProposal& self) {
  require(self.proposal.is_ready(), "nothing has been proposed yet: call update first");
  return self.proposal.codes();
}

std::uint32_t last_code(const OwnProposal& self, std::size_t feature, std::size_t bin) {
  if (feature >= codes_of(self).n_features)
    throw nb::index_error("the feature lies beyond the table");
  return self.proposal.last_code(feature, bin);
}

}  // namespace

void bind_bin(nb::module_& m) {
  nb::class_<Codes>(m, "Codes", "A binned table.")
      .def_prop_ro("n_rows", [](const Codes& codes) { return codes.n_rows; })
      .def_prop_ro("n_features", [](const Codes& codes) { return codes.n_features; })
      .def_prop_ro("n_stores", [](const Codes& codes) { return codes.n_stores; })
      .def_prop_ro("shared_columns", &shared_columns,
                   "Features of each digit of each stored column that several of them share.")
      .def_prop_ro(
          "sparse_features", [](const Codes& codes) { return codes.sparse.features; },
          "Features that are stored sparsely.")
      .def_prop_ro("arrays", &arrays_of,
                   "Views of all codes as they are stored; of codes in a file, their checksum.")
      .def_prop_ro(
          "is_stored", [](const Codes& codes) { return codes.stored_rows != nullptr; },
          "Whether the codes are in a file.")
      .def_prop_ro("width", [](const Codes& codes) { return codes.width; })
      .def_prop_ro(
          "n_bins", [](const Codes& codes) { return to_numpy(codes.n_bins); }, by_owner)
      .def_prop_ro(
          "has_missing", [](const Codes& codes) { return to_numpy(codes.has_missing); }, by_owner)
      .def_prop_ro(
          "is_category", [](const Codes& codes) { return to_numpy(codes.is_category); }, by_owner,
          "1 for features whose codes are levels; empty where there are none.")
      .def_prop_ro(
          "first_slot", [](const Codes& codes) { return to_numpy(codes.first_slot); }, by_owner)
      .def_prop_ro(
          "by_row", [](nb::handle self) { return view_of(self, true); }, by_owner)
      .def_prop_ro(
          "by_column", [](nb::handle self) { return view_of(self, false); }, by_owner)
      .def(
          "add_missing",
          [](Codes& codes, const Vector<std::uint8_t>& others) {
            codes.add_missing({others.data(), others.data() + others.size()});
          },
          "others"_a.noconvert(),
          "Have room for missing values of other rows of the table, where `others` has 1.")
      .def("take", &bound_take, "rows"_a.noconvert().none(), "n_threads"_a,
           "Copy of some or all rows as a table in memory; not for ranks.")
      .def("row_keys", &bound_keys, by_owner, "A hash of all codes of each row; not of ranks.")
      .def(
          "to_numpy",
          [](nb::handle self) -> nb::object {
            const auto& codes = nb::cast<const Codes&>(self);
            require_memory(codes);
            if (codes.width < 4) return nb::cast(feature_codes(codes));
            return nb::cast(view_of(self, true)).attr("astype")("uint32");
          },
          nb::sig("def to_numpy(self) -> numpy.typing.NDArray[numpy.unsignedinteger]"),
          "Copy of the codes as uint16 (ranks: uint32), one row of the array for each row of the "
          "table.");

  m.def("encode_on", &bound_encode<Columns, int>, "device"_a, "columns"_a,
        "rows"_a.noconvert().none(), "edges"_a, "n_threads"_a,
        "categorical"_a = std::vector<bool>(), "plan"_a.none() = nb::none(),
        "The same as `encode`, by a CUDA device: codes stay there until the host reads them. Not "
        "for sparse columns.");
  m.def("mixed_rows", &bound_mixed, by_owner, "keys"_a.noconvert(), "targets"_a.noconvert(),
        "The rows whose key is also that of a row with other targets.");
  bind_stages<Columns>(m);
  bind_stages<cuda::DeviceColumns>(m);

  nb::class_<StoragePlan>(m, "StoragePlan", "Features that share stored columns.")
      .def(nb::init<>(), "A plan that gives every feature a stored column of its own.")
      .def_prop_ro(
          "digits",
          [](const StoragePlan& plan) {
            std::vector<std::vector<std::uint32_t>> digits;
            for (const DigitPlan& digit : plan.digits) {
              digits.emplace_back();
              for (const Share& share : digit.shares) digits.back().push_back(share.feature);
            }
            return digits;
          },
          "Features that are one digit each; several of them are a bundle.")
      .def_prop_ro("sparse", [](const StoragePlan& plan) { return plan.sparse; })
      .def("__getstate__", &plan_state)
      .def("__setstate__", &set_plan_state);

  nb::class_<Ranks, Codes>(m, "Ranks", "Codes that are ranks of distinct values.")
      .def_prop_ro("order", &order_of, nb::rv_policy::automatic,
                   "Rows by value, missing ones last: (n_features, n_rows).")
      .def_prop_ro("edges", &edges_of, "Of each feature the edges between neighbouring values.");
  m.def("rank", &bound_rank, "columns"_a, "rows"_a.noconvert().none(), "n_threads"_a,
        "n_levels"_a = std::vector<std::uint32_t>(),
        "Ranks of every value among the distinct values of its column. Where n_levels is given and "
        "above 0, the column is a category of so many levels, and its values are their codes.");

  nb::class_<OwnProposal>(m, "Proposal", "Bins proposed for the hessians of each round.")
      .def(nb::init<const Codes&, double>(), "table"_a, "eps"_a, nb::keep_alive<1, 2>())
      .def("update", &update, "hessians"_a.noconvert(), "n_threads"_a,
           "Proposes bins for these hessians; 0 for rows of zero weight.")
      .def_prop_ro("codes", &codes_of, nb::rv_policy::reference_internal)
      .def("last_code", &last_code, "feature"_a, "bin"_a,
           "The largest code of the table in a bin.");
}

}  // namespace arboost::bindings
