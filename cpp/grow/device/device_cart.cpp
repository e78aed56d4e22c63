// The host's part of a tree: launches by level, and its nodes at the end.
#include "grow/device/device_cart.h"

#include <algorithm>
#include <bit>  // bit_ceil
#include <cstring>

#include "grow/device/device_state.h"

namespace arboost::cuda {
namespace {

constexpr std::size_t most_features = 2048;  // hashes of a node's features are in shared memory
constexpr std::size_t most_channels = 512;   // so are the sums of small nodes

std::uint32_t kind_of(std::size_t n_rows) {
  return n_rows <= block_rows ? medium_kind : large_kind;
}

}  // namespace

bool DeviceCart::grows(const Codes& codes, const TreePolicy& policy) {
  const TreeParams& p = policy.params();
  // As CART has them: all levels are tried, in the order of their means.
  const bool plain_levels = p.grouped.empty() && p.max_cat_to_onehot <= 2 &&
                            2 * p.max_cat_threshold >= std::int64_t{most_codes} &&
                            p.min_cat_weight == 0 && p.cat_l2 == 0;
  for (std::size_t f = 0; f < codes.n_features; ++f)
    if (codes.has_levels(f) && !plain_levels) return false;
  const bool has_kernel = p.criterion != Criterion::error && p.criterion != Criterion::gain_ratio;
  return has_kernel && p.allow_zero_gain && !p.best_first &&
         p.max_leaves == TreeParams::unlimited && p.monotone.empty() && p.interactions.empty() &&
         p.reg_alpha == 0 && p.max_delta_step == 0 && p.colsample_bytree >= 1 &&
         p.colsample_bylevel >= 1 && codes.sparse.size() == 0 && codes.width == 1 &&
         codes.n_features <= most_features;
}

DeviceCart::DeviceCart(DeviceState& state, const Codes& codes, const TreePolicy& policy,
                       const SplitSearch& search)
    : state_(state), codes_(codes), histogram_bytes_(policy.params().histogram_bytes) {
  std::vector<TreeColumn> columns;
  std::vector<double> edges(codes.n_features * most_codes, 0.0), cuts;
  std::vector<std::uint8_t> own_codes;  // of features that share columns
  for (std::size_t f = 0; f < codes.n_features; ++f)
    if (search.table(f) != nullptr)
      own_codes.insert(own_codes.end(), search.table(f), search.table(f) + most_codes);
  state_.send(own_codes, own_codes_);
  const std::uint8_t* feature_codes = own_codes_.data();
  for (std::size_t f = 0; f < codes.n_features; ++f) {
    const bool is_shared = search.table(f) != nullptr;
    has_sets_ = has_sets_ || codes.has_levels(f);
    columns.push_back({codes.where[f].store, codes.n_bins[f], codes.has_missing[f],
                       codes.has_levels(f) ? 1u : 0u, is_shared ? feature_codes : nullptr});
    if (is_shared) feature_codes += most_codes;
    std::copy(codes.edges[f].begin(), codes.edges[f].end(),
              edges.begin() + static_cast<std::ptrdiff_t>(f * most_codes));
  }
  state_.send(columns, columns_);
  state_.send(edges, edges_);
  counts_ = DeviceArray<TreeCounts>(1);
  if (!policy.params().random_cuts) return;
  cuts.assign(codes.n_features * most_codes, 0.0);
  const CutDraws draws = search.draws(0);
  for (std::size_t f = 0; f < codes.n_features; ++f)
    if (codes.n_bins[f] > 1 && !codes.has_levels(f))
      std::copy_n(draws.values[f], most_codes,
                  cuts.begin() + static_cast<std::ptrdiff_t>(f * most_codes));
  state_.send(cuts, cut_values_);
}

void DeviceCart::open_root(const GrowNode& root, bool may_split, std::int64_t max_depth) {
  const auto n = static_cast<std::uint32_t>(root.n_rows());
  const std::size_t most_rows = state_.elements[0].size();  // of this tree and of similar ones
  std::size_t most_nodes = 2 * most_rows + 1;
  if (max_depth < 31) most_nodes = std::min(most_nodes, std::size_t{2} << max_depth);
  make_room(nodes_, most_nodes);
  if (has_sets_) make_room(sets_, most_nodes / 2);
  state_.send(std::vector<TreeNode>{{-1.0, 0, n, 0, 0, 0, 0, 0, 0}}, nodes_);
  LevelScratch& level = levels_[0];
  level.capacity = 1;
  const std::uint32_t kind = kind_of(n);
  std::vector<std::int64_t> sums;
  for (std::uint32_t k = 0; k < node_kinds; ++k)
    sums.insert(sums.end(), root.sums.begin(), root.sums.end());
  state_.send(sums, level.sums);
  state_.send(std::vector<OpenNode>(node_kinds, {root.path, 0, 0}), level.open);
  std::vector<RowTile> tiles;
  for (std::uint32_t first = 0; kind == large_kind && first < n; first += rows_of_tile)
    tiles.push_back({0, first});
  if (!tiles.empty()) state_.send(tiles, level.tiles);
  make_room(small_, most_rows / 2 + 1);
  found_ = {};
  found_.n_nodes = 1;
  if (n <= warp_rows) {
    state_.send(std::vector<OpenNode>{{root.path, 0, 0}}, small_);
    found_.n_small = may_split ? 1 : 0;
  } else {
    found_.levels[0].n_open[kind] = may_split ? 1 : 0;
  }
  found_.levels[0].n_tiles = static_cast<std::uint32_t>(tiles.size());
  state_.send(std::vector<TreeCounts>{found_}, counts_);
}

TreeWork DeviceCart::work_of(const TreePolicy& policy, const TreeRequest& request) const {
  const TreeParams& params = policy.params();
  TreeWork work{};
  work.gain = policy.gain();
  work.gain.grouped = nullptr;
  work.min_gain = policy.min_gain();
  constexpr std::int64_t no_limit = 0xffffffff;
  work.limits = {
      static_cast<std::uint64_t>(std::max(2 * params.min_samples_leaf, params.min_samples_split)),
      2 * std::int64_t{policy.gain().min_h} * policy.gain().outputs,
      static_cast<std::uint32_t>(std::min(params.max_depth, no_limit))};
  work.codes = state_.table->codes();
  work.columns = columns_.data();
  work.edges = edges_.data();
  work.cut_values = cut_values_.data();
  work.seed = request.seed;
  work.number = request.number;
  work.cut_key = policy.cut_key();
  work.n_features = static_cast<std::uint32_t>(codes_.n_features);
  work.n_drawn = static_cast<std::uint32_t>(draw_size(params.colsample_bynode, codes_.n_features));
  work.nodes = nodes_.data();
  work.n_nodes = &counts_.data()->n_nodes;
  work.sets = sets_.data();
  work.n_sets = &counts_.data()->n_sets;
  work.small = small_.data();
  work.n_small = &counts_.data()->n_small;
  for (std::size_t j = 0; j < 2; ++j) work.elements[j] = state_.elements[j].data();
  return work;
}

void DeviceCart::grow(TreePolicy& policy, const DeviceTree& tree, Team& team) {
  GrowNode& root = policy.open_root(state_.n_rows, true);
  root.sums = state_.root_of(tree.values.outputs, tree.values.channels);
  root.subtree_of = 0;
  root.subtree = 0;
  open_root(root, policy.may_split(root), policy.params().max_depth);
  TreeWork& work = work_ = work_of(policy, tree.request);
  work.values = tree.values;
  work.targets = tree.targets;
  const auto is_done = [](const LevelCounts& counts) {
    return std::all_of(counts.n_open, counts.n_open + node_kinds, [](auto n) { return n == 0; });
  };
  while (!is_done(found_.levels[work.depth % 2])) {
    team.poll_if_due(0);
    grow_level(work);
    ++work.depth;
  }
  if (found_.n_small > 0) grow_small(work);
  take_nodes();
}

// Waits for bytes of the device, in received_.
void DeviceCart::receive(Address from, std::size_t bytes) {
  state_.queue.copy_out(from, bytes, received_.buffer(std::bit_ceil(bytes)));
  state_.queue.wait();
  state_.n_sent = 0;
}

void DeviceCart::grow_level(TreeWork& work) {
  DeviceState& s = state_;
  const std::size_t turn = work.depth % 2;
  const LevelCounts counts = found_.levels[turn];
  const std::size_t channels = work.values.channels, n_rows = s.elements[0].size();
  LevelScratch &level = levels_[turn], &next = levels_[1 - turn];
  // Medium and large nodes have children in the next level.
  const std::size_t n_inner = counts.n_open[medium_kind] + counts.n_open[large_kind];
  next.capacity = std::max<std::size_t>(1, 2 * n_inner);
  make_spare_room(next.open, node_kinds * next.capacity);
  make_spare_room(next.sums, node_kinds * next.capacity * channels);
  make_spare_room(next.tiles, n_rows / rows_of_tile + n_rows / block_rows + 1);
  make_spare_room(left_sums_, n_inner * channels);
  TreeCounts* all = counts_.data();
  const auto level_of = [&](const LevelScratch& buffers, std::size_t which) {
    return TreeLevel{buffers.open.data(), buffers.sums.data(), buffers.tiles.data(),
                     &all->levels[which], static_cast<std::uint32_t>(buffers.capacity)};
  };
  work.level = level_of(level, turn);
  work.next = level_of(next, 1 - turn);
  work.left_sums = left_sums_.data();
  work.buffer = static_cast<std::uint32_t>(turn);
  s.queue.fill_zero(reinterpret_cast<Address>(work.next.counts), sizeof(LevelCounts));
  if (counts.n_open[large_kind] > 0) grow_large(work);
  const std::size_t of_features = work.n_features * (sizeof(std::uint64_t) + sizeof(std::uint16_t));
  const std::size_t bytes = threads / 32 * search_room_bytes + of_features;
  // Large nodes may have become medium ones.
  s.queue.launch(s.device.kernel("grow_medium", bytes), {n_inner}, threads, bytes, work);
  take_counts();
}

void DeviceCart::grow_small(const TreeWork& work) {
  const std::size_t bytes = work.values.channels * sizeof(std::int64_t);
  const std::size_t warps = std::clamp<std::size_t>((16 << 10) / bytes, 1, threads / 32);
  state_.queue.launch(state_.device.kernel("grow_small"), {blocks_for(found_.n_small, warps)},
                      static_cast<unsigned>(32 * warps), warps * bytes, work);
  take_counts();
}

void DeviceCart::take_counts() {
  receive(counts_.address(), sizeof(TreeCounts));
  std::memcpy(&found_, received_.buffer(sizeof(TreeCounts)), sizeof(TreeCounts));
}

void DeviceCart::grow_large(TreeWork& work) {
  DeviceState& s = state_;
  const LevelCounts& counts = found_.levels[work.depth % 2];
  const std::size_t n = counts.n_open[large_kind], channels = work.values.channels;
  const std::size_t size = work.n_drawn * channels * most_codes;  // of a node's histograms
  constexpr std::size_t most_blocks = 65535;
  const std::size_t together = std::clamp<std::size_t>(
      histogram_bytes_ / (size * sizeof(std::int64_t)), 1, std::min(n, most_blocks));
  make_spare_room(large_, n);
  make_spare_room(large_sums_, n * channels);
  make_spare_room(histograms_, together * size);
  make_spare_room(cuts_, together * work.n_drawn);
  make_spare_room(drawn_, n * work.n_drawn);
  work.large = large_.data();
  work.large_sums = large_sums_.data();
  work.histograms = histograms_.data();
  work.cuts = cuts_.data();
  work.drawn = drawn_.data();
  s.queue.fill_zero(large_.address(), n * sizeof(LargeNode));
  s.queue.fill_zero(large_sums_.address(), n * channels * sizeof(std::int64_t));
  if (work.n_drawn < work.n_features)
    s.queue.launch(s.device.kernel("draw_features"), {n}, threads,
                   work.n_features * sizeof(std::uint64_t), work);
  for (std::size_t first = 0; first < n; first += together) {
    work.first_large = static_cast<std::uint32_t>(first);
    work.n_large = static_cast<std::uint32_t>(std::min(together, n - first));
    s.queue.fill_zero(histograms_.address(), work.n_large * size * sizeof(std::int64_t));
    s.queue.launch(s.device.kernel("tile_histograms"),
                   {counts.n_tiles, blocks_for(work.n_drawn, features_of_block), channels}, threads,
                   0, work);
    constexpr std::size_t bytes = threads / 32 * search_room_bytes;
    s.queue.launch(s.device.kernel("search_large", bytes),
                   {blocks_for(work.n_drawn, threads / 32), work.n_large}, threads, bytes, work);
  }
  s.queue.launch(s.device.kernel("divide_tiles"), {counts.n_tiles}, threads, 0, work);
}

// Copies the nodes to the host, and their sets.
void DeviceCart::take_nodes() {
  const std::size_t n = found_.n_nodes;
  std::byte* received = received_.buffer(std::bit_ceil(n * sizeof(TreeNode)));
  state_.queue.copy_out(nodes_.address(), n * sizeof(TreeNode), received);
  grown_.sets = state_.receive<CodeSet>(sets_.address(), found_.n_sets);  // waits for both
  const auto* nodes = reinterpret_cast<const TreeNode*>(received);
  grown_.nodes.resize(n);
  largest_leaf_ = 0;
  for (std::size_t j = 0; j < n; ++j) {
    const TreeNode& node = nodes[j];
    if (node.gain < 0) largest_leaf_ = std::max<std::size_t>(largest_leaf_, node.end - node.begin);
    grown_.nodes[j] = {.gain = node.gain,
                       .begin = node.begin,
                       .end = node.end,
                       .left = static_cast<std::uint32_t>(node.left - j),
                       .bin = node.bin,
                       .feature = node.feature,
                       .set = static_cast<std::int32_t>(node.set) - 1,
                       .missing_left = node.missing_left != 0};
  }
}

Queue::Grid DeviceCart::leaf_tiles() const {
  return {blocks_for(found_.n_nodes, threads / 32), blocks_for(largest_leaf_, tile_rows)};
}

std::vector<std::int64_t> DeviceCart::leaf_sums(const TreeShape& shape, const PairRows& pairs) {
  DeviceState& s = state_;
  const std::size_t n_nodes = found_.n_nodes, per_node = std::size_t{2} * pairs.outputs;
  make_spare_room(leaf_sums_, n_nodes * per_node);
  s.queue.fill_zero(leaf_sums_.address(), n_nodes * per_node * sizeof(std::int64_t));
  s.queue.launch(s.device.kernel("whole_leaf_sums"), leaf_tiles(), threads, 0, nodes_.data(),
                 found_.n_nodes, s.elements[0].data(), s.elements[1].data(), pairs, s.numbers(),
                 leaf_sums_.data());
  receive(leaf_sums_.address(), n_nodes * per_node * sizeof(std::int64_t));
  return by_node(shape, reinterpret_cast<const std::int64_t*>(received_.buffer(1)), per_node);
}

std::vector<double> DeviceCart::target_sums(const TreeShape& shape, const LeafTarget& target,
                                            const float* counts, std::uint32_t* leaf_of_row,
                                            DeviceMeans& means) {
  DeviceState& s = state_;
  s.queue.launch(s.device.kernel("note_leaves"), leaf_tiles(), threads, 0, nodes_.data(),
                 found_.n_nodes, s.elements[0].data(), s.elements[1].data(), leaf_of_row);
  const std::vector<double> sums = means.sums(leaf_of_row, found_.n_nodes, target, counts);
  return by_node(shape, sums.data(), sums.size() / found_.n_nodes);
}

void DeviceCart::walk_outside(std::size_t n_training, std::uint32_t* leaf_of_position) {
  DeviceState& s = state_;
  s.queue.launch(s.device.kernel("walk_outside"), {blocks_for(n_training)}, threads, 0, work_,
                 s.numbers(), s.table_rows.data(), static_cast<std::uint32_t>(n_training),
                 leaf_of_position);
}

void DeviceCart::renumber(const TreeShape& shape, std::vector<std::uint32_t>& leaves) const {
  std::vector<std::uint32_t> id_of(found_.n_nodes);
  for (std::size_t id = 0; id < shape.size(); ++id)
    id_of[static_cast<std::size_t>(shape.placed()[id].below - grown_.nodes.data())] =
        static_cast<std::uint32_t>(id);
  for (std::uint32_t& leaf : leaves)
    if (leaf != no_number) leaf = id_of[leaf];
}

// Sums of leaves by their numbers here -> by node, and 0 in inner nodes.
template <class Sum>
std::vector<Sum> DeviceCart::by_node(const TreeShape& shape, const Sum* sums,
                                     std::size_t per_node) const {
  std::vector<Sum> ordered(shape.size() * per_node);
  for (std::size_t id = 0; id < shape.size(); ++id) {
    if (shape.left()[id] != 0) continue;
    const auto number = static_cast<std::size_t>(shape.placed()[id].below - grown_.nodes.data());
    std::copy_n(sums + number * per_node, per_node,
                ordered.begin() + static_cast<std::ptrdiff_t>(id * per_node));
  }
  return ordered;
}

}  // namespace arboost::cuda
