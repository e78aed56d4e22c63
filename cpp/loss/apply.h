// Scores -> gradients of a round, as fixed-point pairs of every row and output with their scale;
// scores -> mean losses. Parallel over rows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/buffer.h"
#include "base/collective.h"
#include "base/parallel.h"
#include "base/types.h"
#include "loss/losses.h"

namespace arboost {

struct Gradients {
  // by_row: outputs of one row are contiguous, for trees with vector leaves; otherwise rows of one
  // output are, for one tree an output.
  Gradients(std::size_t n_rows_, std::size_t outputs_, bool by_row_);

  std::size_t n_rows, outputs;
  bool by_row;
  Buffer<FixedPair> pairs;
  int g_exponent = 0, h_exponent = 0;          // value = integer * 2^-exponent
  std::vector<std::int64_t> sum_abs_g, sum_h;  // per output, in integer units
  bool is_filled = false;                      // a loss has been applied
  std::uint64_t version = 0;                   // of the pairs, among those of all gradients
  // The same pairs in the memory of a device, and only there; null: in this process.
  const FixedPair* device_pairs = nullptr;

  std::size_t row_stride() const { return by_row ? outputs : 1; }
  std::size_t output_stride() const { return by_row ? 1 : n_rows; }
};

// Fills `out` from the scores; for squared_error and one_hot, null means scores of 0.
// `largest_weight` is an upper bound of the weights, which bounds the gradients of many losses
// without a pass over the rows. Throws std::invalid_argument when a gradient is not finite.
void apply_loss(const LossSpec& spec, const LossRows& rows, double largest_weight, Gradients& out,
                Team& team);
// The same for the rows of one worker: the scale is that of the rows of all.
void apply_loss(const LossSpec& spec, const LossRows& rows, double largest_weight, Gradients& out,
                Team& team, Collective& workers);

// Marks pairs as new ones.
void set_filled(Gradients& out);

// Upper bounds of |g| and h, where they follow from the loss without a pass over the rows.
struct GradientBounds {
  double g, h;
};
std::optional<GradientBounds> known_bounds(const LossSpec& spec, const LossRows& rows,
                                           double largest_weight);
// Sets the exponents of the pairs; throws std::invalid_argument when a bound is not finite.
void set_exponents(const GradientBounds& bounds, Gradients& out);
// Throws std::invalid_argument unless the loss has all its parameters.
void check_parameters(const LossSpec& spec, std::size_t outputs);

// The weighted mean loss over rows and outputs; the same bits for any number of threads.
double mean_loss(const LossSpec& spec, const LossRows& rows, Team& team);
// The same from the sum over all rows.
double mean_of(const LossSpec& spec, const LossValue& total, std::size_t outputs);

double max_weight(const double* weight, std::size_t n_rows, Team& team);

// Throws std::invalid_argument, saying what to do, when the bound is infinite or NaN.
void require_finite(double bound, const char* what);

}  // namespace arboost
