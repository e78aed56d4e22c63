// Single-threaded: the order of the rows is part of the result.
#include "bin/statistics.h"

#include <algorithm>
#include <bit>  // bit_width
#include <cmath>
#include <limits>

#include "base/random.h"

namespace arboost {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

constexpr double mean_smoothing = 10;     // a of `level_statistics`
constexpr double large_level = 200;       // rows of mean weight from which on a level is large
constexpr std::size_t n_steps = 32;       // numbers that those of small levels are rounded to ...
constexpr std::size_t step_rows = 65536;  // ... and rows that they are quantiles of
constexpr int power_steps = 24;

// Random permutation of 0 to n - 1 without a table: a bijection on the bits of n - 1, repeated
// until the result is below n, less than twice on average.
class Shuffle {
 public:
  explicit Shuffle(std::size_t n)
      : n_(n), bits_(std::max(2, static_cast<int>(std::bit_width(n - 1)))) {
    for (std::uint64_t r = 0; r < n_rounds; ++r) {
      const std::uint64_t random = counter_hash(0, Purpose::level_order, 0, r);
      factor_[r] = random | 1;
      add_[r] = random >> 32;
    }
  }

  std::size_t operator()(std::size_t t) const {
    std::uint64_t x = t;
    do {
      x = mixed(x);
    } while (x >= n_);
    return static_cast<std::size_t>(x);
  }

 private:
  static constexpr std::size_t n_rounds = 4;

  // Products with odd factors and xor-shifts are invertible, so the function is a bijection.
  std::uint64_t mixed(std::uint64_t x) const {
    const std::uint64_t mask = (std::uint64_t{1} << bits_) - 1;
    for (std::size_t r = 0; r < n_rounds; ++r) {
      x = (x * factor_[r] + add_[r]) & mask;
      x ^= x >> ((bits_ + 1) / 2);
    }
    return x;
  }

  std::size_t n_;
  int bits_;
  std::uint64_t factor_[n_rounds], add_[n_rounds];
};

struct LevelSum {
  double weight = 0, target = 0;  // the target less its mean, times the weight
};

// The mean of the target, the mean weight, and the sums of all levels.
struct Totals {
  double mean = 0, unit = 1;
  double smoothing = 0;  // in rows of mean weight
  std::vector<LevelSum> levels;

  double value(const LevelSum& level) const {
    return mean + level.target / (level.weight + smoothing * unit);
  }
  bool is_large(const LevelSum& level) const { return level.weight >= large_level * unit; }
};

Totals total(const LevelRows& rows, double smoothing) {
  Totals sums;
  sums.smoothing = smoothing;
  sums.levels.resize(rows.n_levels);
  double n = 0, weight = 0, target = 0;
  for (std::size_t i = 0; i < rows.level.size(); ++i) {
    if (rows.level[i] == no_level) continue;
    n += 1;
    weight += rows.weight_of(i);
    target += rows.weight_of(i) * rows.target[i];
  }
  if (n == 0) return sums;
  sums.mean = target / weight;
  sums.unit = weight / n;
  for (std::size_t i = 0; i < rows.level.size(); ++i) {
    if (rows.level[i] == no_level) continue;
    LevelSum& level = sums.levels[rows.level[i]];
    level.weight += rows.weight_of(i);
    level.target += rows.weight_of(i) * (rows.target[i] - sums.mean);
  }
  return sums;
}

// Rounding to the nearest of some ascending numbers.
class Steps {
 public:
  // Quantiles of a sample.
  explicit Steps(std::vector<double> sample) {
    std::sort(sample.begin(), sample.end());
    for (std::size_t k = 0; k < n_steps && !sample.empty(); ++k) {
      const double step = sample[(2 * k + 1) * sample.size() / (2 * n_steps)];
      if (steps_.empty() || step > steps_.back()) steps_.push_back(step);
    }
    for (std::size_t k = 1; k < steps_.size(); ++k)
      middles_.push_back(steps_[k - 1] + (steps_[k] - steps_[k - 1]) / 2);
  }

  double nearest(double x) const {
    const auto at = std::lower_bound(middles_.begin(), middles_.end(), x);
    return steps_[static_cast<std::size_t>(at - middles_.begin())];
  }

 private:
  std::vector<double> steps_, middles_;
};

// The numbers of the rows of some levels, in the random order: use(row, number).
template <class Counts, class Use>
void each_ordered_row(const LevelRows& rows, const Totals& sums, Counts counts, Use use) {
  constexpr std::size_t block = 64;
  struct Row {
    std::size_t number;
    std::uint32_t level;
    double weight, target;
  };
  const std::size_t n = rows.level.size();
  const Shuffle order(n);
  std::vector<LevelSum> earlier(rows.n_levels);
  // Rows lie far apart in this order: a block of them is read at once, so that the reads overlap.
  Row ahead[block];
  for (std::size_t first = 0; first < n; first += block) {
    const std::size_t size = std::min(block, n - first);
    for (std::size_t j = 0; j < size; ++j) {
      const std::size_t i = order(first + j);
      ahead[j] = {i, rows.level[i], rows.weight_of(i), rows.target[i]};
    }
    for (std::size_t j = 0; j < size; ++j) {
      const Row& row = ahead[j];
      if (row.level == no_level || !counts(sums.levels[row.level])) continue;
      LevelSum& level = earlier[row.level];
      use(row.number, sums.value(level));
      level.weight += row.weight;
      level.target += row.weight * (row.target - sums.mean);
    }
  }
}

}  // namespace

Statistics level_statistics(const LevelRows& rows) {
  const Totals sums = total(rows, mean_smoothing);
  Statistics out{std::vector<double>(rows.level.size(), nan),
                 std::vector<double>(rows.n_levels, nan)};
  std::vector<double> sample;
  const auto is_small = [&](const LevelSum& level) { return !sums.is_large(level); };
  each_ordered_row(rows, sums, is_small, [&](std::size_t i, double value) {
    out.of_rows[i] = value;
    if (sample.size() < step_rows) sample.push_back(value);
  });
  const Steps steps(std::move(sample));
  for (std::size_t l = 0; l < rows.n_levels; ++l) {
    const LevelSum& level = sums.levels[l];
    if (level.weight == 0) continue;
    const double value = sums.value(level);
    out.of_levels[l] = sums.is_large(level) ? value : steps.nearest(value);
  }
  for (std::size_t i = 0; i < rows.level.size(); ++i) {
    if (rows.level[i] == no_level) continue;
    const bool is_large = sums.is_large(sums.levels[rows.level[i]]);
    out.of_rows[i] = is_large ? out.of_levels[rows.level[i]] : steps.nearest(out.of_rows[i]);
  }
  return out;
}

Statistics ordered_means(const LevelRows& rows, double smoothing) {
  const Totals sums = total(rows, smoothing);
  Statistics out{std::vector<double>(rows.level.size(), nan),
                 std::vector<double>(rows.n_levels, nan)};
  const auto is_any = [](const LevelSum&) { return true; };
  each_ordered_row(rows, sums, is_any,
                   [&](std::size_t i, double value) { out.of_rows[i] = value; });
  for (std::size_t l = 0; l < rows.n_levels; ++l)
    if (sums.levels[l].weight > 0) out.of_levels[l] = sums.value(sums.levels[l]);
  return out;
}

std::vector<double> class_scores(const LevelRows& rows, std::size_t n_classes) {
  std::vector<double> weight(n_classes, 0), scores(n_classes), next(n_classes);
  std::vector<LevelSum> levels(rows.n_levels);
  const auto each_row = [&](auto use) {
    for (std::size_t i = 0; i < rows.level.size(); ++i)
      if (rows.level[i] != no_level)
        use(levels[rows.level[i]], static_cast<std::size_t>(rows.target[i]), rows.weight_of(i));
  };
  double all = 0;
  each_row([&](LevelSum& level, std::size_t k, double w) {
    level.weight += w;
    weight[k] += w;
    all += w;
  });
  // To mean 0 and variance 1 over the rows; false where all scores are one.
  const auto standardise = [&](std::vector<double>& of) {
    double mean = 0, squares = 0;
    for (std::size_t k = 0; k < n_classes; ++k) mean += weight[k] * of[k];
    mean /= all;
    for (std::size_t k = 0; k < n_classes; ++k)
      squares += weight[k] * (of[k] - mean) * (of[k] - mean);
    if (!(squares > 0)) return false;
    const double scale = 1 / std::sqrt(squares / all);
    for (double& score : of) score = (score - mean) * scale;
    return true;
  };
  // Nearly any start vector converges.
  for (std::size_t k = 0; k < n_classes; ++k)
    scores[k] = static_cast<double>(counter_hash(0, Purpose::level_order, 1, k) >> 11) * 0x1p-53;
  if (!(all > 0) || !standardise(scores)) return scores;
  for (int step = 0; step < power_steps; ++step) {
    for (LevelSum& level : levels) level.target = 0;
    each_row([&](LevelSum& level, std::size_t k, double w) { level.target += w * scores[k]; });
    std::fill(next.begin(), next.end(), 0.0);
    each_row([&](LevelSum& level, std::size_t k, double w) {
      const double others = level.weight - w;
      if (others > 0) next[k] += w * (level.target - w * scores[k]) / others;
    });
    for (std::size_t k = 0; k < n_classes; ++k) next[k] = weight[k] > 0 ? next[k] / weight[k] : 0.0;
    if (!standardise(next)) break;
    scores.swap(next);
  }
  return scores;
}

}  // namespace arboost
