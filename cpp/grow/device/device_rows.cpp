// A tree's rows: their pairs, scale and integers; then the part that grows it, and its leaves.
#include "grow/device/device_rows.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>  // pair

#include "base/random.h"
#include "grow/device/device_batches.h"
#include "grow/device/device_cart.h"
#include "grow/device/device_leaves.h"
#include "grow/device/device_means.h"
#include "grow/device/device_proposals.h"
#include "grow/device/device_state.h"
#include "grow/rows/row_leaves.h"
#include "loss/leaf.h"  // no_leaf

namespace arboost::cuda {
namespace {

// Bytes of a row but its codes: elements, pairs, scores, target and leaf.
std::size_t row_bytes(std::size_t width) {
  return 2 * sizeof(Element) + sizeof(std::uint32_t) +
         width * (sizeof(FixedPair) + sizeof(PackedSum) + sizeof(double)) + 2 * sizeof(double);
}

// Throws before any work where a table does not fit.
void check_memory(const Device& device, const Codes& table, std::size_t bytes_needed,
                  std::size_t n_rows, std::size_t width) {
  const std::size_t needed = bytes_of(table) + bytes_needed + n_rows * row_bytes(width);
  const std::size_t free = device.free_bytes();
  if (needed <= free) return;
  const double share = static_cast<double>(free) / static_cast<double>(needed);
  throw DeviceError("the table needs " + std::to_string(needed >> 20) +
                    " MiB on the CUDA device, and " + std::to_string(free >> 20) +
                    " MiB are free: about " +
                    std::to_string(static_cast<std::size_t>(share * static_cast<double>(n_rows))) +
                    " of its " + std::to_string(n_rows) +
                    " rows would fit. Use fewer rows or features, another device, or "
                    "device=\"cpu\".");
}

}  // namespace

std::size_t growers_that_fit(const Codes& codes, std::size_t n_rows, std::size_t width,
                             int device) {
  // Of trees that grow as a whole: samples, rows by number, and two nodes a row.
  const std::size_t of_sample = 4 * sizeof(std::uint32_t) + width * sizeof(FixedPair);
  const std::size_t of_nodes = 2 * sizeof(TreeNode) + sizeof(OpenNode) / 2 + sizeof(CodeSet);
  const std::size_t of_sums = 2 * (sizeof(LeafRange) + (1 + width) * sizeof(double));
  const std::size_t bytes_per_tree = n_rows * (row_bytes(width) + of_sample + of_nodes + of_sums);
  const std::size_t free = Device::number(device).free_bytes() / 10 * 9, table = bytes_of(codes);
  return std::max<std::size_t>(1, free > table ? (free - table) / bytes_per_tree : 0);
}

struct DeviceRows::Parts {
  Parts(Device& device, DeviceRows& rows, TreePolicy& policy, std::size_t n_votes)
      : state(device, rows.table_, rows.codes_),
        leaves(state, rows.table_, rows.n_training_),
        proposals(state, rows.table_),
        batches(state, rows.codes_, policy, rows.space_, rows.workers_, n_votes),
        means(state, rows.n_training_, policy.width()) {
    if (rows.workers_.size() == 1 && DeviceCart::grows(rows.codes_, policy))
      cart.emplace(state, rows.codes_, policy, batches.search());
  }

  DeviceState state;
  DeviceLeaves leaves;
  DeviceProposals proposals;
  DeviceBatches batches;
  DeviceMeans means;
  std::optional<DeviceCart> cart;  // none: trees grow by batches of nodes
  DeviceTree tree{};
  DeviceArray<FixedPair> all_pairs, sample_pairs;
  std::uint64_t pairs_version = 0;                // Gradients::version of all_pairs
  std::pair<std::uint64_t, std::size_t> checked;  // version and output of targets
  Totals sample_sums;
  DeviceArray<std::uint64_t> ends;  // of the rows' stretches
  std::uint64_t ends_version = 0;   // DrawChances::version
  DeviceArray<std::uint32_t> leaf_outside;
  DeviceArray<std::uint32_t> position_of_row;  // for purity
};

DeviceRows::DeviceRows(const Codes& table, const Codes& codes, std::span<const RowId> table_rows,
                       TreePolicy& policy, Workspace& workspace, Collective& workers,
                       std::size_t n_votes)
    : table_(table),
      codes_(codes),
      policy_(policy),
      params_(policy.params()),
      table_rows_(table_rows.begin(), table_rows.end()),
      n_training_(table_rows.empty() ? codes.n_rows : table_rows.size()),
      space_(workspace),
      workers_(workers) {
  if (params_.criterion == Criterion::absolute_error)
    throw DeviceError(
        "the criterion \"absolute_error\" does not run on a CUDA device: use squared_error, or "
        "device=\"cpu\"");
  Device& device = Device::number(params_.device);
  check_memory(device, table, &codes == &table ? 0 : buffer_bytes(codes), n_training_,
               policy.width());
  Device::Use use(device);
  parts_ = std::make_unique<Parts>(device, *this, policy, n_votes);
  DeviceState& s = parts_->state;
  if (!table_rows_.empty()) s.replace(table_rows_.data(), table_rows_.size(), s.table_rows);
  if (!table_rows_.empty() && params_.allow_zero_gain) {
    parts_->position_of_row = DeviceArray<std::uint32_t>(codes.n_rows);
    s.queue.launch(s.device.kernel("number_rows"), {blocks_for(n_training_)}, threads, 0,
                   s.all_rows(), static_cast<std::uint32_t>(n_training_),
                   parts_->position_of_row.data());
  }
  s.queue.wait();
}

DeviceRows::~DeviceRows() {
  free_on(parts_->state.device, [this] { parts_.reset(); });
}

std::unique_ptr<RoundRows> DeviceRows::make_round(const RoundSettings& settings) {
  return std::make_unique<DeviceRound>(parts_->state, parts_->leaves, settings);
}

void DeviceRows::draw_with_replacement(const DrawChances* chances, std::size_t n_draws,
                                       const DrawSeed& seed, Sample& out, Team&) {
  Parts& parts = *parts_;
  Device::Use use(parts.state.device);
  if (chances != nullptr && parts.ends_version != chances->version) {
    parts.state.replace(chances->ends.data(), n_training_, parts.ends);
    parts.ends_version = chances->version;
  }
  const std::uint64_t* ends = chances == nullptr ? nullptr : parts.ends.data();
  const std::uint64_t length = chances == nullptr ? n_training_ : chances->ends[n_training_ - 1];
  cuda::draw_with_replacement(parts.state, n_training_, ends, length, n_draws, seed, out);
}

void DeviceRows::propose(Proposal& proposal, const Gradients& gradients, Team& team) {
  Device::Use use(parts_->state.device);
  PairRows pairs = pairs_of(gradients, 0).rows;
  pairs.outputs = static_cast<std::uint32_t>(gradients.outputs);
  parts_->proposals.update(proposal, pairs, team);
}

// Sets the rows of the tree: a sample, or all training rows.
void DeviceRows::use_rows(const Sample* sample) {
  DeviceState& s = parts_->state;
  sample_ = sample;
  tree_rows_ = training_rows();
  RowNumbers rows = s.all_rows();
  if (sample != nullptr) {
    tree_rows_ = {sample->size, sample->positions.data(), tree_rows_.table_rows};
    make_room(s.sample_positions, 1);  // a sample without rows is not that of all rows
    if (!sample->on_device) s.replace(sample->positions.data(), sample->size, s.sample_positions);
    rows.positions = s.sample_positions.data();
  }
  s.use_rows(rows, tree_rows_.n);
}

// Pairs of all training rows.
DeviceRows::Pairs DeviceRows::pairs_of(const Gradients& gradients, std::size_t output) {
  Parts& parts = *parts_;
  const std::size_t width = policy_.width();
  const FixedPair* pairs = gradients.device_pairs;
  if (pairs == nullptr) {
    if (parts.pairs_version != gradients.version) {  // trees of a forest share them
      parts.state.replace(gradients.pairs.data(), gradients.pairs.size(), parts.all_pairs);
      parts.pairs_version = gradients.version;
    }
    pairs = parts.all_pairs.data();
  }
  const auto first = static_cast<std::ptrdiff_t>(output), n = static_cast<std::ptrdiff_t>(width);
  const auto some = [=](const std::vector<std::int64_t>& sums) {
    return std::vector<std::int64_t>(sums.begin() + first, sums.begin() + first + n);
  };
  return {{pairs + output * gradients.output_stride(), gradients.row_stride(),
           gradients.output_stride(), parts.state.all_rows(),
           static_cast<std::uint32_t>(n_training_), 0, static_cast<std::uint32_t>(width), 0, 0, 0},
          gradients.g_exponent,
          gradients.h_exponent,
          some(gradients.sum_abs_g),
          some(gradients.sum_h)};
}

// Pairs of the tree's rows times the weights of its sample.
DeviceRows::Pairs DeviceRows::tree_pairs_of(const Gradients& gradients, std::size_t output) {
  const Pairs all = pairs_of(gradients, output);
  if (sample_ == nullptr) return all;
  Parts& parts = *parts_;
  DeviceState& s = parts.state;
  const Sample& sample = *sample_;
  const std::size_t width = policy_.width();
  float largest = sample.largest_weight;
  if (!sample.on_device && sample.weighted && sample.size > 0) {
    const float* weights = sample.weights.data();
    largest = *std::max_element(weights, weights + sample.size);
    s.replace(weights, sample.size, s.sample_weights);
  }
  std::int64_t drop_of_all = bits_of_factor(std::max(1.0f, largest));
  if (sample.weighted) workers_.max({&drop_of_all, 1});
  const int drop = static_cast<int>(drop_of_all);
  make_room(parts.sample_pairs, empty_copy(sample.size) * width);
  PairRows rows = all.rows;
  rows.rows = s.rows;
  rows.n = s.n_rows;
  s.queue.launch(s.device.kernel("gather_pairs"), {std::min<std::size_t>(1024, blocks_for(rows.n))},
                 threads, 0, rows, sample.weighted ? s.sample_weights.data() : nullptr,
                 std::ldexp(1.0, -drop), parts.sample_pairs.data(),
                 parts.sample_sums.start(2 * width, s.queue));
  const std::vector<std::int64_t> sums = parts.sample_sums.wait(s.queue);
  rows.pairs = parts.sample_pairs.data();
  rows.row_stride = width;
  rows.output_stride = 1;
  Pairs of_sample{rows, all.g_exponent - drop, all.h_exponent - drop, {}, {}};
  for (std::size_t k = 0; k < width; ++k) {
    of_sample.sum_abs_g.push_back(sums[2 * k]);
    of_sample.sum_h.push_back(sums[2 * k + 1]);
  }
  return of_sample;
}

// Room for a sample of n rows: the next one may be a little larger.
std::size_t DeviceRows::empty_copy(std::size_t n) const {
  return std::min(n_training_, n + n / 64);
}

// Takes the pairs of all training rows for tests of purity.
TargetPairs DeviceRows::targets_of(const Gradients& gradients, std::size_t output) {
  const Pairs all = pairs_of(gradients, output);
  const std::pair which{gradients.version, output};
  if (gradients.device_pairs == nullptr && parts_->checked != which) {
    check_targets(params_.criterion,
                  {gradients.pairs.data() + output * gradients.output_stride(),
                   gradients.row_stride(), gradients.output_stride(), gradients.g_exponent,
                   gradients.h_exponent, pairs_.sum_abs_g, pairs_.sum_h},
                  gradients.n_rows);
    parts_->checked = which;
  }
  return {all.rows.pairs, all.rows.row_stride, all.rows.output_stride,
          parts_->position_of_row.data(), all.rows.outputs};
}

TreeScale DeviceRows::start_tree(const Gradients& gradients, std::size_t output,
                                 const TreeRequest& request, Team&) {
  Parts& parts = *parts_;
  Device::Use use(parts.state.device);
  use_rows(request.sample);
  pairs_ = tree_pairs_of(gradients, output);
  const TreeShare share =
      add_workers(pairs_.sum_abs_g, pairs_.sum_h, tree_rows_.n, n_training_, workers_);
  pairs_.rows.first_position = share.first_position;
  const TreeScaling scaling = scaling_of(pairs_.sum_abs_g, pairs_.sum_h, share.all_rows,
                                         params_.sum_bits, !params_.sums_are_wide());
  const auto bits = counter_hash(request.seed, Purpose::gradient_rounding, request.number, output);
  quantise(scaling, static_cast<std::uint32_t>(bits));
  const LeafSizes& sizes = parts.batches.start_tree(share.all_rows);
  const bool counted = sizes.counting() != Counting::none;
  parts.tree = {request,
                {scaling.narrow ? nullptr : parts.state.wide.data(), pairs_.rows.outputs,
                 pairs_.rows.outputs + (counted ? 1 : 0)},
                targets_of(gradients, output)};
  double weight = 0;
  for (const std::int64_t h : pairs_.sum_h)
    weight += std::ldexp(static_cast<double>(h), -pairs_.h_exponent) /
              static_cast<double>(policy_.width());
  return {.g_unit = std::ldexp(1.0, scaling.g.shift() - pairs_.g_exponent),
          .h_unit = std::ldexp(1.0, scaling.h.shift() - pairs_.h_exponent),
          .weight = weight,
          .n_rows = share.all_rows,
          .counted = counted,
          .least_h = counted ? 1 : sizes.least_h()};
}

void DeviceRows::quantise(const TreeScaling& scaling, std::uint32_t seed) {
  DeviceState& s = parts_->state;
  for (auto& elements : s.elements) make_room(elements, empty_copy(s.n_rows));
  PairRows rows = pairs_.rows;
  rows.seed = seed;
  rows.g_shift = scaling.g.shift();
  rows.h_shift = scaling.h.shift();
  const GivenTotals totals =
      s.root_sums.start(rows.outputs + (params_.may_count() ? 2 : 0), s.queue);
  if (scaling.narrow) {
    s.queue.launch(s.device.kernel("quantise_narrow"), {s.few_blocks(rows.n)}, threads, 0, rows,
                   s.elements[0].data(), totals);
  } else {
    make_room(s.wide, codes_.n_rows * rows.outputs);
    s.queue.launch(s.device.kernel("quantise_wide"), {blocks_for(rows.n)}, threads, 0, rows,
                   scaling.g, scaling.h, s.elements[0].data(), s.wide.data());
    const RowValues values{s.wide.data(), rows.outputs, rows.outputs};
    s.queue.launch(s.device.kernel("sum_values"), {std::min<std::size_t>(1024, blocks_for(rows.n))},
                   threads, 0, s.elements[0].data(), rows.n, values, totals);
  }
}

void DeviceRows::grow(TreePolicy& policy, Team& team) {
  Parts& parts = *parts_;
  Device::Use use(parts.state.device);
  const bool is_whole = parts.cart && parts.tree.request.turn % codes_.n_features == 0;
  whole_ = is_whole ? &parts.cart->grown() : nullptr;
  if (is_whole)
    parts.cart->grow(policy, parts.tree, team);
  else
    parts.batches.grow(policy, parts.tree, team);
}

std::span<const SubtreeNodes* const> DeviceRows::subtrees() const {
  return {&whole_, whole_ == nullptr ? 0u : 1u};
}

LeafSums DeviceRows::leaf_sums(const TreeShape& shape, const GrownTrees& forest,
                               const Gradients& gradients, std::size_t output,
                               const TreeRequest& request, Team&) {
  Parts& parts = *parts_;
  Device::Use use(parts.state.device);
  parts.leaves.start(forest);
  const bool is_other = sample_ != nullptr && request.leaves_from_all_rows;
  if (is_other) {
    use_rows(nullptr);
    pairs_ = pairs_of(gradients, output);
  }
  const bool in_cart = whole_ != nullptr && !is_other;
  return sums_above(
      shape, pairs_,
      in_cart ? parts.cart->leaf_sums(shape, pairs_.rows) : parts.leaves.walk_sums(pairs_.rows));
}

LeafSums DeviceRows::sums_of(const TreeShape& shape, const Gradients& gradients, std::size_t output,
                             Team&) {
  Device::Use use(parts_->state.device);
  const Pairs pairs = tree_pairs_of(gradients, output);
  return sums_above(shape, pairs, parts_->leaves.sums(pairs.rows));
}

std::vector<double> DeviceRows::target_sums(const TreeShape& shape, const LeafTarget& target) {
  Parts& parts = *parts_;
  Device::Use use(parts.state.device);
  const bool weighted = sample_ != nullptr && sample_->weighted;
  const float* counts = weighted ? parts.state.sample_weights.data() : nullptr;
  if (whole_ == nullptr)
    return parts.means.sums(parts.leaves.by_row(), shape.size(), target, counts);
  return parts.cart->target_sums(shape, target, counts, parts.leaves.replaced_by_row(),
                                 parts.means);
}

std::vector<std::uint32_t> DeviceRows::leaves_outside(const TreeShape& shape) {
  Parts& parts = *parts_;
  DeviceState& s = parts.state;
  Device::Use use(s.device);
  make_room(parts.leaf_outside, n_training_);
  if (whole_ != nullptr) {
    parts.cart->walk_outside(n_training_, parts.leaf_outside.data());
  } else {
    parts.leaves.walk();
    s.queue.launch(s.device.kernel("take_outside"), {blocks_for(n_training_)}, threads, 0,
                   parts.leaves.by_row(), s.numbers(), s.table_rows.data(),
                   static_cast<std::uint32_t>(n_training_), parts.leaf_outside.data());
  }
  static_assert(no_number == no_leaf);
  std::vector<std::uint32_t> leaves =
      s.receive<std::uint32_t>(parts.leaf_outside.address(), n_training_);
  if (whole_ != nullptr) parts.cart->renumber(shape, leaves);
  return leaves;
}

// Sums of all nodes from those of the leaves in this worker.
LeafSums DeviceRows::sums_above(const TreeShape& shape, const Pairs& pairs,
                                std::vector<std::int64_t> sums) {
  workers_.sum(sums);
  add_inner_sums(shape.left(), 2 * policy_.width(), sums);
  return {std::move(sums), pairs.g_exponent, pairs.h_exponent};
}

const std::uint32_t* DeviceRows::leaves() const {
  make_room(space_.leaf_of_row, codes_.n_rows);
  parts_->leaves.fetch(space_.leaf_of_row.data());
  return space_.leaf_of_row.data();
}

void DeviceRows::add_values(const GrownTrees& forest, ScoreRows scores, Team& team) const {
  // The leaves of all training rows are known, those of rows outside of a sample, too.
  add_leaf_values(forest, table_, training_rows(), n_training_, leaves(), scores, team);
}

}  // namespace arboost::cuda
