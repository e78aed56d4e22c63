// Draws with replacement -> the drawn rows, ascending, and the count of each.
//
// A draw is a random point of an interval in which every row owns a stretch as long as its weight:
//
//   rows      0    1   2          3 4
//   places  |----|---|----------|-|----|     ends[i]: where the stretch of row i ends
//   parts   |        |        |        |     of equal length: draws are sorted by part, then each
//                                            part is counted by itself, in the cache
//
// Points are integers and draws are hashes, so the sample does not depend on the threads. Linear in
// rows and draws, 10 to 20 ns each; parallel over draws, then over parts.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/buffer.h"  // make_room
#include "base/types.h"   // RowId
#include "grow/sample/draw_place.h"
#include "grow/sample/sample.h"

namespace arboost {
namespace {

constexpr std::size_t chunk_rows = 16384;
constexpr std::size_t chunk_draws = 65536;
constexpr std::size_t part_size = 16384;  // draws or rows, whichever are more
constexpr std::size_t most_parts = 1024;

int bits_of(std::uint64_t x) {
  return static_cast<int>(std::bit_width(x));
}

// Random places on a line of `length`, sorted by part but not inside a part. `Place` is an unsigned
// type of all places.
template <class Place>
struct Draws {
  std::size_t n_parts;
  int shift;  // a part has 2^shift places
  std::vector<std::size_t> start;
  Buffer<Place> places;
};

template <class Place>
Draws<Place> draw_places(std::uint64_t length, std::size_t n_rows, std::size_t n,
                         const DrawSeed& seed, Team& team) {
  const std::size_t wanted =
      std::clamp<std::size_t>(std::max(n_rows, n) / part_size, 1, most_parts);
  Draws<Place> draws;
  draws.shift = std::max(0, bits_of(length - 1) - bits_of(wanted - 1));
  draws.n_parts = static_cast<std::size_t>((length - 1) >> draws.shift) + 1;
  draws.places = Buffer<Place>(n);
  // Loops copy it: what does not depend on j stays in registers then.
  const auto random = [seed, length](std::size_t j) {
    return draw_place(seed.seed, seed.draw, j, length);
  };
  // next[chunk][part]: where the chunk's next draw in this part goes.
  const std::size_t n_parts = draws.n_parts, n_chunks = (n + chunk_draws - 1) / chunk_draws;
  std::vector<std::uint32_t> next(n_chunks * n_parts, 0);
  const int shift = draws.shift;
  team.for_chunks(0, n, chunk_draws, [&](std::size_t begin, std::size_t end, int) {
    const auto draw = random;
    std::uint32_t* count = next.data() + begin / chunk_draws * n_parts;
    for (std::size_t j = begin; j < end; ++j) ++count[draw(j) >> shift];
  });
  draws.start.assign(n_parts + 1, n);
  std::uint32_t at = 0;
  for (std::size_t part = 0; part < n_parts; ++part) {
    draws.start[part] = at;
    for (std::size_t chunk = 0; chunk < n_chunks; ++chunk) {
      const std::uint32_t count = next[chunk * n_parts + part];
      next[chunk * n_parts + part] = at;
      at += count;
    }
  }
  Place* places = draws.places.data();
  team.for_chunks(0, n, chunk_draws, [&](std::size_t begin, std::size_t end, int) {
    const auto draw = random;
    std::uint32_t* to = next.data() + begin / chunk_draws * n_parts;
    for (std::size_t j = begin; j < end; ++j) {
      const std::uint64_t drawn = draw(j);
      places[to[drawn >> shift]++] = static_cast<Place>(drawn);
    }
  });
  return draws;
}

// Finds rows by places in [begin, end): a table of equal steps says where to start looking.
class StretchesOfRows {
 public:
  StretchesOfRows(const Buffer<std::uint64_t>& ends, std::uint64_t begin, std::uint64_t end,
                  std::size_t n_draws)
      : ends_(ends.data()), begin_(begin) {
    const auto at = [&](std::uint64_t drawn) {
      return static_cast<std::size_t>(std::upper_bound(ends_, ends_ + ends.size(), drawn) - ends_);
    };
    first_ = at(begin);
    last_ = at(end - 1);
    // Two to four steps a draw: however the rows lie, all draws together pass fewer rows than there
    // are.
    shift_ = std::max(0, bits_of(end - begin - 1) - bits_of(n_draws) - 1);
    const std::size_t n_steps = static_cast<std::size_t>((end - begin - 1) >> shift_) + 1;
    guide_.assign(n_steps + 1, 0);
    // A step starts after all rows that end at or before its beginning: rows are counted by the
    // first step after them, and prefix sums of the counts give the starts, without branches.
    const std::uint64_t before_next = (std::uint64_t{1} << shift_) - 1;
    for (std::size_t row = first_; row < last_; ++row)
      ++guide_[static_cast<std::size_t>((ends_[row] - begin + before_next) >> shift_)];
    auto row = static_cast<std::uint32_t>(first_);
    for (std::uint32_t& step : guide_) step = row += step;
  }

  std::size_t first() const { return first_; }
  std::size_t last() const { return last_; }
  std::size_t row_at(std::uint64_t drawn) const {
    std::size_t row = guide_[static_cast<std::size_t>((drawn - begin_) >> shift_)];
    // Most are a row or two away: advanced without branches, which would be mispredicted.
    row += ends_[row] <= drawn ? 1 : 0;
    row += ends_[row] <= drawn ? 1 : 0;
    while (ends_[row] <= drawn) ++row;
    return row;
  }

 private:
  const std::uint64_t* ends_;
  std::uint64_t begin_;
  std::size_t first_ = 0, last_ = 0;
  int shift_ = 0;
  std::vector<std::uint32_t> guide_;
};

// Stretches of length 1.
struct EqualRows {
  EqualRows(std::uint64_t begin_, std::uint64_t end_) : begin(begin_), end(end_) {}
  std::uint64_t begin, end;

  std::size_t first() const { return static_cast<std::size_t>(begin); }
  std::size_t last() const { return static_cast<std::size_t>(end - 1); }
  std::size_t row_at(std::uint64_t drawn) const { return static_cast<std::size_t>(drawn); }
};

// Writes down the rows of some draws, and how often each was drawn; returns how many rows they are.
template <class Rows, class Place>
std::size_t count_rows(const Rows& rows, const Place* places, std::size_t n,
                       std::uint32_t* positions, float* weights) {
  std::vector<std::uint32_t> counts(rows.last() - rows.first() + 1, 0);
  for (std::size_t j = 0; j < n; ++j) ++counts[rows.row_at(places[j]) - rows.first()];
  std::size_t n_drawn = 0;
  for (std::size_t i = 0; n_drawn < n && i < counts.size(); ++i) {
    positions[n_drawn] = static_cast<std::uint32_t>(rows.first() + i);
    weights[n_drawn] = static_cast<float>(counts[i]);
    n_drawn += counts[i] > 0 ? 1 : 0;
  }
  return n_drawn;
}

// rows_of(begin, end, n_draws) are the rows at the places of a part.
template <class Place, class RowsOf>
void count_parts(const Draws<Place>& draws, std::uint64_t length, RowsOf rows_of, Sample& out,
                 Team& team) {
  const std::size_t n = draws.places.size();
  out.weighted = true;
  out.on_device = false;
  make_room(out.positions, n);
  make_room(out.weights, n);
  std::uint32_t* positions = out.positions.data();
  float* weights = out.weights.data();
  std::vector<std::size_t> n_drawn_of_part(draws.n_parts, 0);
  team.for_chunks(0, draws.n_parts, 1, [&](std::size_t part, std::size_t, int) {
    const std::size_t start = draws.start[part], n_draws = draws.start[part + 1] - start;
    if (n_draws == 0) return;
    const std::uint64_t begin = std::uint64_t{part} << draws.shift;
    const std::uint64_t end = std::min(length, begin + (std::uint64_t{1} << draws.shift));
    n_drawn_of_part[part] = count_rows(rows_of(begin, end, n_draws), draws.places.data() + start,
                                       n_draws, positions + start, weights + start);
  });
  // The parts move together. A row may have draws at the end of one and in those that follow.
  out.size = 0;
  for (std::size_t part = 0; part < draws.n_parts; ++part) {
    std::size_t from = draws.start[part], n_rows = n_drawn_of_part[part];
    if (n_rows > 0 && out.size > 0 && positions[out.size - 1] == positions[from]) {
      weights[out.size - 1] += weights[from];
      ++from;
      --n_rows;
    }
    std::memmove(positions + out.size, positions + from, n_rows * sizeof *positions);
    std::memmove(weights + out.size, weights + from, n_rows * sizeof *weights);
    out.size += n_rows;
  }
}

[[noreturn]] void refuse_weights(std::span<const double> weight) {
  for (std::size_t i = 0; i < weight.size(); ++i)
    if (!(weight[i] >= 0 && std::isfinite(weight[i])))
      throw std::invalid_argument("the weight of row " + std::to_string(i) + " is " +
                                  std::to_string(weight[i]) +
                                  ", but weights must be finite numbers from 0 on");
  throw std::invalid_argument(
      "the weights add up to 0, or to what is too small or too large for a double: bring them to "
      "a mean near 1");
}

double sum_of(std::span<const double> weight, Team& team) {
  std::vector<double> sums((weight.size() + chunk_rows - 1) / chunk_rows, 0);
  team.for_chunks(0, weight.size(), chunk_rows, [&](std::size_t begin, std::size_t end, int) {
    double sum = 0;
    bool allowed = true;
    for (std::size_t i = begin; i < end; ++i) {
      sum += weight[i];
      allowed &= weight[i] >= 0;
    }
    sums[begin / chunk_rows] = allowed ? sum : -1;
  });
  double sum = 0;
  for (const double s : sums) sum = s < 0 || sum < 0 ? -1 : sum + s;
  return sum;
}

// Ends of the rows' stretches, in an interval of about 2^62 points.
Buffer<std::uint64_t> ends_of(std::span<const double> weight, Team& team) {
  const double sum = sum_of(weight, team);
  if (!(sum >= 0x1p-900 && std::isfinite(sum))) refuse_weights(weight);
  const double scale = 0x1p62 / sum;
  Buffer<std::uint64_t> ends(weight.size());
  std::vector<std::uint64_t> length((weight.size() + chunk_rows - 1) / chunk_rows, 0);
  team.for_chunks(0, weight.size(), chunk_rows, [&](std::size_t begin, std::size_t end, int) {
    std::uint64_t at = 0;
    for (std::size_t i = begin; i < end; ++i) {
      at += static_cast<std::uint64_t>(static_cast<std::int64_t>(weight[i] * scale));
      ends[i] = at;
    }
    length[begin / chunk_rows] = at;
  });
  std::uint64_t before = 0;
  for (std::uint64_t& chunk_length : length) {
    const std::uint64_t start = before;
    before += chunk_length;
    chunk_length = start;
  }
  team.for_chunks(0, weight.size(), chunk_rows, [&](std::size_t begin, std::size_t end, int) {
    const std::uint64_t start = length[begin / chunk_rows];
    for (std::size_t i = begin; i < end; ++i) ends[i] += start;
  });
  return ends;
}

}  // namespace

DrawChances::DrawChances(std::span<const double> weight, Team& team) : ends(ends_of(weight, team)) {
  static std::atomic<std::uint64_t> n_chances{0};
  version = ++n_chances;
}

void bootstrap(const DrawChances& chances, std::size_t n_draws, const DrawSeed& seed, Sample& out,
               Team& team) {
  const Buffer<std::uint64_t>& ends = chances.ends;
  const std::uint64_t length = ends[ends.size() - 1];
  const auto draws = draw_places<std::uint64_t>(length, ends.size(), n_draws, seed, team);
  count_parts(
      draws, length,
      [&](std::uint64_t begin, std::uint64_t end, std::size_t n) {
        return StretchesOfRows(ends, begin, end, n);
      },
      out, team);
}

void bootstrap(std::size_t n_rows, std::size_t n_draws, const DrawSeed& seed, Sample& out,
               Team& team) {
  const auto draws = draw_places<RowId>(n_rows, n_rows, n_draws, seed, team);
  count_parts(
      draws, n_rows,
      [](std::uint64_t begin, std::uint64_t end, std::size_t) { return EqualRows(begin, end); },
      out, team);
}

}  // namespace arboost
