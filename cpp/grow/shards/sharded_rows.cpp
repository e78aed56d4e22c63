// Copies of each worker's codes, gradients and sample; one thread a worker.
#include "grow/shards/sharded_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "bin/codes/take.h"

namespace arboost {
namespace {

Codes codes_of(const Codes& codes, std::span<const RowId> rows) {
  Team alone(1);
  return take_rows(codes, {rows.size(), nullptr, rows.data()}, alone);
}

}  // namespace

// One worker's rows: positions [begin, end) of the training rows.
struct ShardedRows::Part {
  Part(const Codes& all, std::span<const RowId> training, std::size_t begin_, std::size_t end_,
       Collective& workers, TreePolicy* first, const TreePolicy& like)
      : begin(begin_),
        end(end_),
        codes(codes_of(all, training.subspan(begin_, end_ - begin_))),
        own_policy(first != nullptr
                       ? nullptr
                       : std::make_unique<TreePolicy>(codes, like.params(), like.width())),
        policy(first != nullptr ? *first : *own_policy),
        rows(codes, {}, policy, workspace, workers) {}

  std::size_t begin, end;
  Codes codes;
  std::unique_ptr<TreePolicy> own_policy;  // null: the caller's
  TreePolicy& policy;
  Workspace workspace;
  WorkerRows rows;
  std::unique_ptr<Gradients> gradients;
  Sample sample;
  TreeRequest request{};
  TreeShape own_shape;
};

ShardedRows::ShardedRows(const Codes& codes, std::span<const RowId> table_rows,
                         std::span<const double> parts, TreePolicy& policy, Workspace& workspace)
    : policy_(policy),
      space_(workspace),
      is_whole_(table_rows.empty()),
      rows_(table_rows.begin(), table_rows.end()),
      workers_(parts.size()) {
  if (is_whole_) {
    rows_.resize(codes.n_rows);
    std::iota(rows_.begin(), rows_.end(), RowId{0});
  }
  make_room(space_.leaf_of_row, codes.n_rows);
  const double total = std::accumulate(parts.begin(), parts.end(), 0.0);
  if (!(total > 0) || std::any_of(parts.begin(), parts.end(), [](double p) { return !(p >= 0); }))
    throw std::invalid_argument("shards must be numbers from 0 on, and not all 0");
  double sum = 0;
  std::size_t begin = 0;
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    sum += parts[rank];
    const auto end =
        rank + 1 == parts.size()
            ? rows_.size()
            : static_cast<std::size_t>(static_cast<double>(rows_.size()) * sum / total);
    parts_.push_back(std::make_unique<Part>(codes, rows_, begin, std::max(begin, end),
                                            workers_.collective(rank),
                                            rank == 0 ? &policy : nullptr, policy));
    begin = std::max(begin, end);
  }
}

ShardedRows::~ShardedRows() = default;

template <class Body>
void ShardedRows::run(Team& team, Body body) {
  workers_.run([&](std::size_t rank) {
    if (rank == 0) return body(part(0), team);
    Team own(1);
    body(part(rank), own);
  });
}

// A worker's gradients have the scale of all rows, and sums of their own.
void ShardedRows::take_gradients(Part& part, const Gradients& gradients) const {
  const std::size_t n = part.end - part.begin;
  part.gradients = std::make_unique<Gradients>(n, gradients.outputs, gradients.by_row);
  Gradients& own = *part.gradients;
  own.g_exponent = gradients.g_exponent;
  own.h_exponent = gradients.h_exponent;
  own.sum_abs_g.assign(gradients.outputs, 0);
  own.sum_h.assign(gradients.outputs, 0);
  for (std::size_t k = 0; k < gradients.outputs; ++k)
    for (std::size_t i = 0; i < n; ++i) {
      const FixedPair pair =
          gradients
              .pairs[(part.begin + i) * gradients.row_stride() + k * gradients.output_stride()];
      own.pairs[i * own.row_stride() + k * own.output_stride()] = pair;
      own.sum_abs_g[k] += std::abs(pair.g);
      own.sum_h[k] += pair.h;
    }
}

void ShardedRows::take_sample(Part& part, const Sample& sample) const {
  const std::uint32_t* positions = sample.positions.data();
  const std::uint32_t* first = std::lower_bound(positions, positions + sample.size, part.begin);
  const std::uint32_t* last = std::lower_bound(first, positions + sample.size, part.end);
  const auto offset = static_cast<std::size_t>(first - positions);
  Sample& own = part.sample;
  own.size = static_cast<std::size_t>(last - first);
  own.weighted = sample.weighted;
  make_room(own.positions, own.size + 1);  // a sample without rows is not the sample of all rows
  make_room(own.weights, own.size + 1);
  for (std::size_t i = 0; i < own.size; ++i) {
    own.positions[i] = first[i] - static_cast<std::uint32_t>(part.begin);
    if (sample.weighted) own.weights[i] = sample.weights[offset + i];
  }
}

TreeScale ShardedRows::start_tree(const Gradients& gradients, std::size_t output,
                                  const TreeRequest& request, Team& team) {
  const Sample* sample = request.sample;
  tree_rows_ = training_rows();
  if (sample != nullptr)
    tree_rows_ = {sample->size, sample->positions.data(), tree_rows_.table_rows};
  TreeScale scale{};
  run(team, [&](Part& own, Team& own_team) {
    take_gradients(own, gradients);
    own.request = request;
    if (sample != nullptr) {
      take_sample(own, *sample);
      own.request.sample = &own.sample;
    }
    const TreeScale own_scale = own.rows.start_tree(*own.gradients, output, own.request, own_team);
    if (own.own_policy)
      own.policy.start_tree(own.request, output, own_scale);
    else
      scale = own_scale;
  });
  return scale;
}

void ShardedRows::grow(TreePolicy&, Team& team) {
  run(team, [](Part& own, Team& own_team) { own.rows.grow(own.policy, own_team); });
}

LeafSums ShardedRows::leaf_sums(const TreeShape& shape, const GrownTrees& forest, const Gradients&,
                                std::size_t output, const TreeRequest& request, Team& team) {
  LeafSums sums;
  run(team, [&](Part& own, Team& own_team) {
    const bool is_first = !own.own_policy;
    if (!is_first) own.own_shape.order(own.policy, {});
    const TreeShape& own_shape = is_first ? shape : own.own_shape;
    if (own_shape.left() != shape.left()) throw std::logic_error("workers grew different trees");
    LeafSums of_all =
        own.rows.leaf_sums(own_shape, forest, *own.gradients, output, own.request, own_team);
    const std::uint32_t* leaves = own.rows.leaves();
    for (std::size_t i = own.begin; i < own.end; ++i)
      space_.leaf_of_row[rows_[i]] = leaves[i - own.begin];
    if (is_first) sums = std::move(of_all);
  });
  if (request.leaves_from_all_rows) tree_rows_ = training_rows();
  return sums;
}

LeafSums ShardedRows::sums_of(const TreeShape& shape, const Gradients& gradients,
                              std::size_t output, Team& team) {
  LeafSums sums;
  run(team, [&](Part& own, Team& own_team) {
    take_gradients(own, gradients);
    const TreeShape& own_shape = own.own_policy ? own.own_shape : shape;
    LeafSums of_all = own.rows.sums_of(own_shape, *own.gradients, output, own_team);
    if (!own.own_policy) sums = std::move(of_all);
  });
  return sums;
}

void ShardedRows::add_values(const GrownTrees& forest, ScoreRows scores, Team& team) const {
  for (const auto& own : parts_)
    own->rows.add_values(forest, {scores.scores + own->begin * scores.stride, scores.stride}, team);
}

}  // namespace arboost
