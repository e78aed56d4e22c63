// Whole numbers in a narrow range, such as class labels -> distinct labels, and their indices. Two
// passes over the labels, parallel over rows; memory: the range of the labels for each thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "base/parallel.h"

namespace arboost {

namespace labels {

constexpr std::size_t grain = 1 << 16;

template <class Label>
struct Range {
  Label low, high;
  bool whole = true;
};

// The distance of two labels; of floating-point labels it may be infinite.
template <class Label>
double distance(Label low, Label high) {
  if constexpr (std::is_floating_point_v<Label>)
    return static_cast<double>(high) - static_cast<double>(low);
  else
    return static_cast<double>(static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low));
}

template <class Label>
std::size_t offset(Label low, Label label) {
  if constexpr (std::is_floating_point_v<Label>)
    return static_cast<std::size_t>(label - low);
  else
    return static_cast<std::size_t>(static_cast<std::uint64_t>(label) -
                                    static_cast<std::uint64_t>(low));
}

template <class Label>
Range<Label> range_of(std::span<const Label> given, Team& team) {
  std::vector<Range<Label>> parts(static_cast<std::size_t>(team.size()), {given[0], given[0]});
  team.for_chunks(0, given.size(), grain, [&](std::size_t begin, std::size_t end, int member) {
    Range<Label> part_range = parts[static_cast<std::size_t>(member)];
    for (const Label label : given.subspan(begin, end - begin)) {
      part_range.low = std::min(part_range.low, label);
      part_range.high = std::max(part_range.high, label);
      if constexpr (std::is_floating_point_v<Label>) part_range.whole &= std::floor(label) == label;
    }
    parts[static_cast<std::size_t>(member)] = part_range;
  });
  Range<Label> all = parts[0];
  for (const Range<Label>& part : parts) {
    all.low = std::min(all.low, part.low);
    all.high = std::max(all.high, part.high);
    all.whole &= part.whole;
  }
  return all;
}

}  // namespace labels

// Distinct labels, ascending, and the index of each row's label among them; nothing where labels
// are not whole numbers, or a distance of `widest` or more apart. There is a label.
template <class Label>
std::optional<std::vector<Label>> index_labels(std::span<const Label> given, double widest,
                                               Team& team, double* index) {
  const labels::Range<Label> range = labels::range_of(given, team);
  const double distance = labels::distance(range.low, range.high);
  if (!range.whole || !(distance < widest)) return std::nullopt;
  const std::size_t size = static_cast<std::size_t>(distance) + 1;
  std::vector<std::vector<std::uint8_t>> seen(static_cast<std::size_t>(team.size()),
                                              std::vector<std::uint8_t>(size));
  const auto each = [&](auto body) { team.for_chunks(0, given.size(), labels::grain, body); };
  each([&](std::size_t begin, std::size_t end, int member) {
    std::uint8_t* part_seen = seen[static_cast<std::size_t>(member)].data();
    for (std::size_t i = begin; i < end; ++i) part_seen[labels::offset(range.low, given[i])] = 1;
  });
  std::vector<Label> distinct;
  std::vector<double> number(size);
  for (std::size_t k = 0; k < size; ++k) {
    const bool is_seen = std::any_of(seen.begin(), seen.end(),
                                     [k](const auto& part_seen) { return part_seen[k] != 0; });
    if (!is_seen) continue;
    number[k] = static_cast<double>(distinct.size());
    distinct.push_back(static_cast<Label>(range.low + static_cast<Label>(k)));
    if (std::is_floating_point_v<Label> && distinct.back() == 0)  // -0.0 or 0.0: the last one
      distinct.back() = *std::find(given.rbegin(), given.rend(), Label{0});
  }
  each([&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i)
      index[i] = number[labels::offset(range.low, given[i])];
  });
  return distinct;
}

// Number of rows of each class, by class codes. Four counters a class and thread: one would wait
// for its own last addition.
inline std::vector<std::int64_t> class_counts(std::span<const double> codes, std::size_t n_classes,
                                              Team& team) {
  constexpr std::size_t counters = 4;
  std::vector<std::vector<std::int64_t>> parts(static_cast<std::size_t>(team.size()),
                                               std::vector<std::int64_t>(counters * n_classes));
  const auto count = [&](std::size_t begin, std::size_t end, int member) {
    std::int64_t* part_counts = parts[static_cast<std::size_t>(member)].data();
    for (std::size_t i = begin; i < end; ++i) {
      if (!(codes[i] >= 0 && codes[i] < static_cast<double>(n_classes)))
        throw std::invalid_argument("a code that is no class");
      ++part_counts[i % counters + counters * static_cast<std::size_t>(codes[i])];
    }
  };
  team.for_chunks(0, codes.size(), labels::grain, count);
  std::vector<std::int64_t> counts(n_classes);
  for (const auto& part : parts)
    for (std::size_t k = 0; k < part.size(); ++k) counts[k / counters] += part[k];
  return counts;
}

}  // namespace arboost
