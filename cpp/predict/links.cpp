// Cost: a few ns a score.
#include "predict/links.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>  // invalid_argument

#include "loss/elementary.h"

namespace arboost {
namespace {

constexpr std::size_t rows_at_once = 256;

void logistic(const double* raw, double factor, std::size_t n, double* out) {
  double small[rows_at_once];
  for (std::size_t i = 0; i < n; ++i) small[i] = exponent_of_logistic(raw[i], factor);
  exponentials(small, n);
  for (std::size_t i = 0; i < n; ++i) {
    const TwoShares shares = shares_of_logistic(raw[i], small[i]);
    out[2 * i] = shares.first;
    out[2 * i + 1] = shares.second;
  }
}

void softmax(const double* raw, std::size_t n_outputs, double* out) {
  const double highest = highest_score(raw, n_outputs);
  for (std::size_t k = 0; k < n_outputs; ++k) out[k] = raw[k] - highest;
  exponentials(out, n_outputs);
  double sum = 0;
  for (std::size_t k = 0; k < n_outputs; ++k) sum += out[k];
  for (std::size_t k = 0; k < n_outputs; ++k) out[k] /= sum;
}

// At most `rows_at_once` rows.
void apply_to_few(Link link, const double* raw, std::size_t n, std::size_t n_outputs, double* out) {
  const std::size_t size = n * n_outputs;
  switch (link) {
    case Link::identity:
      std::copy_n(raw, size, out);
      break;
    case Link::exp:
      for (std::size_t i = 0; i < size; ++i) out[i] = exponent_of_exp(raw[i]);
      exponentials(out, size);
      break;
    case Link::logistic:
      logistic(raw, 1, n, out);
      break;
    case Link::logistic_of_double:
      logistic(raw, 2, n, out);
      break;
    case Link::softmax:
      for (std::size_t i = 0; i < n; ++i)
        softmax(raw + i * n_outputs, n_outputs, out + i * n_outputs);
      break;
    case Link::share_of_two:
      for (std::size_t i = 0; i < n; ++i) {
        const TwoShares shares = shares_of_difference(raw[i]);
        out[2 * i] = shares.first;
        out[2 * i + 1] = shares.second;
      }
      break;
    case Link::shares:
      for (std::size_t i = 0; i < size; ++i) out[i] = clipped(raw[i], 0.0, 1.0);
      break;
  }
}

}  // namespace

Link link_of(std::string_view name) {
  constexpr std::string_view names[] = {
      "identity", "exp", "logistic", "logistic_of_double", "softmax", "share_of_two", "shares"};
  const auto entry = std::find(std::begin(names), std::end(names), name);
  if (entry == std::end(names)) throw std::invalid_argument("the link is unknown");
  return static_cast<Link>(entry - names);
}

std::size_t answer_width(Link link, std::size_t n_outputs) {
  const bool of_two =
      link == Link::logistic || link == Link::logistic_of_double || link == Link::share_of_two;
  if (n_outputs == 0 || (of_two && n_outputs != 1))
    throw std::invalid_argument("another number of scores than the link takes");
  return of_two ? 2 : n_outputs;
}

void apply_link(Link link, const double* raw, std::size_t n_rows, std::size_t n_outputs,
                double* answers) {
  const std::size_t width = answer_width(link, n_outputs);
  for (std::size_t row = 0; row < n_rows; row += rows_at_once)
    apply_to_few(link, raw + row * n_outputs, std::min(rows_at_once, n_rows - row), n_outputs,
                 answers + row * width);
}

}  // namespace arboost
