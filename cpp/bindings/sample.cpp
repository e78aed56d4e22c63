// Bindings of row sampling, and of the random bits: Python and the core draw from the same hash.
#include "grow/sample/sample.h"

#include <nanobind/stl/optional.h>

#include <limits>
#include <stdexcept>

#include "base/require.h"
#include "bindings/common.h"

namespace arboost::bindings {
namespace {

void require_rows(std::size_t n_rows) {
  if (n_rows == 0) throw std::invalid_argument("there are no rows to draw from");
  check_row_count(n_rows);
}

void require_share(double share) {
  if (!(share >= 0 && share <= 1))
    throw std::invalid_argument("a share of the rows is " + std::to_string(share) +
                                ", not between 0 and 1");
}

void require_gradients(const Gradients& gradients) {
  require_rows(gradients.n_rows);
  require(gradients.is_filled, "the gradients have not been computed");
}

void draw_rows(Sample& self, std::size_t n_rows, double rate, std::uint64_t seed,
               std::uint64_t draw, int n_threads) {
  require_rows(n_rows);
  require_share(rate);
  CallTeam team(4 * n_rows, n_threads);
  sample_uniform(n_rows, rate, draw_bits({seed, draw}), self, team);
}

void draw_by_gradient(Sample& self, const Gradients& gradients, double rate, double reg_lambda,
                      std::uint64_t seed, std::uint64_t draw, int n_threads) {
  require_gradients(gradients);
  require_share(rate);
  require(reg_lambda >= 0, "reg_lambda is below 0");
  CallTeam team(8 * gradients.n_rows, n_threads);
  sample_by_gradient(gradients, rate, reg_lambda, draw_bits({seed, draw}), self, team);
}

void draw_one_side(Sample& self, const Gradients& gradients, double top_rate, double other_rate,
                   std::uint64_t seed, std::uint64_t draw, int n_threads) {
  require_gradients(gradients);
  for (const double share : {top_rate, other_rate, top_rate + other_rate}) require_share(share);
  CallTeam team(8 * gradients.n_rows, n_threads);
  sample_one_side(gradients, top_rate, other_rate, draw_bits({seed, draw}), self, team);
}

// The count of a row has 32 bits.
void require_draws(std::size_t n_draws) {
  if (n_draws > std::numeric_limits<std::uint32_t>::max())
    throw std::invalid_argument(std::to_string(n_draws) +
                                " draws: at most 4,294,967,295 are possible");
  if (n_draws == 0) throw std::invalid_argument("no draws: at least one is needed");
}

void draw_by_weight(Sample& self, const Vector<double>& weight, std::uint64_t seed,
                    std::uint64_t draw, int n_threads, std::optional<std::size_t> draws) {
  const std::size_t n_rows = weight.shape(0), n_draws = draws.value_or(n_rows);
  require_rows(n_rows);
  require_draws(n_draws);
  CallTeam team(8 * (n_rows + n_draws), n_threads);
  bootstrap(DrawChances({weight.data(), n_rows}, team), n_draws, {seed, draw}, self, team);
}

void draw_with_replacement(Sample& self, std::size_t n_rows, std::size_t n_draws,
                           std::uint64_t seed, std::uint64_t draw, int n_threads) {
  require_rows(n_rows);
  require_draws(n_draws);
  CallTeam team(8 * (n_rows + n_draws), n_threads);
  bootstrap(n_rows, n_draws, {seed, draw}, self, team);
}

Purpose purpose_named(const std::string& name) {
  if (name == "bag") return Purpose::bag;
  if (name == "dropout") return Purpose::dropout;
  if (name == "relevance_noise") return Purpose::relevance_noise;
  if (name == "tied_rows") return Purpose::tied_rows;
  if (name == "validation") return Purpose::validation;
  throw std::invalid_argument("unknown purpose '" + name + "'");
}

Owned<std::uint64_t> hashes(const std::string& purpose, std::uint64_t seed, std::uint64_t round,
                            std::size_t count) {
  const Purpose which = purpose_named(purpose);
  std::vector<std::uint64_t> bits(count);
  for (std::size_t i = 0; i < count; ++i) bits[i] = counter_hash(seed, which, round, i);
  return to_numpy(std::move(bits));
}

}  // namespace

void bind_sample(nb::module_& m) {
  nb::class_<DrawChances>(m, "DrawChances", "Chances of rows that are drawn by their weights.")
      .def(
          "__init__",
          [](DrawChances* self, const Vector<double>& weight, int n_threads) {
            require_rows(weight.shape(0));
            CallTeam team(8 * weight.shape(0), n_threads);
            new (self) DrawChances({weight.data(), weight.shape(0)}, team);
          },
          "weight"_a, "n_threads"_a);
  nb::class_<Sample>(m, "Sample", "Sampled rows of a tree.")
      .def(nb::init<>())
      .def("draw", &draw_rows, "n_rows"_a, "rate"_a, "seed"_a, "draw"_a, "n_threads"_a,
           "Draws each row with the same probability.")
      .def("draw_by_gradient", &draw_by_gradient, "gradients"_a, "rate"_a, "reg_lambda"_a, "seed"_a,
           "draw"_a, "n_threads"_a,
           "Draws rows in proportion to the norm of their gradient, with inverse weights.")
      .def("draw_one_side", &draw_one_side, "gradients"_a, "top_rate"_a, "other_rate"_a, "seed"_a,
           "draw"_a, "n_threads"_a,
           "Takes rows of large gradients, and some of the others with inverse weights.")
      .def("draw_by_weight", &draw_by_weight, "weight"_a, "seed"_a, "draw"_a, "n_threads"_a,
           "n_draws"_a.none() = nb::none(),
           "Draws with replacement, as often as there are rows where nothing else is said, in "
           "proportion to their weights; the count of a row is its weight in the sample.")
      .def("draw_with_replacement", &draw_with_replacement, "n_rows"_a, "n_draws"_a, "seed"_a,
           "draw"_a, "n_threads"_a,
           "Draws rows with replacement, each with the same probability; how often a row was "
           "drawn is its weight in the sample.")
      .def(
          "positions",
          [](const Sample& self) {
            const std::uint32_t* p = self.positions.data();
            return to_numpy(std::vector<std::uint32_t>(p, p + self.size));
          },
          "A copy of the rows, ascending.")
      .def(
          "weights",
          [](const Sample& self) {
            const float* w = self.weights_or_null();
            return to_numpy(std::vector<float>(w, w == nullptr ? w : w + self.size));
          },
          "A copy of their weights; empty where all are 1.");

  m.def("counter_hash", &hashes, "purpose"_a, "seed"_a, "round"_a, "count"_a,
        "64 random bits for each index below `count`.");
}

}  // namespace arboost::bindings
