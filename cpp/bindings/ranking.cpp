// Bindings of ranking: queries, gradients of their losses, metrics.
#include "loss/ranking.h"

#include <nanobind/stl/optional.h>

#include <optional>
#include <string>

#include "bindings/loss_rows.h"

namespace arboost::bindings {
namespace {

RankLoss rank_loss_named(const std::string& name) {
  if (name == "ndcg") return RankLoss::ndcg;
  if (name == "map") return RankLoss::map;
  if (name == "mrr") return RankLoss::mrr;
  if (name == "pairwise") return RankLoss::pairwise;
  require(name == "listwise", "unknown loss of rankings");
  return RankLoss::listwise;
}

RankMetric rank_metric_named(const std::string& name) {
  if (name == "ndcg") return RankMetric::ndcg;
  if (name == "map") return RankMetric::map;
  if (name == "mrr") return RankMetric::mrr;
  require(name == "precision", "unknown metric of rankings");
  return RankMetric::precision;
}

// A document takes part in some dozens of pairs.
Team team_of(const Queries& queries, int n_threads) {
  return team_for(64 * queries.n_rows(), n_threads);
}

}  // namespace

void bind_ranking(nb::module_& m) {
  nb::class_<Queries>(m, "Queries", "Documents of queries, with their gains.")
      .def(
          "__init__",
          [](Queries* self, const Vector<RowId>& rows, const Vector<RowId>& starts,
             const Vector<double>& gains, const Weights& weights) {
            new (self) Queries(span_of(rows), span_of(starts), span_of(gains), span_of(weights));
          },
          "rows"_a, "starts"_a, "gains"_a, "weights"_a.none(),
          "Rows query by query, the first of each query and their number, gains of the rows, and "
          "weights of the queries.")
      .def(
          "gradients",
          [](const Queries& self, const std::string& loss, const Vector<double>& scores,
             Gradients& out, std::size_t truncation, bool normalized, bool least_squares,
             std::uint64_t seed, std::uint64_t round, int n_threads) {
            const RankSpec spec{rank_loss_named(loss), truncation, normalized,
                                least_squares,         seed,       round};
            check_length(scores.size(), self.n_rows(), "scores");
            require(out.n_rows == self.n_rows() && out.outputs == 1,
                    "gradients of other rows or outputs");
            GilRelease release;
            Team team = team_of(self, n_threads);
            self.gradients(spec, scores.data(), out, team);
          },
          "loss"_a, "scores"_a, "out"_a, nb::kw_only(), "truncation"_a, "normalized"_a,
          "least_squares"_a, "seed"_a, "round"_a, "n_threads"_a,
          "Fills `out` with the gradients of a loss at the scores.")
      .def(
          "metric",
          [](const Queries& self, const std::string& metric, std::size_t k,
             const Vector<double>& scores, int n_threads) {
            const RankMetric which = rank_metric_named(metric);
            check_length(scores.size(), self.n_rows(), "scores");
            return to_numpy(without_gil([&] {
              Team team = team_of(self, n_threads);
              return self.metric(which, k, scores.data(), team);
            }));
          },
          "metric"_a, "k"_a, "scores"_a, "n_threads"_a,
          "A metric of each query at the first k documents.");
}

}  // namespace arboost::bindings
