// Cost: that of the tree, and for each generation of parts a sort of the values and a pass over the
// rows. There are few generations: each is finer than the one before by 2^24 or so.
#include "grow/tree_parts.h"

#include <algorithm>
#include <bit>  // bit_cast
#include <cmath>
#include <limits>
#include <numeric>  // accumulate
#include <queue>
#include <stdexcept>
#include <utility>

#include "base/random.h"
#include "grow/rows/tree_scaling.h"
#include "grow/rows/value_bounds.h"
#include "loss/leaf.h"  // no_leaf

namespace arboost {
namespace {

// Units in a typical spread below which a tree needs parts. Narrow pairs are rounded at random,
// anew for each tree.
constexpr double least_units = 8, least_narrow_units = 0.25;
// Values of a node that differ by this number of units are separated; others are the next part.
constexpr std::int32_t tolerance = 32;
// Absolute errors: the largest value is limited to this multiple of the sum of all smaller ones. A
// median of more than two rows does not depend on its distance.
constexpr double largest_share = 64;

// The least difference, but 0, of sorted values that an eighth of the rows are apart.
double typical_spread(const std::vector<double>& sorted) {
  const std::size_t n = sorted.size(), apart = std::max<std::size_t>(1, n / 8);
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i + apart < n; ++i) {
    const double difference = sorted[i + apart] - sorted[i];
    if (difference > 0) least = std::min(least, difference);
  }
  return least;
}

// An upper bound of a sum of nonnegative numbers, by integers: their order does not count.
struct SumBound {
  double largest = 0;
  std::int64_t sum = 0;

  void see(double x) { largest = std::max(largest, x); }
  void add(double x) {  // once all are seen
    if (largest > 0) sum += static_cast<std::int64_t>(std::ceil(x / largest * 0x1p30));
  }

  // Powers of 2 by which the numbers, and their sum, are at most 2^bits.
  int exponent(int bits) const {
    int exponent = 0;
    std::frexp(largest, &exponent);
    return std::min(bits - exponent, 1000);
  }
  int exponent_of_sum(int bits) const {
    int exponent = 0, more = 0;
    const double fraction = std::frexp(largest, &exponent);  // the sum itself may overflow
    std::frexp(fraction * static_cast<double>(sum) * 0x1p-30, &more);
    return std::min(bits - exponent - more, 1000);
  }
};

std::pair<double, double> extremes(const std::vector<double>& values) {
  double low = values.front(), high = values.front();
  for (const double y : values) {
    low = y < low ? y : low;
    high = y > high ? y : high;
  }
  return {low, high};
}

// The spread below which the unit of a tree of these values, all at once, is too coarse; 0: none.
double least_spread(const std::vector<double>& values, const TreeParams& params) {
  const auto [low, high] = extremes(values);
  const double middle = params.criterion == Criterion::poisson ? 0 : low / 2 + high / 2;
  const double largest = std::max(std::abs(low - middle), high - middle);
  if (params.criterion == Criterion::absolute_error) return least_units * 0x1p-29 * largest;
  const double scale = 0x1p30 / largest;
  if (!std::isfinite(scale)) return 0;
  std::int64_t units = 0;  // the order of integers does not count
  for (const double y : values)
    units += static_cast<std::int64_t>(std::abs(y - middle) * scale) + 1;
  const double sum = static_cast<double>(units) * 0x1p-30;  // in units of the largest
  const auto n = static_cast<double>(values.size());
  const bool narrow = values.size() >= narrow_rows && sum >= fine_mean_units * 0x1p-14 * n;
  const double unit = std::max(narrow ? 0x1p-14 : 0x1p-29, std::ldexp(sum, 1 - params.sum_bits));
  return (narrow ? least_narrow_units : least_units) * unit * largest;
}

// False if no eighth of the values, unless they are all the same, is within a spread: two passes
// over many values are faster than a sort.
bool may_be_within(const std::vector<double>& values, double spread) {
  constexpr double most_bins = 1 << 20;
  if (values.size() < narrow_rows) return true;
  const auto [low, high] = extremes(values);
  const double from = low, per_spread = 1 / spread;
  if (!((high - low) * per_spread < most_bins)) return true;
  const auto bin_of = [=](double y) { return static_cast<std::size_t>((y - from) * per_spread); };
  std::vector<std::uint32_t> count(bin_of(high) + 2, 0);
  for (const double y : values) ++count[bin_of(y)];
  std::vector<std::uint8_t> is_full(count.size(), 0);  // 2: its first value is known
  bool any = false;
  for (std::size_t bin = 0; bin + 1 < count.size(); ++bin) {
    if (count[bin] + count[bin + 1] <= values.size() / 8) continue;
    if (count[bin] > 0 && count[bin + 1] > 0) return true;
    is_full[count[bin] > 0 ? bin : bin + 1] = 1;
    any = true;
  }
  if (!any) return false;
  std::vector<double> first(count.size());  // of the values in a full bin
  for (const double y : values) {
    const std::size_t bin = bin_of(y);
    if (is_full[bin] == 0) continue;
    if (is_full[bin] == 1) first[bin] = y;
    is_full[bin] = 2;
    if (first[bin] != y) return true;
  }
  return false;
}

// True if the unit of a tree of these values, all at once, is too coarse. May sort them.
bool is_coarse(std::vector<double>& values, const TreeParams& params) {
  const double spread = least_spread(values, params);
  if (!(spread > 0) || !may_be_within(values, spread)) return false;
  std::sort(values.begin(), values.end());
  return typical_spread(values) < spread;
}

// The distance from the middle from which on values are all the same to medians.
double largest_distance(std::vector<double> distances) {
  std::sort(distances.begin(), distances.end());
  double sum = 0;
  for (const double distance : distances) {
    if (sum > 0 && distance > largest_share * sum) return largest_share * sum;
    sum += distance;
  }
  return std::numeric_limits<double>::infinity();
}

// One tree and its parts.
class PartedTree {
 public:
  PartedTree(Grower& grower, const LeafTarget& target, const TreeRequest& request,
             Gradients& gradients, std::size_t width)
      : grower_(grower),
        target_(target),
        request_(request),
        gradients_(gradients),
        params_(grower.params()),
        width_(width),
        rounding_seed_(
            counter_hash(request.seed, Purpose::gradient_rounding, request.number, width)),
        grown_(width),
        nodes_(width) {
    const Sample* sample = request.sample;
    const std::size_t n = sample != nullptr ? sample->size : grower.training_rows().n;
    positions_.resize(n);
    weight_.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      positions_[i] = sample != nullptr ? sample->positions[i] : static_cast<std::uint32_t>(i);
      const float* counts = sample != nullptr ? sample->weights_or_null() : nullptr;
      weight_[i] = (target.weight.empty() ? 1.0 : target.weight[positions_[i]]) *
                   (counts != nullptr ? static_cast<double>(counts[i]) : 1.0);
    }
    std::vector<double> ascending(weight_);
    std::sort(ascending.begin(), ascending.end());
    const double total = std::accumulate(ascending.begin(), ascending.end(), 0.0);
    leaf_.assign(n, 0);
    request_.sample = &sample_;
    request_.part = {.is_whole = false, .tree_weight = total};
  }

  void grow(Team& team) {
    nodes_.resize(1);
    Part root{0, std::vector<std::uint32_t>(positions_.size()), 0, 1};
    for (std::size_t i = 0; i < root.rows.size(); ++i) root.rows[i] = static_cast<std::uint32_t>(i);
    open_.push_back(std::move(root));
    Scale scale;
    while (!open_.empty()) {
      const Part part = std::move(open_.back());
      open_.pop_back();
      const bool varies = find_scale(part, scale);
      if (part.node != 0 && (!varies || !may_split(part))) continue;
      set_pairs(part, scale);
      grow_part(part, scale.is_tolerant, team);
      if (scale.is_tolerant && grown_.left.front() == 0) {
        scale.is_tolerant = false;  // nothing was told apart
        set_pairs(part, scale);
        grow_part(part, false, team);
      }
      take(part, scale.is_tolerant);
      team.poll_if_due(0);
    }
  }

  // The nodes in the order of a tree that is grown at once, up to its limit of leaves.
  void append(GrownTrees& forest) {
    using Waiting = std::pair<double, std::int64_t>;  // gain, and minus the index in the tree
    std::priority_queue<Waiting> waiting;
    std::vector<std::size_t> order;
    std::vector<std::int32_t> left;
    const auto add = [&](std::size_t node) {
      const double gain = params_.best_first ? nodes_.gain[node] : 0;
      if (nodes_.left[node] != 0) waiting.emplace(gain, -static_cast<std::int64_t>(order.size()));
      order.push_back(node);
      left.push_back(0);
    };
    add(0);
    for (std::int64_t n = params_.max_leaves - 1; n > 0 && !waiting.empty(); --n) {
      const auto id = static_cast<std::size_t>(-waiting.top().second);
      waiting.pop();
      left[id] = static_cast<std::int32_t>(order.size());
      const auto child = static_cast<std::size_t>(nodes_.left[order[id]]);
      add(child);
      add(child + 1);
    }
    // Children come after their parents: rows of nodes beyond the limit are those of the leaf
    // above.
    std::vector<std::uint32_t> new_id(nodes_.left.size(), no_leaf);
    for (std::size_t id = 0; id < order.size(); ++id)
      new_id[order[id]] = static_cast<std::uint32_t>(id);
    for (std::size_t node = 0; node < nodes_.left.size(); ++node) {
      const auto child = static_cast<std::size_t>(nodes_.left[node]);
      if (child != 0 && new_id[child] == no_leaf) new_id[child] = new_id[child + 1] = new_id[node];
    }
    for (std::uint32_t& leaf : leaf_) leaf = new_id[leaf];
    forest.make_room(order.size());
    for (std::size_t id = 0; id < order.size(); ++id) {
      const std::size_t node = order[id];
      const bool is_split = left[id] != 0;
      forest.feature.push_back(is_split ? nodes_.feature[node] : 0);
      forest.bin.push_back(is_split ? nodes_.bin[node] : 0);
      forest.left.push_back(left[id]);
      forest.default_left.push_back(is_split ? nodes_.default_left[node] : 0);
      const std::int32_t set = is_split ? nodes_.set[node] : -1;
      forest.set.push_back(set < 0 ? -1 : static_cast<std::int32_t>(forest.sets.size()));
      if (set >= 0) forest.sets.push_back(nodes_.sets[static_cast<std::size_t>(set)]);
      forest.gain.push_back(is_split ? nodes_.gain[node] : 0);
      forest.cover.push_back(nodes_.cover[node]);
      const double* values = nodes_.value.data() + node * width_;
      forest.value.insert(forest.value.end(), values, values + width_);
    }
    forest.tree_start.push_back(static_cast<std::int64_t>(forest.left.size()));
    grower_.set_leaves(std::move(positions_), std::move(leaf_));
  }

 private:
  struct Part {
    std::size_t node;                 // the root, among nodes_
    std::vector<std::uint32_t> rows;  // numbers among the tree's rows, ascending
    std::int64_t depth;
    std::uint64_t path;
  };
  struct Scale {
    bool is_tolerant;
    std::vector<double> middle, most;  // by output: greatest distance from the middle
  };

  double y(std::size_t i, std::size_t k) const { return target_.y[positions_[i] * width_ + k]; }
  bool may_split(const Part& part) const {
    const auto n = static_cast<std::int64_t>(part.rows.size());
    return part.depth < params_.max_depth &&
           n >= std::max<std::int64_t>(2, params_.min_samples_split);
  }

  // False if all values are the same.
  bool find_scale(const Part& part, Scale& scale) const {
    const std::size_t n = part.rows.size();
    const bool is_count = params_.criterion == Criterion::poisson;
    const bool is_absolute = params_.criterion == Criterion::absolute_error;
    scale.is_tolerant = false;
    scale.middle.assign(width_, 0);
    scale.most.assign(width_, std::numeric_limits<double>::infinity());
    std::vector<double> sorted(n), medians(width_);
    bool varies = false;
    for (std::size_t k = 0; k < width_; ++k) {
      for (std::size_t j = 0; j < n; ++j) sorted[j] = y(part.rows[j], k);
      std::sort(sorted.begin(), sorted.end());
      varies |= sorted.front() < sorted.back();
      scale.is_tolerant |= is_coarse(sorted, params_);
      medians[k] = is_count ? 0 : sorted[n / 2];
      scale.middle[k] = is_count ? 0 : sorted.front() / 2 + sorted.back() / 2;
    }
    if (!scale.is_tolerant) return varies;
    scale.middle = medians;
    for (std::size_t k = 0; is_absolute && k < width_; ++k) {
      for (std::size_t j = 0; j < n; ++j) sorted[j] = std::abs(y(part.rows[j], k) - medians[k]);
      scale.most[k] = largest_distance(sorted);
    }
    return varies;
  }

  double distance(const Scale& scale, std::size_t i, std::size_t k) const {
    return std::clamp(y(i, k) - scale.middle[k], -scale.most[k], scale.most[k]);
  }
  // Tolerant parts round by a hash of the value: values of less than a unit are not lost in sums,
  // whatever the order of the rows. Sums fit those of the split search, so nothing is rounded
  // twice.
  void set_pairs(const Part& part, const Scale& scale) {
    const auto size_of = [&](std::size_t k, std::uint32_t i) {
      return weight_[i] * std::abs(distance(scale, i, k));
    };
    SumBound h;
    for (const std::uint32_t i : part.rows) h.see(weight_[i]);
    SumBound g;
    for (std::size_t k = 0; k < width_; ++k)
      for (const std::uint32_t i : part.rows) g.see(size_of(k, i));
    if (!std::isfinite(g.largest))
      throw std::invalid_argument(
          "a weight times its target is infinite: bring the target, or the weights, to a smaller "
          "scale");
    int g_exponent = g.exponent(30), h_exponent = h.exponent(30);
    if (scale.is_tolerant) {
      for (const std::uint32_t i : part.rows) h.add(weight_[i]);
      h_exponent = std::min(h_exponent, h.exponent_of_sum(params_.sum_bits - 1));
      for (std::size_t k = 0; k < width_; ++k) {
        g.sum = 0;
        for (const std::uint32_t i : part.rows) g.add(size_of(k, i));
        g_exponent = std::min(g_exponent, g.exponent_of_sum(params_.sum_bits - 1));
      }
    }
    const bool is_count = params_.criterion == Criterion::poisson;
    const double g_scale = std::ldexp(1.0, g_exponent), h_scale = std::ldexp(1.0, h_exponent);
    for (const std::uint32_t i : part.rows) {
      FixedPair* pair = gradients_.pairs.data() + positions_[i] * gradients_.row_stride();
      const std::int32_t h_units = nearest(weight_[i] * h_scale);
      for (std::size_t k = 0; k < width_; ++k) {
        const double value = -weight_[i] * distance(scale, i, k) * g_scale;
        const std::uint64_t random =
            mix_bits(std::bit_cast<std::uint64_t>(y(i, k)) ^ rounding_seed_);
        const double part_of_one = static_cast<double>(random >> 32) * 0x1p-32;
        std::int32_t g_units = scale.is_tolerant
                                   ? static_cast<std::int32_t>(std::floor(value + part_of_one))
                                   : nearest(value);
        if (is_count && value < 0)
          g_units = std::min(g_units, -1);  // a side of zeros has no deviance
        pair[k * gradients_.output_stride()] = {g_units, h_units};
      }
    }
    gradients_.g_exponent = g_exponent;
    gradients_.h_exponent = h_exponent;
    set_filled(gradients_);
  }

  void grow_part(const Part& part, bool is_tolerant, Team& team) {
    sample_.size = part.rows.size();
    make_room(sample_.positions, sample_.size);
    for (std::size_t j = 0; j < sample_.size; ++j) sample_.positions[j] = positions_[part.rows[j]];
    request_.part.depth = part.depth;
    request_.part.path = part.path;
    request_.part.tolerance = is_tolerant ? 2 * tolerance : 1;
    grown_.keep(0, 0);
    grower_.grow(gradients_, 0, request_, grown_, team);
  }

  // Adds the nodes of a part, and opens those of its leaves that are parts themselves.
  void take(const Part& part, bool is_tolerant) {
    const std::size_t n = grown_.n_nodes(0), base = nodes_.left.size() - 1;
    const auto joined_node = [&](std::size_t node) { return node == 0 ? part.node : base + node; };
    const auto n_sets = static_cast<std::int32_t>(nodes_.sets.size());
    nodes_.resize(base + n);
    std::vector<std::pair<std::int64_t, std::uint64_t>> at(n);  // depths and paths
    at[0] = {part.depth, part.path};
    for (std::size_t node = 0; node < n; ++node) {
      const std::size_t to = joined_node(node);
      const std::int32_t left = grown_.left[node], set = grown_.set[node];
      nodes_.feature[to] = grown_.feature[node];
      nodes_.bin[to] = grown_.bin[node];
      nodes_.left[to] = left == 0 ? 0 : static_cast<std::int32_t>(base) + left;
      nodes_.default_left[to] = grown_.default_left[node];
      nodes_.set[to] = set < 0 ? -1 : n_sets + set;
      nodes_.gain[to] = grown_.gain[node];
      nodes_.cover[to] = grown_.cover[node];
      std::copy_n(grown_.values(0) + node * width_, width_, nodes_.value.data() + to * width_);
      if (left == 0) continue;
      const auto child = static_cast<std::size_t>(left);
      at[child] = {at[node].first + 1, mix_bits(2 * at[node].second)};
      at[child + 1] = {at[node].first + 1, mix_bits(2 * at[node].second + 1)};
    }
    nodes_.sets.insert(nodes_.sets.end(), grown_.sets.begin(), grown_.sets.end());
    std::vector<std::vector<std::uint32_t>> rows_of(is_tolerant ? n : 0);
    for (std::size_t j = 0; j < part.rows.size(); ++j) {
      const std::uint32_t leaf = grower_.leaf_of(j);
      leaf_[part.rows[j]] = static_cast<std::uint32_t>(joined_node(leaf));
      if (is_tolerant) rows_of[leaf].push_back(part.rows[j]);
    }
    for (std::size_t node = 0; node < rows_of.size(); ++node)
      if (rows_of[node].size() > 1 && is_unresolved(rows_of[node]))
        open_.push_back(
            {joined_node(node), std::move(rows_of[node]), at[node].first, at[node].second});
  }

  // True if the values of all rows are the same to a tolerant part.
  bool is_unresolved(const std::vector<std::uint32_t>& rows) const {
    for (std::size_t k = 0; k < width_; ++k) {
      ValueBounds bounds;
      for (const std::uint32_t i : rows) {
        const std::size_t at =
            positions_[i] * gradients_.row_stride() + k * gradients_.output_stride();
        bounds.narrow(bounds_of(gradients_.pairs[at], 2 * tolerance));
      }
      if (bounds.is_empty()) return false;
    }
    return true;
  }

  Grower& grower_;
  const LeafTarget& target_;
  TreeRequest request_;
  Gradients& gradients_;
  const TreeParams& params_;
  std::size_t width_;
  std::uint64_t rounding_seed_;
  std::vector<std::uint32_t> positions_;  // of the tree's rows
  std::vector<double> weight_;            // with the counts of the sample
  std::vector<std::uint32_t> leaf_;       // among nodes_
  Sample sample_;                         // the rows of a part
  GrownTrees grown_;                      // the tree of a part
  GrownTrees nodes_;                      // of all parts; its arrays alone
  std::vector<Part> open_;
};

}  // namespace

bool needs_parts(std::span<const double> y, std::size_t width, const TreeParams& params) {
  std::vector<double> values(y.size() / width);
  for (std::size_t k = 0; k < width; ++k) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = y[i * width + k];
    if (is_coarse(values, params)) return true;
  }
  return false;
}

void grow_in_parts(Grower& grower, const LeafTarget& target, const TreeRequest& request,
                   Gradients& gradients, GrownTrees& forest, Team& team) {
  if (grower.params().device >= 0 || !grower.params().monotone.empty())
    throw std::logic_error("a tree in parts on a device, or with monotone constraints");
  const std::size_t n_trees = forest.n_trees(), n_sets = forest.sets.size();
  PartedTree tree(grower, target, request, gradients, forest.width);
  tree.grow(team);
  try {
    tree.append(forest);
  } catch (...) {
    forest.keep(n_trees, n_sets);
    throw;
  }
}

}  // namespace arboost
