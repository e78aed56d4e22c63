// Cost: some 100 ns a split.
#include "explain/shap_program.h"

#include <algorithm>
#include <stdexcept>  // invalid_argument

namespace arboost {
namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

// Kernels are made for few points, for six, and for any number of them.
std::size_t with_kernel(std::size_t points) {
  return points == 5 ? 6 : points;
}

}  // namespace

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
  constexpr std::uint32_t unused = ~std::uint32_t{0};
  std::vector<std::uint32_t> column_of(features, unused);
  std::vector<std::uint8_t> seen(forest.left.size(), 0);
  for (std::size_t t = 0; t < n_trees(); ++t) {
    const std::size_t first = first_node(t), last = first_node(t + 1);
    require(first < last && last <= forest.left.size(), "a tree without nodes");
    require(static_cast<std::size_t>(forest.output[t]) < outputs, "a tree for an unknown output");
    for (std::size_t node = first; node < last; ++node) {
      if (forest.left[node] == 0) continue;
      const std::size_t left = first + static_cast<std::size_t>(forest.left[node]);
      require(left > node && left + 1 < last && !seen[left] && !seen[left + 1],
              "a child outside its tree, or of two nodes");
      seen[left] = seen[left + 1] = 1;
      const auto feature = static_cast<std::size_t>(forest.feature[node]);
      require(feature < features, "a split on an unknown feature");
      const bool by_set = forest.level_set[node] >= 0;
      if (column_of[feature] == unused) {
        column_of[feature] = static_cast<std::uint32_t>(columns.size());
        columns.push_back({feature, by_set});
      }
      column[node] = column_of[feature];
      require(columns[column[node]].of_codes == by_set, "a feature split by sets and thresholds");
      if (!by_set) continue;
      const auto number = static_cast<std::size_t>(forest.level_set[node]);
      require(number < sets.size(), "an unknown set of levels");
      for (std::size_t w = 0; w < 4; ++w) sets[number].words[w] = forest.level_sets[4 * number + w];
      put(sets[number], shap_missing_code, forest.default_left[node] != 0);
    }
  }
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
  partners_.clear();
  splits_.clear();
  depth_ = n_numbers_ = most_distinct_ = 0;
  if (forest_.trees.left[first_] != 0) visit(first_, no_constants, false);
  while (!path_.empty()) {
    if (path_.back().children < 2)
      next_child();
    else
      finish();
  }
  points_ = with_kernel(points_for(most_distinct_));
  while (rules_.size() <= points_) rules_.push_back({});
  if (rules_[points_].points.empty()) rules_[points_] = gauss_legendre(points_);
  place_numbers();
}

void ShapProgram::visit(std::size_t node, std::size_t edge, bool is_left) {
  const Forest& trees = forest_.trees;
  const std::size_t depth = path_.size();
  const std::uint32_t column = forest_.column[node];
  const std::int32_t deepest = deepest_[column];
  const bool again = deepest >= 0;
  const auto above = static_cast<std::size_t>(again ? deepest : 0);
  const std::size_t left = first_ + static_cast<std::size_t>(trees.left[node]);
  const double share = forest_.left_share(left);
  const bool has_leaves = trees.left[left] == 0 || trees.left[left + 1] == 0;

  met_.resize(std::max(met_.size(), depth + 2));
  depth_ = std::max(depth_, depth);
  splits_.push_back({.left = left,
                     .above = again ? met_[above + 1] : 1.0,
                     .share = {share, 1 - share},
                     .edge = {no_constants, no_constants},
                     .leaves = has_leaves ? n_numbers_ : no_constants});
  if (has_leaves) n_numbers_ += static_cast<std::size_t>(LeafPart::size);
  steps_.push_back({.threshold = trees.threshold[node],
                    .edge = edge,
                    .leaves = splits_.back().leaves,
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
                    .closes = trees.left[left] == 0 && trees.left[left + 1] == 0});
  if (with_pairs_) add_partners(steps_.back());
  deepest_[column] = static_cast<std::int32_t>(depth);
  if (!again) most_distinct_ = std::max(most_distinct_, ++n_distinct_);
  path_.push_back({.split = splits_.size() - 1,
                   .enter = steps_.size() - 1,
                   .deepest = deepest,
                   .children = 0,
                   .adds = has_leaves});
}

void ShapProgram::next_child() {
  Frame& frame = path_.back();
  const auto side = static_cast<std::size_t>(frame.children++);
  Split& split = splits_[frame.split];
  if (forest_.trees.left[split.left + side] == 0) return;
  split.edge[side] = n_numbers_;
  n_numbers_ += static_cast<std::size_t>(EdgePart::size);
  met_[path_.size()] = split.above * split.share[side];
  visit(split.left + side, split.edge[side], side == 0);
}

void ShapProgram::finish() {
  const Frame frame = path_.back();
  path_.pop_back();
  const ShapStep step = steps_[frame.enter];
  deepest_[step.column] = frame.deepest;
  if (frame.deepest < 0) --n_distinct_;
  if (path_.empty()) return;
  Frame& above = path_.back();
  const ShapStep& parent = steps_[above.enter];
  ShapStep end = step;
  end.is_end = true;
  end.column = parent.column;
  end.partners = parent.partners;
  end.n_partners = parent.n_partners;
  end.adds = above.adds;
  end.closes = above.children == 2 || forest_.trees.left[splits_[above.split].left + 1] == 0;
  steps_.push_back(end);
  above.adds = true;
}

void ShapProgram::add_partners(ShapStep& step) {
  for (std::size_t depth = 0; depth < path_.size(); ++depth) {
    const std::uint32_t other = steps_[path_[depth].enter].column;
    const bool is_last = deepest_[other] == static_cast<std::int32_t>(depth);
    if (!is_last || other == step.column) continue;
    partners_.push_back({depth + 1, ShapForest::pair(step.column, other)});
    ++step.n_partners;
  }
}

void ShapProgram::place_numbers() {
  const auto place = [&](std::size_t& at) {
    if (at != no_constants) at *= points_;
  };
  numbers_.resize(n_numbers_ * points_);
  for (ShapStep& step : steps_) {
    place(step.edge);
    place(step.leaves);
  }
  for (Split& split : splits_) {
    place(split.edge[0]);
    place(split.edge[1]);
    place(split.leaves);
    fill_edges(split);
  }
}

// See the table at the head of explain/shap_run.h.
struct ShapProgram::EdgeNumbers {
  EdgeNumbers(double above, double share, double t)
      : of_above(above * (1 - t) + t),
        of_both(above * share * (1 - t) + t),
        factor_in(of_both / of_above),
        factor_out(above * share * (1 - t) / of_above),
        in((above - above * share) / (of_both * of_above)),
        out(-1 / (of_above * (1 - t))) {}
  double of_above, of_both, factor_in, factor_out, in, out;
};

void ShapProgram::fill_edges(const Split& split) {
  const Quadrature& rule = rules_[points_];
  for (std::size_t side = 0; side < 2; ++side) {
    if (split.edge[side] == no_constants) continue;
    double* numbers = numbers_.data() + split.edge[side];
    const auto set = [&](EdgePart part, std::size_t p, double value) {
      numbers[static_cast<std::size_t>(part) * points_ + p] = value;
    };
    for (std::size_t p = 0; p < points_; ++p) {
      const double t = rule.points[p], weight = rule.weights[p];
      const EdgeNumbers edge(split.above, split.share[side], t);
      set(EdgePart::factor_in, p, edge.factor_in);
      set(EdgePart::factor_out, p, edge.factor_out);
      set(EdgePart::factor_apart, p, split.share[side]);
      set(EdgePart::in, p, weight * edge.in);
      set(EdgePart::out, p, weight * edge.out);
      set(EdgePart::whole_in, p, (1 - split.above * split.share[side]) / edge.of_both);
      set(EdgePart::whole_out, p, -1 / (1 - t));
    }
  }
}

void ShapProgram::set_output(std::size_t k) {
  for (const Split& split : splits_)
    if (split.leaves != no_constants) fill_leaves(split, k);
}

void ShapProgram::fill_leaves(const Split& split, std::size_t k) {
  const Quadrature& rule = rules_[points_];
  const Forest& trees = forest_.trees;
  double* numbers = numbers_.data() + split.leaves;
  std::fill_n(numbers, static_cast<std::size_t>(LeafPart::size) * points_, 0.0);
  const auto add = [&](LeafPart part, std::size_t p, double value) {
    numbers[static_cast<std::size_t>(part) * points_ + p] += value;
  };
  for (std::size_t side = 0; side < 2; ++side) {
    if (trees.left[split.left + side] != 0) continue;
    const double value = trees.value[(split.left + side) * trees.width + k];
    const LeafPart sums[2] = {LeafPart::sum_left, LeafPart::sum_right};
    const LeafPart effects[2] = {LeafPart::left, LeafPart::right};
    for (std::size_t p = 0; p < points_; ++p) {
      const EdgeNumbers edge(split.above, split.share[side], rule.points[p]);
      const double in = value * edge.factor_in, out = value * edge.factor_out;
      add(sums[side], p, in);
      add(sums[1 - side], p, out);
      add(LeafPart::sum_apart, p, value * split.share[side]);
      add(effects[side], p, rule.weights[p] * (in * edge.in));
      add(effects[1 - side], p, rule.weights[p] * (out * edge.out));
    }
  }
}

ShapRun ShapProgram::run() const {
  ShapRun run{};
  run.steps = steps_.data();
  run.n_steps = steps_.size();
  run.constants = numbers_.data();
  run.partners = partners_.data();
  run.sets = forest_.sets.data();
  run.points = points_;
  run.depth = depth_;
  return run;
}

}  // namespace arboost
