// The host's part of a tree: launches by level, and its nodes at the end.
#include "grow/device/device_trees.h"

#include <algorithm>
#include <bit>  // bit_ceil
#include <cstring>

#include "grow/device/device_state.h"
#include "grow/rows/row_leaves.h"  // each_holder

namespace arboost::cuda {
namespace {

constexpr std::size_t most_features = 4096;  // hashes of a node's features are in shared memory

template <class T>
void make_spare_room(DeviceArray<T>& array, std::size_t size) {
  if (array.size() < size) make_room(array, std::bit_ceil(size));
}

std::uint32_t kind_of(std::size_t n_rows) {
  return n_rows <= warp_rows ? 0 : n_rows <= block_rows ? 1 : large_kind;
}

std::uint32_t n_open(const LevelCounts& counts) {
  return counts.n_open[0] + counts.n_open[1] + counts.n_open[2];
}

}  // namespace

bool DeviceTrees::grows(const Codes& codes, const TreePolicy& policy) {
  const TreeParams& p = policy.params();
  for (std::size_t f = 0; f < codes.n_features; ++f)
    if (codes.has_levels(f)) return false;
  return p.allow_zero_gain && !p.best_first && p.max_leaves == TreeParams::unlimited &&
         p.monotone.empty() && p.interactions.empty() && p.reg_alpha == 0 &&
         p.max_delta_step == 0 && p.colsample_bytree >= 1 && p.colsample_bylevel >= 1 &&
         codes.sparse.size() == 0 && codes.width == 1 && codes.n_features <= most_features;
}

DeviceTrees::DeviceTrees(DeviceState& state, const Codes& codes, const TreePolicy& policy,
                         const SplitSearch& search)
    : state_(state), codes_(codes), histogram_bytes_(policy.params().histogram_bytes) {
  std::vector<TreeColumn> columns;
  std::vector<double> edges(codes.n_features * most_codes, 0.0), cuts;
  std::vector<std::uint8_t> own_codes;  // of features that share columns
  for (std::size_t f = 0; f < codes.n_features; ++f)
    if (search.table(f) != nullptr)
      own_codes.insert(own_codes.end(), search.table(f), search.table(f) + most_codes);
  state_.send(own_codes, own_codes_);
  const std::uint8_t* own = own_codes_.data();
  for (std::size_t f = 0; f < codes.n_features; ++f) {
    const bool is_shared = search.table(f) != nullptr;
    columns.push_back({codes.where[f].store, codes.n_bins[f], codes.has_missing[f], 0,
                       is_shared ? own : nullptr});
    if (is_shared) own += most_codes;
    std::copy(codes.edges[f].begin(), codes.edges[f].end(),
              edges.begin() + static_cast<std::ptrdiff_t>(f * most_codes));
  }
  state_.send(columns, columns_);
  state_.send(edges, edges_);
  counts_ = DeviceArray<LevelCounts>(2);
  if (!policy.params().random_cuts) return;
  cuts.assign(codes.n_features * most_codes, 0.0);
  const CutDraws draws = search.draws(0);
  for (std::size_t f = 0; f < codes.n_features; ++f)
    if (codes.n_bins[f] > 1)
      std::copy_n(draws.values[f], most_codes,
                  cuts.begin() + static_cast<std::ptrdiff_t>(f * most_codes));
  state_.send(cuts, cut_values_);
}

void DeviceTrees::open_root(const GrowNode& root, bool may_split) {
  const auto n = static_cast<std::uint32_t>(root.n_rows());
  if (nodes_.empty()) nodes_.emplace_back();
  state_.send(std::vector<TreeNode>{{-1.0, root.path, 0, n, 0, 0, 0, 0}}, nodes_[0]);
  sizes_.assign(1, 1);
  LevelRoom& level = levels_[0];
  level.room = 1;
  state_.send(root.sums, level.sums);
  state_.send(std::vector<std::uint32_t>(node_kinds, 0), level.open);
  found_ = {};
  found_.n_nodes = 1;
  found_.n_open[kind_of(n)] = may_split ? 1 : 0;
  std::vector<RowTile> tiles;
  for (std::uint32_t first = 0; kind_of(n) == large_kind && first < n; first += rows_of_tile)
    tiles.push_back({0, first});
  found_.n_tiles = static_cast<std::uint32_t>(tiles.size());
  if (!tiles.empty()) state_.send(tiles, level.tiles);
  state_.send(std::vector<LevelCounts>{found_, {}}, counts_);
}

void DeviceTrees::grow(const TreePolicy& policy, const TreeRequest& request, const GrowNode& root,
                       const RowValues& values, const TargetPairs& targets, Team& team) {
  const TreeParams& params = policy.params();
  open_root(root, policy.may_split(root));
  const auto n_features = static_cast<std::uint32_t>(codes_.n_features);
  const auto min_h = 2 * std::int64_t{policy.gain().min_h} * policy.gain().outputs;
  TreeWork work{};
  work.gain = policy.gain();
  work.gain.grouped = nullptr;
  work.min_gain = policy.min_gain();
  work.limits = {
      static_cast<std::uint64_t>(std::max(2 * params.min_samples_leaf, params.min_samples_split)),
      min_h, 1};
  work.codes = state_.table->codes();
  work.columns = columns_.data();
  work.edges = edges_.data();
  work.cut_values = cut_values_.data();
  work.values = values;
  work.targets = targets;
  work.seed = request.seed;
  work.number = request.number;
  work.cut_key = policy.cut_key();
  work.n_features = n_features;
  work.n_drawn = static_cast<std::uint32_t>(draw_size(params.colsample_bynode, n_features));
  for (std::int64_t depth = 0; n_open(found_) > 0; ++depth) {
    team.poll_if_due(0);
    work.limits.any = depth + 1 < params.max_depth ? 1 : 0;
    grow_level(work);
  }
  take_nodes();
}

// Grows one level: the last one of sizes_.
void DeviceTrees::grow_level(TreeWork& work) {
  DeviceState& s = state_;
  const std::size_t depth = sizes_.size() - 1, room = 2 * std::size_t{n_open(found_)};
  const auto channels = static_cast<std::size_t>(work.gain.channels);
  LevelRoom &level = levels_[depth % 2], &next = levels_[1 - depth % 2];
  const std::size_t n_rows = s.elements[0].size();
  if (nodes_.size() == depth + 1) nodes_.emplace_back();
  make_spare_room(nodes_[depth + 1], room);
  make_spare_room(next.sums, room * channels);
  make_spare_room(next.open, node_kinds * room);
  make_spare_room(next.tiles, n_rows / rows_of_tile + n_rows / block_rows + 1);
  make_spare_room(left_sums_, sizes_.back() * channels);
  next.room = room;
  LevelCounts* counts[2] = {counts_.data() + depth % 2, counts_.data() + 1 - depth % 2};
  s.queue.fill_zero(reinterpret_cast<Address>(counts[1]), sizeof(LevelCounts));
  work.level = {nodes_[depth].data(),
                level.sums.data(),
                left_sums_.data(),
                level.open.data(),
                level.tiles.data(),
                counts[0],
                static_cast<std::uint32_t>(level.room)};
  work.next = {nodes_[depth + 1].data(),
               next.sums.data(),
               nullptr,
               next.open.data(),
               next.tiles.data(),
               counts[1],
               static_cast<std::uint32_t>(next.room)};
  work.from = s.elements[depth % 2].data();
  work.to = s.elements[1 - depth % 2].data();
  work.drawn = nullptr;
  if (work.n_drawn < work.n_features) {
    make_spare_room(drawn_, sizes_.back() * work.n_drawn);
    work.drawn = drawn_.data();
    const std::size_t bytes = work.n_features * sizeof(std::uint64_t);
    const std::size_t warps = std::clamp<std::size_t>((32 << 10) / bytes, 1, 8);
    s.queue.launch(s.device.kernel("draw_features"), {blocks_for(n_open(found_), warps)},
                   static_cast<unsigned>(32 * warps), warps * bytes, work, drawn_.data());
  }
  const bool logs = work.gain.criterion != Criterion::quadratic;
  if (found_.n_open[large_kind] > 0) grow_large(work);
  if (found_.n_open[1] > 0)
    s.queue.launch(s.device.kernel(logs ? "grow_medium_by_logs" : "grow_medium"),
                   {found_.n_open[1]}, threads, 0, work);
  if (found_.n_open[0] > 0)
    s.queue.launch(s.device.kernel(logs ? "grow_small_by_logs" : "grow_small"),
                   {blocks_for(found_.n_open[0], threads / 32)}, threads, 0, work);
  std::byte* staged = received_.room(sizeof(LevelCounts));
  s.queue.copy_out(reinterpret_cast<Address>(counts[1]), sizeof(LevelCounts), staged);
  s.queue.wait();
  s.n_sent = 0;
  std::memcpy(&found_, staged, sizeof(LevelCounts));
  sizes_.push_back(found_.n_nodes);
}

void DeviceTrees::grow_large(TreeWork& work) {
  DeviceState& s = state_;
  const std::size_t n = found_.n_open[large_kind];
  const auto channels = static_cast<std::size_t>(work.gain.channels);
  const std::size_t size = work.n_drawn * channels * most_codes;  // of a node's histograms
  constexpr std::size_t most_blocks = 65535;
  const std::size_t together = std::clamp<std::size_t>(
      histogram_bytes_ / (size * sizeof(std::int64_t)), 1, std::min(n, most_blocks));
  make_spare_room(large_, n);
  make_spare_room(large_sums_, n * channels);
  make_spare_room(histograms_, together * size);
  make_spare_room(cuts_, together * work.n_drawn);
  s.queue.fill_zero(large_.address(), n * sizeof(LargeNode));
  s.queue.fill_zero(large_sums_.address(), n * channels * sizeof(std::int64_t));
  work.large = large_.data();
  work.large_sums = large_sums_.data();
  work.histograms = histograms_.data();
  work.found = cuts_.data();
  const bool logs = work.gain.criterion != Criterion::quadratic;
  for (std::size_t first = 0; first < n; first += together) {
    work.first_large = static_cast<std::uint32_t>(first);
    work.n_large = static_cast<std::uint32_t>(std::min(together, n - first));
    s.queue.fill_zero(histograms_.address(), work.n_large * size * sizeof(std::int64_t));
    s.queue.launch(s.device.kernel("tile_histograms"),
                   {found_.n_tiles, blocks_for(work.n_drawn, features_of_block), channels}, threads,
                   0, work);
    s.queue.launch(s.device.kernel(logs ? "search_large_by_logs" : "search_large"),
                   {work.n_drawn, work.n_large}, threads, 0, work);
  }
  s.queue.launch(s.device.kernel("divide_tiles"), {found_.n_tiles}, threads, 0, work);
}

// Copies the nodes of all levels to the host.
void DeviceTrees::take_nodes() {
  DeviceState& s = state_;
  std::size_t n_nodes = 0;
  for (const std::size_t size : sizes_) n_nodes += size;
  std::byte* staged = received_.room(std::bit_ceil(n_nodes * sizeof(TreeNode)));
  std::size_t first = 0;
  for (std::size_t depth = 0; depth < sizes_.size(); ++depth) {
    s.queue.copy_out(nodes_[depth].address(), sizes_[depth] * sizeof(TreeNode),
                     staged + first * sizeof(TreeNode));
    first += sizes_[depth];
  }
  s.queue.wait();
  s.n_sent = 0;
  const auto* nodes = reinterpret_cast<const TreeNode*>(staged);
  grown_.nodes.resize(n_nodes);
  std::size_t number = 0, of_next = 0;
  for (const std::size_t size : sizes_) {
    of_next += size;
    for (std::size_t j = 0; j < size; ++j, ++number) {
      const TreeNode& node = nodes[number];
      grown_.nodes[number] = {.gain = node.gain,
                              .begin = node.begin,
                              .end = node.end,
                              .left = static_cast<std::uint32_t>(of_next + node.left - number),
                              .bin = node.bin,
                              .feature = node.feature,
                              .missing_left = node.missing_left != 0};
    }
  }
}

std::vector<LeafRows> leaf_rows(const TreeShape& shape) {
  std::vector<LeafRows> leaves;
  std::vector<std::uint8_t> buffers(shape.size(), 0);  // of nodes of whole trees, by level
  std::uint32_t n_tiles = 0;
  const auto add = [&](std::size_t begin, std::size_t end, int buffer, std::size_t leaf) {
    if (begin == end) return;
    leaves.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end),
                      static_cast<std::uint32_t>(buffer), static_cast<std::uint32_t>(leaf),
                      n_tiles});
    n_tiles += static_cast<std::uint32_t>(blocks_for(end - begin, tile_rows));
  };
  for (std::size_t id = 0; id < shape.size(); ++id) {
    const auto left = static_cast<std::size_t>(shape.left()[id]);
    if (left != 0) {
      buffers[left] = buffers[left + 1] = buffers[id] ^ 1;
      continue;
    }
    const auto [node, below] = shape.placed()[id];
    if (below != nullptr)
      add(below->begin, below->end, buffers[id], id);
    else
      each_holder(node, [&](const GrowNode& one) { add(one.begin, one.end, one.buffer, id); });
  }
  return leaves;
}

}  // namespace arboost::cuda
