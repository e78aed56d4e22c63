// Quantile summaries: build, merge, prune, cut. Linear in the number of entries. Single-threaded.
#include "bin/edges/sketch.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace arboost {
namespace {

// Appends the answers to the queries 0, W/b, ..., W: for each the entry whose rank is nearest to
// it. With m(x) = (rmin(x) + rmax(x)) / 2, x_i is the last with m(x_i) <= d, and x_{i+1} is nearer
// where
//
//   2d >= rmin(x_i) + weight(x_i) + rmax(x_{i+1}) - weight(x_{i+1}).
//
// Twice the query, rounded down, compares with integers as twice the query itself does.
void answer(const std::vector<SummaryEntry>& entries, std::int64_t total, std::size_t size,
            std::vector<SummaryEntry>& kept) {
  const auto twice_middle = [&](std::size_t i) { return entries[i].rmin + entries[i].rmax; };
  constexpr std::size_t leap = 8;
  const auto b = static_cast<std::int64_t>(size) - 1;
  const std::int64_t whole = total / b, rest = total % b;
  const std::size_t n = entries.size();
  std::size_t at = 0, last = n;
  for (std::int64_t k = 0; k <= b; ++k) {
    const std::int64_t twice = 2 * k * whole + 2 * k * rest / b;
    while (at + leap < n && twice_middle(at + leap) <= twice) at += leap;
    while (at + 1 < n && twice_middle(at + 1) <= twice) ++at;
    std::size_t pick = at;
    // Below the middle of the first entry, that entry is the nearest.
    if (at + 1 < n && twice_middle(at) <= twice) {
      const SummaryEntry here = entries[at], next = entries[at + 1];
      if (twice >= here.rmin + here.weight + next.rmax - next.weight) pick = at + 1;
    }
    if (pick != last) kept.push_back(entries[pick]);
    last = pick;
  }
}

std::int64_t share(std::int64_t total, std::size_t size) {
  const auto b = static_cast<std::int64_t>(size) - 1;
  return total / b + (total % b != 0 ? 1 : 0);
}

// Decides after which values to cut, from one value to the next.
class Cutter {
 public:
  Cutter(double eps, std::int64_t total)
      : most_(static_cast<std::int64_t>(std::floor(eps * static_cast<double>(total)))) {}

  // Whether to cut before a value; `below`: the weight of the values below it, or more.
  bool cuts_before(std::int64_t weight, std::int64_t below) const {
    return weight >= 2 * most_ || below - before_ > most_;
  }
  // `up_to`: the weight of the values up to the cut, or less.
  void cut(std::int64_t up_to) { before_ = up_to; }

 private:
  std::int64_t most_, before_ = 0;
};

}  // namespace

Summary::Summary(std::span<const double> values, std::span<const std::int64_t> weights) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (weights[i] >= largest_total - total_)
      throw std::invalid_argument("The weights add up to 2^61 or more. Divide them by a constant.");
    if (entries_.empty() || entries_.back().value != values[i])
      entries_.push_back({values[i], total_, total_, 0});
    total_ += weights[i];
    entries_.back().weight += weights[i];
    entries_.back().rmax = total_;
  }
}

std::int64_t Summary::error() const {
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const SummaryEntry& e = entries_[i];
    largest = std::max(largest, e.rmax - e.rmin - e.weight);
    if (i == 0) continue;
    const SummaryEntry& before = entries_[i - 1];
    largest = std::max(largest, e.rmax - e.weight - before.rmin - before.weight);
  }
  return largest;
}

std::pair<std::int64_t, std::int64_t> Summary::rank_bounds(double value) const {
  const auto after = std::lower_bound(entries_.begin(), entries_.end(), value,
                                      [](const SummaryEntry& e, double x) { return e.value < x; });
  if (after != entries_.end() && after->value == value) return {after->rmin, after->rmax};
  return bounds_before(static_cast<std::size_t>(after - entries_.begin()));
}

std::pair<std::int64_t, std::int64_t> Summary::bounds_before(std::size_t i) const {
  // The smallest and the largest value are never pruned: beyond them ranks are known.
  if (i == entries_.size()) return {total_, total_};
  if (i == 0) return {0, 0};
  const SummaryEntry &before = entries_[i - 1], &after = entries_[i];
  return {before.rmin + before.weight, after.rmax - after.weight};
}

// All values of the other summary are above those of this one: bounds only shift by the weight
// below.
void Summary::append(const Summary& other) {
  const std::size_t before = entries_.size();
  entries_.resize(before + other.entries_.size());
  for (std::size_t i = 0; i < other.entries_.size(); ++i) {
    const SummaryEntry& e = other.entries_[i];
    entries_[before + i] = {e.value, e.rmin + total_, e.rmax + total_, e.weight};
  }
}

void Summary::merge(const Summary& other) {
  if (other.total_ >= largest_total - total_)
    throw std::invalid_argument("The weights add up to 2^61 or more. Divide them by a constant.");
  if (other.entries_.empty()) return;
  if (entries_.empty() || entries_.back().value < other.entries_.front().value) {
    append(other);
  } else {
    std::vector<SummaryEntry> merged;
    merged.reserve(entries_.size() + other.entries_.size());
    // Adds the bounds that a summary has for a value just before its entry i.
    const auto add = [&merged](SummaryEntry e, const Summary& beside, std::size_t i) {
      const auto [rmin, rmax] = beside.bounds_before(i);
      e.rmin += rmin;
      e.rmax += rmax;
      merged.push_back(e);
    };
    std::size_t a = 0, b = 0;
    while (a < entries_.size() || b < other.entries_.size()) {
      const bool a_ends = a == entries_.size(), b_ends = b == other.entries_.size();
      if (b_ends || (!a_ends && entries_[a].value < other.entries_[b].value)) {
        add(entries_[a++], other, b);
      } else if (a_ends || other.entries_[b].value < entries_[a].value) {
        add(other.entries_[b++], *this, a);
      } else {
        const SummaryEntry &mine = entries_[a++], &yours = other.entries_[b++];
        merged.push_back({mine.value, mine.rmin + yours.rmin, mine.rmax + yours.rmax,
                          mine.weight + yours.weight});
      }
    }
    entries_ = std::move(merged);
  }
  total_ += other.total_;
  bound_ += other.bound_;
}

void Summary::prune(std::size_t size) {
  if (size < 2) throw std::invalid_argument("A sketch keeps at least 2 values.");
  if (entries_.size() <= size) return;
  std::vector<SummaryEntry> kept;
  answer(entries_, total_, size, kept);
  entries_ = std::move(kept);
  bound_ += share(total_, size);
}

std::vector<std::size_t> Summary::cuts(double eps) const {
  std::vector<std::size_t> chosen;
  Cutter cutter(eps, total_);
  for (std::size_t i = 0; i + 1 < entries_.size(); ++i) {
    const SummaryEntry& next = entries_[i + 1];
    if (!cutter.cuts_before(next.weight, next.rmax - next.weight)) continue;
    chosen.push_back(i);
    cutter.cut(entries_[i].rmin + entries_[i].weight);
  }
  return chosen;
}

std::vector<std::size_t> Summary::cuts(std::span<const std::int64_t> sums, double eps) {
  std::vector<std::size_t> chosen;
  Cutter cutter(eps, sums.empty() ? 0 : sums.back());
  std::size_t last = 0;  // value of a weight above 0
  std::int64_t below = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const std::int64_t weight = sums[i] - below;
    if (weight == 0) continue;
    if (below > 0 && cutter.cuts_before(weight, below)) {
      chosen.push_back(last);
      cutter.cut(below);
    }
    last = i;
    below = sums[i];
  }
  return chosen;
}

}  // namespace arboost
