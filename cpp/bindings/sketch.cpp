// Bindings of ranks, sketches and proposals.
#include "bin/edges/sketch.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <cmath>
#include <numeric>  // iota
#include <optional>
#include <stdexcept>
#include <vector>

#include "bin/propose.h"
#include "bin/rank.h"
#include "bindings/common.h"

namespace arboost::bindings {
namespace {

// Exact summary of values in any order; missing ones and those of weight 0 are left out.
Summary summary_of(const Vector<double>& values,
                   const std::optional<Vector<std::int64_t>>& weights) {
  const std::size_t n = values.size();
  if (weights && weights->size() != n)
    throw std::invalid_argument("A sketch needs one weight for each value.");
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t i) {
    const std::int64_t weight = weights ? weights->data()[i] : 1;
    if (weight < 0) throw std::invalid_argument("Weights of a sketch must be at least 0.");
    return weight == 0 || std::isnan(values.data()[i]);
  });
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values.data()[a] < values.data()[b]; });
  std::vector<double> sorted;
  std::vector<std::int64_t> sorted_weights;
  for (const std::size_t i : order) {
    sorted.push_back(values.data()[i] + 0.0);  // -0.0 becomes 0.0
    sorted_weights.push_back(weights ? weights->data()[i] : 1);
  }
  return Summary(sorted, sorted_weights);
}

Owned<double> cuts(const Summary& summary, double eps) {
  if (!(eps > 0 && eps < 1)) throw std::invalid_argument("eps must be above 0 and below 1.");
  std::vector<double> values;
  for (const std::size_t i : summary.cuts(eps)) values.push_back(summary.entries()[i].value);
  return to_numpy(std::move(values));
}

nb::dict entries(const Summary& summary) {
  std::vector<double> values;
  std::vector<std::int64_t> rmin, rmax, weight;
  for (const SummaryEntry& e : summary.entries()) {
    values.push_back(e.value);
    rmin.push_back(e.rmin);
    rmax.push_back(e.rmax);
    weight.push_back(e.weight);
  }
  nb::dict result;
  result["value"] = to_numpy(std::move(values));
  result["rmin"] = to_numpy(std::move(rmin));
  result["rmax"] = to_numpy(std::move(rmax));
  result["weight"] = to_numpy(std::move(weight));
  return result;
}

Ranks bound_rank(const Columns& table, const std::optional<Vector<RowId>>& rows, int n_threads,
                 const std::vector<std::uint32_t>& n_levels) {
  GilRelease nogil;
  const Rows used = rows_of(table, rows);
  Team team = team_for(used.size() * table.columns.size(), n_threads);
  return rank(table, used, n_levels, team);
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
  GilRelease nogil;
  Team team = team_for(hessians.size() * proposal.codes().n_features, n_threads);
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

void bind_sketch(nb::module_& m) {
  nb::class_<Ranks, Codes>(m, "Ranks", "Codes that are ranks of distinct values.")
      .def_prop_ro("order", &order_of, nb::rv_policy::automatic,
                   "Rows by value, missing ones last: (n_features, n_rows).")
      .def_prop_ro("edges", &edges_of, "Of each feature the edges between neighbouring values.");
  m.def("rank", &bound_rank, "columns"_a, "rows"_a.noconvert().none(), "n_threads"_a,
        "n_levels"_a = std::vector<std::uint32_t>(),
        "Ranks of every value among the distinct values of its column. Where n_levels is given and "
        "above 0, the column is a category of so many levels, and its values are their codes.");

  nb::class_<Summary>(m, "Sketch", "Quantiles of weighted values that come in pieces.")
      .def(nb::init<>())
      .def(
          "push",
          [](Summary& self, const Vector<double>& values,
             const std::optional<Vector<std::int64_t>>& weights) {
            self.merge(summary_of(values, weights));
          },
          "values"_a.noconvert(), "weights"_a.noconvert().none() = nb::none(),
          "Adds values, each of weight 1 or of integer weights of at least 0; NaN is left out.")
      .def("merge", &Summary::merge, "other"_a, "Merges another sketch into this one.")
      .def("prune", &Summary::prune, "size"_a,
           "Keeps at most so many values; the bound of the error grows by total / (size - 1).")
      .def_prop_ro("total", &Summary::total, "Weight of all values.")
      .def("error_bound", &Summary::bound,
           "Weight by which the two bounds of a rank may differ at most, by the theorems.")
      .def("error", &Summary::error, "Weight by which the two bounds of a rank do differ at most.")
      .def("rank_bounds", &Summary::rank_bounds, "value"_a,
           "Lower bound of the weight below a value, upper bound of the weight up to it.")
      .def(
          "cuts", &cuts, "eps"_a, nb::rv_policy::automatic,
          "Values after which to cut, so that the values of one part but the largest weigh at most "
          "eps of the total together.")
      .def("entries", &entries, "Values that are kept with their rmin, rmax and weight.");

  nb::class_<OwnProposal>(m, "Proposal", "Bins proposed for the hessians of each round.")
      .def(nb::init<const Codes&, double>(), "table"_a, "eps"_a, nb::keep_alive<1, 2>())
      .def("update", &update, "hessians"_a.noconvert(), "n_threads"_a,
           "Proposes bins for these hessians; 0 for rows of zero weight.")
      .def_prop_ro("codes", &codes_of, nb::rv_policy::reference_internal)
      .def("last_code", &last_code, "feature"_a, "bin"_a,
           "The largest code of the table in a bin.");
}

}  // namespace arboost::bindings
