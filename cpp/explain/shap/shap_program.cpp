// Trees -> steps and their numbers. About 100 ns a split; one object a thread.
#include "explain/shap/shap_program.h"

#include <cmath>  // abs, ceil and sqrt, which are exact everywhere

#include "base/require.h"

namespace arboost {
namespace {

// Newton's method on the Legendre polynomials, O(n^2) for n points.
// From 0 to pi / 2, to 1e-7: where Newton starts.
double rough_cosine(double x) {
  const double s = x * x;
  return 1 - s / 2 * (1 - s / 12 * (1 - s / 30 * (1 - s / 56 * (1 - s / 90 * (1 - s / 132)))));
}

struct Legendre {
  double value, slope;
};

Legendre legendre(std::size_t n, double x) {
  double before = 1, value = x;
  for (std::size_t k = 2; k <= n; ++k) {
    const auto degree = static_cast<double>(k);
    const double next = ((2 * degree - 1) * x * value - (degree - 1) * before) / degree;
    before = value;
    value = next;
  }
  const auto degree = static_cast<double>(n);
  return {value, degree * (x * value - before) / (x * x - 1)};
}

// Rounds up to a number of points with a specialised kernel, if there is one.
std::size_t with_kernel(std::size_t points) {
  return points == 5 ? 6 : points;
}

constexpr std::size_t most_partners = std::size_t{1} << 28;
constexpr std::size_t part_numbers = 16 * 1024;  // of a part, or few more

}  // namespace

Quadrature gauss_legendre(std::size_t n) {
  constexpr double pi = 3.141592653589793;
  constexpr int steps = 8;  // each doubles the digits
  Quadrature rule{std::vector<double>(n, 0.5), std::vector<double>(n, 1.0)};
  if (n < 2) return rule;
  for (std::size_t i = 0; i < (n + 1) / 2; ++i) {
    const double angle = pi * (static_cast<double>(i) + 0.75) / (static_cast<double>(n) + 0.5);
    double x = rough_cosine(angle);
    for (int step = 0; step < steps; ++step) {
      const Legendre at = legendre(n, x);
      x -= at.value / at.slope;
    }
    if (2 * i + 1 == n) x = 0;
    const double slope = legendre(n, x).slope;
    const double weight = 1 / ((1 - x * x) * slope * slope);
    rule.points[i] = (1 - x) / 2;
    rule.points[n - 1 - i] = (1 + x) / 2;
    rule.weights[i] = rule.weights[n - 1 - i] = weight;
  }
  return rule;
}

std::size_t points_for(std::size_t n_factors) {
  const std::size_t exact = (n_factors + 1) / 2 + (n_factors == 0 ? 1 : 0);
  const double root = std::sqrt(static_cast<double>(n_factors));
  return std::min(exact, static_cast<std::size_t>(std::ceil(5 * root)) + 8);
}

ShapForest::ShapForest(const Forest& forest, std::span<const double> covers, std::size_t features,
                       std::size_t outputs)
    : trees(forest),
      cover(covers),
      n_features(features),
      n_outputs(outputs),
      column(forest.left.size(), 0),
      sets(forest.level_sets.size() / 4) {
  require(forest.width == 1 || forest.width == outputs, "leaves that do not fit the outputs");
  require(forest.tree_start.front() == 0, "trees outside the nodes");
  UsedColumns used(features);
  std::vector<std::uint8_t> seen(forest.left.size(), 0);
  for (std::size_t t = 0; t < n_trees(); ++t) {
    const std::size_t first = first_node(t), last = first_node(t + 1);
    require(first < last && last <= forest.left.size(), "a tree without nodes");
    require(static_cast<std::size_t>(forest.output[t]) < outputs, "a tree for an unknown output");
    for (std::size_t node = first; node < last; ++node) {
      if (forest.left[node] == 0) continue;
      const std::size_t left = first + static_cast<std::size_t>(forest.left[node]);
      require(left > node && left < last - 1 && !seen[left] && !seen[left + 1],
              "a child outside its tree, or of two nodes");
      seen[left] = seen[left + 1] = 1;
      const auto feature = static_cast<std::size_t>(forest.feature[node]);
      require(feature < features, "a split on an unknown feature");
      const bool has_set = forest.level_set[node] >= 0;
      require(!used.has(feature, !has_set),
              "a feature is split both by level sets and by thresholds");
      column[node] = used.number(feature, has_set);
      if (!has_set) continue;
      const auto number = static_cast<std::size_t>(forest.level_set[node]);
      require(number < sets.size(), "an unknown set of levels");
      sets[number] = forest.left_codes(node);
    }
  }
  columns = std::move(used.columns);
}

double ShapForest::left_share(std::size_t left) const {
  const double total = cover[left] + cover[left + 1];
  return total > 0 ? cover[left] / total : 0.5;
}

ShapProgram::ShapProgram(const ShapForest& forest, bool with_pairs)
    : forest_(forest), with_pairs_(with_pairs), deepest_(forest.columns.size(), -1) {}

void ShapProgram::set_tree(std::size_t tree) {
  first_ = forest_.first_node(tree);
  steps_.clear();
  origins_.clear();
  partners_.clear();
  depth_ = most_distinct_ = 0;
  if (forest_.trees.left[first_] != 0) visit(first_, {1, 1}, false);
  while (!path_.empty()) {
    if (path_.back().children < 2)
      next_child();
    else
      finish();
  }
  points_ = with_kernel(points_for(most_distinct_));
  while (rules_.size() <= points_) rules_.push_back({});
  if (rules_[points_].points.empty()) rules_[points_] = gauss_legendre(points_);
  divide();
}

void ShapProgram::visit(std::size_t node, const Edge& edge, bool is_left) {
  const Forest& trees = forest_.trees;
  const std::size_t depth = path_.size();
  const std::uint32_t column = forest_.column[node];
  const std::int32_t deepest = deepest_[column];
  const bool again = deepest >= 0;
  const auto above = static_cast<std::size_t>(again ? deepest : 0);
  const std::size_t left = first_ + static_cast<std::size_t>(trees.left[node]);
  const bool left_ends = trees.left[left] == 0, right_ends = trees.left[left + 1] == 0;

  met_.resize(std::max(met_.size(), depth + 2));
  depth_ = std::max(depth_, depth);
  origins_.push_back({edge, again ? met_[above + 1] : 1.0, left});
  steps_.push_back({.threshold = trees.threshold[node],
                    .edge = depth > 0 ? 0 : no_numbers,
                    .leaves = left_ends || right_ends ? 0 : no_numbers,
                    .partners = partners_.size(),
                    .n_partners = 0,
                    .set = static_cast<std::uint32_t>(trees.level_set[node]),
                    .depth = static_cast<std::uint32_t>(depth),
                    .column = column,
                    .above = static_cast<std::uint32_t>(above),
                    .is_end = false,
                    .is_left = is_left,
                    .missing_left = trees.default_left[node] != 0,
                    .again = again,
                    .above_left = again && path_[above].children == 1,
                    .again_above = depth > 0 && steps_[path_.back().enter].again,
                    .adds = false,
                    .closes = left_ends && right_ends});
  if (with_pairs_) add_partners(steps_.back());
  deepest_[column] = static_cast<std::int32_t>(depth);
  if (!again) most_distinct_ = std::max(most_distinct_, ++n_distinct_);
  path_.push_back({.enter = steps_.size() - 1,
                   .deepest = deepest,
                   .children = 0,
                   .adds = left_ends || right_ends});
}

void ShapProgram::next_child() {
  Frame& frame = path_.back();
  const auto side = static_cast<std::size_t>(frame.children++);
  const Origin& origin = origins_[frame.enter];
  const std::size_t child = origin.left + side;
  if (forest_.trees.left[child] == 0) return;
  const Edge edge = edge_to(origin, side);
  met_[path_.size()] = edge.above * edge.share;
  visit(child, edge, side == 0);
}

void ShapProgram::finish() {
  const Frame frame = path_.back();
  path_.pop_back();
  ShapStep end = steps_[frame.enter];
  deepest_[end.column] = frame.deepest;
  if (frame.deepest < 0) --n_distinct_;
  if (path_.empty()) return;
  Frame& above = path_.back();
  const ShapStep& parent = steps_[above.enter];
  end.is_end = true;
  end.column = parent.column;
  end.leaves = no_numbers;
  end.partners = parent.partners;
  end.n_partners = parent.n_partners;
  end.adds = above.adds;
  end.closes = above.children == 2 || forest_.trees.left[origins_[above.enter].left + 1] == 0;
  above.adds = true;
  steps_.push_back(end);
  origins_.push_back(origins_[frame.enter]);
}

void ShapProgram::add_partners(ShapStep& step) {
  for (std::size_t depth = 0; depth < path_.size(); ++depth) {
    const std::uint32_t other = steps_[path_[depth].enter].column;
    const bool is_last = deepest_[other] == static_cast<std::int32_t>(depth);
    if (!is_last || other == step.column) continue;
    require(partners_.size() < most_partners,
            "a tree has too many splits and features on its paths for SHAP interactions");
    partners_.push_back({depth + 1, ShapForest::pair(step.column, other)});
    ++step.n_partners;
  }
}

// Divides the steps into parts whose numbers fit the cache together with the rows.
void ShapProgram::divide() {
  parts_.clear();
  std::size_t taken = 0;
  const auto take = [&](std::size_t& at, std::size_t n) {
    if (at == no_numbers) return;
    at = taken;
    taken += n * points_;
  };
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (parts_.empty() || taken > part_numbers) {
      parts_.push_back({i, i, 0});
      taken = 0;
    }
    ShapStep& step = steps_[i];
    take(step.edge, step.is_end ? static_cast<std::size_t>(UpPart::size)
                                : static_cast<std::size_t>(DownPart::size));
    take(step.leaves, static_cast<std::size_t>(LeafPart::size));
    parts_.back().end = i + 1;
    parts_.back().n_numbers = taken;
  }
}

ShapRun ShapProgram::part(std::size_t number, std::size_t k) {
  const Part& part = parts_[number];
  numbers_.resize(std::max(numbers_.size(), part.n_numbers));
  for (std::size_t i = part.first; i < part.end; ++i) {
    const ShapStep& step = steps_[i];
    if (step.is_end)
      fill_up(step, origins_[i].edge);
    else if (step.edge != no_numbers)
      fill_down(step, origins_[i].edge);
    if (step.leaves != no_numbers) fill_leaves(step, origins_[i], k);
  }
  ShapRun run{};
  run.steps = steps_.data() + part.first;
  run.n_steps = part.end - part.first;
  run.numbers = numbers_.data();
  run.partners = partners_.data();
  run.sets = forest_.sets.data();
  run.points = points_;
  run.depth = depth_;
  run.is_start = number == 0;
  run.with_pairs = with_pairs_;
  return run;
}

// See the table at the head of explain/shap/shap_run.h.
struct ShapProgram::Factors {
  Factors(const Edge& edge, double at)
      : t(at),
        share(edge.above * edge.share),
        of_above(edge.above * (1 - t) + t),
        of_both(share * (1 - t) + t),
        lost(edge.above - share) {}

  double factor_in() const { return of_both / of_above; }
  double factor_out() const { return share * (1 - t) / of_above; }
  double in() const { return lost / (of_both * of_above); }
  double out() const { return -1 / (of_above * (1 - t)); }

  double t, share, of_above, of_both, lost;
};

ShapProgram::Edge ShapProgram::edge_to(const Origin& origin, std::size_t side) const {
  const double left = forest_.left_share(origin.left);
  return {origin.above, side == 0 ? left : 1 - left};
}

void ShapProgram::fill_down(const ShapStep& step, const Edge& edge) {
  const Quadrature& rule = rules_[points_];
  for (std::size_t p = 0; p < points_; ++p) {
    const Factors factors(edge, rule.points[p]);
    part_of(step.edge, DownPart::factor_in)[p] = factors.factor_in();
    part_of(step.edge, DownPart::factor_out)[p] = factors.factor_out();
    part_of(step.edge, DownPart::factor_apart)[p] = edge.share;
    if (!with_pairs_) continue;
    part_of(step.edge, DownPart::whole_in)[p] = (1 - factors.share) / factors.of_both;
    part_of(step.edge, DownPart::whole_out)[p] = -1 / (1 - factors.t);
  }
}

void ShapProgram::fill_up(const ShapStep& step, const Edge& edge) {
  const Quadrature& rule = rules_[points_];
  for (std::size_t p = 0; p < points_; ++p) {
    const Factors factors(edge, rule.points[p]);
    part_of(step.edge, UpPart::in)[p] = rule.weights[p] * factors.in();
    part_of(step.edge, UpPart::out)[p] = rule.weights[p] * factors.out();
  }
}

void ShapProgram::fill_leaves(const ShapStep& step, const Origin& origin, std::size_t k) {
  const Quadrature& rule = rules_[points_];
  const Forest& trees = forest_.trees;
  std::fill_n(numbers_.data() + step.leaves, static_cast<std::size_t>(LeafPart::size) * points_,
              0.0);
  const LeafPart sums[2] = {LeafPart::sum_left, LeafPart::sum_right};
  const LeafPart effects[2] = {LeafPart::left, LeafPart::right};
  for (std::size_t side = 0; side < 2; ++side) {
    const std::size_t leaf = origin.left + side;
    if (trees.left[leaf] != 0) continue;
    const Edge edge = edge_to(origin, side);
    const double value = trees.value[leaf * trees.width + k];
    for (std::size_t p = 0; p < points_; ++p) {
      const Factors factors(edge, rule.points[p]);
      const double in = value * factors.factor_in(), out = value * factors.factor_out();
      part_of(step.leaves, sums[side])[p] += in;
      part_of(step.leaves, sums[1 - side])[p] += out;
      part_of(step.leaves, LeafPart::sum_apart)[p] += value * edge.share;
      part_of(step.leaves, effects[side])[p] += rule.weights[p] * (in * factors.in());
      part_of(step.leaves, effects[1 - side])[p] += rule.weights[p] * (out * factors.out());
    }
  }
}

}  // namespace arboost
