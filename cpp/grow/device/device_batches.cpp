// Batches of nodes: one upload, four launches and one answer each.
#include "grow/device/device_batches.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>  // exchange, move

#include "grow/device/device_state.h"

namespace arboost::cuda {
namespace {

// Searches of the device are for the gain of boosting: over one-byte codes, and two-byte codes
// without sparse columns. Those for vector leaves are over one-byte codes of numbers.
bool device_searches(const Codes& codes, const TreePolicy& policy) {
  bool are_numbers = codes.sparse.size() == 0;
  for (std::size_t f = 0; f < codes.n_features; ++f)
    are_numbers = are_numbers && !codes.has_levels(f);
  const bool fits = policy.width() > 1 ? codes.width == 1 && are_numbers
                                       : codes.width == 1 || codes.sparse.size() == 0;
  return fits && !policy.params().random_cuts && !policy.params().allow_zero_gain &&
         policy.params().criterion == Criterion::quadratic &&
         policy.params().candidates != Candidates::per_node;
}

}  // namespace

DeviceBatches::DeviceBatches(DeviceState& state, const Codes& codes, TreePolicy& policy,
                             Workspace& workspace, Collective& workers, std::size_t n_votes)
    : state_(state),
      codes_(codes),
      policy_(policy),
      params_(policy.params()),
      searches_on_device_(workers.size() == 1 && device_searches(codes, policy)),
      workers_(workers),
      host_rows_(codes, {}, policy.width(), false, params_.sum_bits, workspace, workers),
      sizes_(codes, params_, policy.width(), !searches_on_device_),
      slots_(codes, agreed_bytes(params_.histogram_bytes, workers), workspace),
      search_(codes, policy, {.rows = host_rows_, .histograms = slots_, .sizes = sizes_}) {
  if (workers.size() > 1)
    shared_.emplace(codes, policy, slots_, search_, workers, n_votes,
                    static_cast<BatchRows&>(*this));
  const std::size_t n_stores = codes.n_stores;
  std::vector<std::uint32_t> first_slot(slots_.slots().first, slots_.slots().first + n_stores);
  first_slot.push_back(static_cast<std::uint32_t>(slots_.slots().first_sparse));
  state_.send(first_slot, first_slot_);
  send_columns();
}

// Sends the columns of the features, and the groups of grouped categories.
void DeviceBatches::send_columns() {
  DeviceState& s = state_;
  std::vector<FeatureColumn> columns;
  std::vector<GroupColumn> groups;
  std::vector<std::uint8_t> own_codes;
  groups_ = DeviceArray<GroupColumn>(params_.grouped.size());
  own_codes_ = DeviceArray<std::uint8_t>(256 * codes_.n_features);
  for (std::size_t f = 0; f < codes_.n_features; ++f) {
    const ColumnStorage storage = storage_of(f);
    const LevelGroups* grouped = groups_of(&params_.grouped, f);
    is_mixed_ =
        is_mixed_ || codes_.width == 2 || codes_.has_levels(f) || !storage.own_codes.empty();
    columns.push_back(
        {.store = codes_.where[f].store,
         .first_slot = storage.first_slot,
         .n_bins = codes_.n_bins[f],
         .direction = params_.monotone.empty() ? 0 : params_.monotone[f],
         .has_missing = codes_.has_missing[f],
         .is_category = codes_.has_levels(f) ? 1u : 0u,
         .groups = grouped == nullptr ? nullptr : groups_.data() + groups.size(),
         .own_codes = storage.own_codes.empty() ? nullptr : own_codes_.data() + own_codes.size(),
         .n_slots = static_cast<std::uint32_t>(storage.own_codes.size()),
         .usual = storage.usual});
    own_codes.insert(own_codes.end(), storage.own_codes.begin(), storage.own_codes.end());
    if (grouped == nullptr) continue;
    GroupColumn& group = groups.emplace_back();
    group.shared = grouped->shared;
    group.n = static_cast<std::uint32_t>(grouped->order.size());
    std::copy(grouped->order.begin(), grouped->order.end(), group.order);
  }
  s.send(columns, feature_columns_);
  s.send(groups, groups_);
  s.replace(own_codes.data(), own_codes.size(), own_codes_);
}

// Slots of a feature's stored column.
DeviceBatches::ColumnStorage DeviceBatches::storage_of(std::size_t feature) const {
  const FeatureStorage& storage = codes_.where[feature];
  const Slots& slots = slots_.slots();
  ColumnStorage on_device;
  if (storage.kind == Storage::sparse) {
    on_device.first_slot =
        static_cast<std::uint32_t>(slots.first_sparse) + codes_.sparse.first_slot[storage.store];
    on_device.usual = storage.usual;
    for (std::uint32_t rank = 0; rank < storage.n_others; ++rank)
      on_device.own_codes.push_back(static_cast<std::uint8_t>(storage.code_of(rank)));
    return on_device;
  }
  on_device.first_slot = slots.first[storage.store];
  if (storage.kind == Storage::single) return on_device;
  const std::uint32_t n_slots =
      codes_.first_slot[storage.store + std::size_t{1}] - codes_.first_slot[storage.store];
  for (std::uint32_t code = 0; code < n_slots; ++code)
    on_device.own_codes.push_back(static_cast<std::uint8_t>(codes_.decode(feature, code)));
  return on_device;
}

// Whole trees count their rows.
const LeafSizes& DeviceBatches::start_tree(std::size_t all_rows) {
  in_doubt_.clear();
  if (params_.may_count() && !params_.allow_zero_gain) {
    std::vector<std::int64_t> sums = state_.root_sums.wait(state_.queue);
    std::int64_t* range = sums.data() + policy_.width();
    workers_.max({range, 2});
    sizes_.start_tree(most_h - range[0], range[1], all_rows);
  } else {
    sizes_.start_tree();
  }
  slots_.use_channels(policy_.width() + (sizes_.counting() == Counting::always ? 1 : 0));
  return sizes_;
}

void DeviceBatches::grow(TreePolicy& policy, const DeviceTree& tree, Team& team) {
  tree_ = &tree;
  shared_ ? shared_->grow_by_batches(policy, team) : grow_by_batches(policy, team);
}

std::vector<GrowNode*> DeviceBatches::impure(std::vector<GrowNode*> nodes) {
  if (!params_.allow_zero_gain || nodes.empty()) return nodes;
  const std::vector<ValueBounds> bounds = value_bounds(nodes);
  const std::size_t width = policy_.width();
  std::vector<GrowNode*> kept;
  for (std::size_t j = 0; j < nodes.size(); ++j)
    if (std::any_of(bounds.begin() + static_cast<std::ptrdiff_t>(j * width),
                    bounds.begin() + static_cast<std::ptrdiff_t>((j + 1) * width),
                    [](const ValueBounds& of_output) { return of_output.is_empty(); }))
      kept.push_back(nodes[j]);
  return kept;
}

std::vector<ValueBounds> DeviceBatches::value_bounds(std::span<GrowNode* const> nodes) {
  if (nodes.empty()) return {};
  DeviceState& s = state_;
  std::vector<RowRange> ranges;
  for (const GrowNode* node : nodes)
    ranges.push_back({static_cast<std::uint32_t>(node->begin),
                      static_cast<std::uint32_t>(node->end),
                      static_cast<std::uint32_t>(node->buffer)});
  s.send(ranges, ranges_);
  const std::size_t width = policy_.width();
  make_room(bounds_, nodes.size() * width);
  s.queue.launch(s.device.kernel("value_bounds"), {nodes.size(), width}, threads, 0, ranges_.data(),
                 s.elements[0].data(), s.elements[1].data(), tree_->targets, bounds_.data());
  return s.receive<ValueBounds>(bounds_.address(), nodes.size() * width);
}

// Copies several histograms at once, adjacent ones together, for all threads: use(number, copy,
// member).
void DeviceBatches::each_histogram(std::span<const std::int64_t* const> on_device, UseHistogram use,
                                   Team& team) {
  DeviceState& s = state_;
  constexpr std::size_t most_bytes = std::size_t{8} << 20;
  const std::size_t size = slots_.size(), bytes = size * sizeof(std::int64_t);
  const std::size_t together =
      std::clamp<std::size_t>(most_bytes / std::max<std::size_t>(1, bytes), 1, 64);
  for (std::size_t first = 0; first < on_device.size(); first += together) {
    const auto some = on_device.subspan(first, std::min(together, on_device.size() - first));
    std::byte* staged = s.received.buffer(together * bytes);
    for (std::size_t j = 0, next = 0; j < some.size(); j = next) {
      next = j + 1;
      while (next < some.size() && some[next] == some[next - 1] + size) ++next;
      s.queue.copy_out(reinterpret_cast<Address>(some[j]), (next - j) * bytes, staged + j * bytes);
    }
    s.queue.wait();
    s.n_sent = 0;
    auto* histograms = reinterpret_cast<std::int64_t*>(staged);
    team.for_chunks(0, some.size(), 1, [&](std::size_t j, std::size_t, int member) {
      use(first + j, histograms + j * size, member);
    });
  }
}

void DeviceBatches::search_on_host(std::span<GrowNode* const> nodes, Team& team) {
  std::vector<const std::int64_t*> on_device;
  for (const GrowNode* node : nodes) on_device.push_back(node->histogram);
  const auto search = [&](std::size_t j, std::int64_t* histogram, int member) {
    std::int64_t* const kept = std::exchange(nodes[j]->histogram, histogram);
    search_.find(*nodes[j], member, team);
    nodes[j]->histogram = kept;
  };
  each_histogram(on_device, search, team);
}

// The nodes of a batch, with the searches of their children.
struct DeviceBatches::Batch {
  std::vector<GrowNode*> nodes;
  std::vector<NodeWork> works;  // of the nodes
  std::vector<NodeSearch> searches;
  std::vector<std::uint32_t> features;
  std::vector<NodeCount> counts;
  BatchCount state{0, 0, 0};
  std::vector<GrowNode*> searched;
  std::vector<double> scores;  // of the searched nodes
  std::span<const std::uint32_t> last_features;
  std::uint32_t n_tiles = 0;
  std::size_t most_features = 0;
  BatchWork work{};  // on the device
};

void DeviceBatches::request(GrowNode& node, std::uint32_t work, std::uint32_t side, Batch& batch) {
  const auto features = policy_.columns().of_node(node, columns_);
  if (features.empty()) return;
  const double score = policy_.node_score(node);
  const bool is_same =
      features.data() == batch.last_features.data() &&
      features.size() == batch.last_features.size() &&
      std::equal(features.begin(), features.end(),
                 batch.features.end() - static_cast<std::ptrdiff_t>(batch.last_features.size()));
  if (!is_same) batch.features.insert(batch.features.end(), features.begin(), features.end());
  batch.last_features = features;
  batch.searches.push_back({node.sums[0], policy_.floor_of(node.sums.data(), score), node.lower,
                            node.upper,
                            static_cast<std::uint32_t>(batch.features.size() - features.size()),
                            static_cast<std::uint32_t>(features.size()), work, side});
  batch.most_features = std::max(batch.most_features, features.size());
  batch.searched.push_back(&node);
  batch.scores.push_back(score);
}

// Sends a batch in one copy, and points batch.work to it. The copy reads one of two staged blocks:
// the batch of the root is sent twice, without a wait between.
void DeviceBatches::send(Batch& batch) {
  DeviceState& s = state_;
  const std::size_t n = batch.works.size(), m = batch.searches.size();
  std::size_t size = 0;
  const auto reserve = [&size](std::size_t bytes) {
    const std::size_t at = size;
    size += (bytes + 15) / 16 * 16;
    return at;
  };
  const std::size_t works = reserve(n * sizeof(NodeWork)),
                    searches = reserve(m * sizeof(NodeSearch)),
                    features = reserve(batch.features.size() * sizeof(std::uint32_t)),
                    n_done = reserve(m * sizeof(std::uint32_t)),
                    state = reserve(sizeof(BatchCount)), counts = reserve(n * sizeof(NodeCount));
  make_room(batch_, std::bit_ceil(size));
  make_room(segments_, 2 * n);
  make_room(splits_, m * batch.most_features);
  which_batch_ = 1 - which_batch_;
  std::byte* staged = sent_batches_[which_batch_].buffer(std::bit_ceil(size));
  const std::size_t counts_bytes = (n * sizeof(NodeCount) + 15) / 16 * 16;
  const std::size_t best_bytes = m * sizeof(FoundSplit);
  const std::size_t left_bytes = m * policy_.width() * sizeof(std::int64_t);
  std::byte* answers = answers_.buffer(std::bit_ceil(counts_bytes + best_bytes + left_bytes));
  const auto put = [&](std::size_t at, const void* from, std::size_t bytes) {
    if (bytes > 0) std::memcpy(staged + at, from, bytes);
  };
  put(works, batch.works.data(), n * sizeof(NodeWork));
  put(searches, batch.searches.data(), m * sizeof(NodeSearch));
  put(features, batch.features.data(), batch.features.size() * sizeof(std::uint32_t));
  std::memset(staged + n_done, 0, m * sizeof(std::uint32_t));
  put(state, &batch.state, sizeof(BatchCount));
  put(counts, batch.counts.data(), n * sizeof(NodeCount));
  s.queue.copy_in(staged, size, batch_.address());
  std::byte* const on_device = batch_.data();
  batch.work = {.nodes = reinterpret_cast<NodeWork*>(on_device + works),
                .searches = reinterpret_cast<NodeSearch*>(on_device + searches),
                .features = reinterpret_cast<std::uint32_t*>(on_device + features),
                .state = reinterpret_cast<BatchCount*>(on_device + state),
                .counts = reinterpret_cast<NodeCount*>(on_device + counts),
                .n_done = reinterpret_cast<std::uint32_t*>(on_device + n_done),
                .final_counts = reinterpret_cast<NodeCount*>(answers),
                .best = reinterpret_cast<FoundSplit*>(answers + counts_bytes),
                .best_left = reinterpret_cast<std::int64_t*>(answers + counts_bytes + best_bytes),
                .answer = s.queue.ask(),
                .segments = segments_.data(),
                .splits = splits_.data(),
                .parts = nullptr,
                .n_nodes = static_cast<std::uint32_t>(n),
                .n_searches = static_cast<std::uint32_t>(m),
                .n_tiles = batch.n_tiles,
                .most_features = static_cast<std::uint32_t>(batch.most_features),
                .n_shares = 1,
                .histogram_size = static_cast<std::uint32_t>(slots_.size()),
                .is_combined = 1,
                .is_by_side = 0,
                .certain_h = 0,
                .min_rows = params_.min_samples_leaf,
                .elements = {s.elements[0].data(), s.elements[1].data()},
                .by_column = s.table->codes().by_column,
                .n_table_rows = codes_.n_rows,
                .code_width = static_cast<std::uint32_t>(codes_.width)};
}

void DeviceBatches::launch_searches(const Batch& batch) {
  DeviceState& s = state_;
  if (batch.searches.empty()) return;
  GainParams gain = policy_.gain();
  gain.channels = static_cast<int>(slots_.channels());
  if (slots_.channels() == policy_.width() && sizes_.in_doubt())
    gain.min_h = std::max(gain.min_h, sizes_.least_h());
  const bool plain = is_plain(gain);
  const char* const kernel = policy_.width() > 1
                                 ? (plain ? "search_outputs_plain" : "search_outputs_limited")
                             : is_mixed_ ? "search_mixed"
                             : plain     ? "search_plain"
                                         : "search_limited";
  s.queue.launch(s.device.kernel(kernel), {batch.most_features, batch.searches.size()}, threads, 0,
                 gain, batch.work, feature_columns_.data());
}

// Results of the searches of a batch.
void DeviceBatches::take_splits(const Batch& batch) {
  for (std::size_t j = 0; j < batch.searched.size(); ++j) {
    GrowNode& node = *batch.searched[j];
    const FoundSplit& best = batch.work.best[j];
    if (!best.is_valid || !policy_.may_split(node)) continue;
    node.gain = std::max(best.score - batch.scores[j], 0.0);
    node.feature = static_cast<std::int32_t>(best.feature);
    node.split = {};
    node.split.score = best.score;
    node.split.is_valid = true;
    node.split.bin = best.bin;
    node.split.missing_left = best.missing_left != 0;
    node.split.missing_seen = best.missing_seen != 0;
    node.split.by_set = best.by_set != 0;
    node.split.left = best.levels;
    node.left_sums.assign(policy_.channels(), 0);
    node.left_sums[0] = best.left;
    const std::size_t width = policy_.width();
    if (width > 1) std::copy_n(batch.work.best_left + j * width, width, node.left_sums.begin());
    if (is_in_doubt(node, best)) in_doubt_.push_back(&node);
    policy_.settle(node.feature, node.split, best.next, node.left_sums.data(), node.sums.data());
  }
}

// Codes of rows without hessians are not seen without counts.
bool DeviceBatches::is_in_doubt(const GrowNode& node, const FoundSplit& split) const {
  if (!sizes_.in_doubt() || slots_.channels() > policy_.width() || split.has_rows) return false;
  const bool is_certain = sizes_.is_certain(static_cast<std::size_t>(node.feature), node.split,
                                            node.left_sums.data(), node.sums.data());
  return !is_certain || (sizes_.any_empty() && split.next != split.bin + 1);
}

// Searches nodes in doubt again, in histograms that count rows. As many as fit are a batch, built
// from the rows of each like that of a root.
void DeviceBatches::search_in_doubt() {
  DeviceState& s = state_;
  const std::vector<GrowNode*> all = std::exchange(in_doubt_, {});
  const std::span<GrowNode* const> nodes(all);
  if (nodes.empty()) return;
  const std::size_t width = policy_.width();
  slots_.use_channels(width + 1);
  constexpr std::size_t most_bytes = std::size_t{256} << 20;
  const std::size_t size = slots_.size(), bytes = size * sizeof(std::int64_t);
  const std::size_t together = std::clamp<std::size_t>(most_bytes / bytes, 1, nodes.size());
  make_room(built_, together * size);
  for (std::size_t first = 0; first < nodes.size(); first += together) {
    const auto some = nodes.subspan(first, std::min(together, nodes.size() - first));
    s.queue.fill_zero(built_.address(), some.size() * bytes);
    Batch batch;
    std::vector<Segment> segments;
    for (GrowNode* node : some) {
      const auto number = static_cast<std::uint32_t>(batch.works.size());
      const auto begin = static_cast<std::uint32_t>(node->begin);
      const auto end = static_cast<std::uint32_t>(node->end);
      std::int64_t* histogram = built_.data() + number * size;
      batch.works.push_back({});
      batch.works.back().children[0] = histogram;
      batch.counts.push_back({end - begin, ~0u});  // as the smaller child of a node
      segments.push_back(
          {begin, end, static_cast<std::uint32_t>(node->buffer), batch.state.n_rows, histogram});
      batch.state.n_rows += end - begin;
      segments.push_back({0, 0, 0, batch.state.n_rows, nullptr});
      request(*node, number, 0, batch);
      node->gain = -1;
      node->split = {};
    }
    send(batch);
    s.send(segments, segments_);
    plan_histograms(batch.state.n_rows, batch.work);
    launch_histograms(batch.work);
    launch_searches(batch);
    s.queue.await(batch.work.answer);
    take_splits(batch);
  }
  slots_.use_channels(width);
}

void DeviceBatches::launch_root(std::int64_t* histogram, Batch& batch) {
  DeviceState& s = state_;
  const std::uint32_t n = s.n_rows;
  s.queue.fill_zero(reinterpret_cast<Address>(histogram), slots_.size() * sizeof(std::int64_t));
  batch.works.push_back({});
  batch.works[0].children[0] = histogram;
  batch.counts.push_back({n, ~0u});  // as the smaller child of a node
  batch.state.n_rows = n;
  send(batch);
  s.send(std::vector<Segment>{{0, n, 0, 0, histogram}, {0, 0, 0, n, nullptr}}, segments_);
  plan_histograms(n, batch.work);
  launch_histograms(batch.work);
}

void DeviceBatches::open_root(TreePolicy& policy, Team& team) {
  DeviceState& s = state_;
  search_.start_tree(team.size());
  slots_.release_all();
  free_histograms();
  GrowNode& root = policy.open_root(s.n_rows, false);
  root.histogram = acquire();
  Batch batch;
  launch_root(root.histogram, batch);
  root.sums = s.root_of(policy.width(), policy.channels());  // meanwhile
  if (!policy.may_split(root) || impure({&root}).empty()) return forget(root);
  if (!searches_on_device_) {
    GrowNode* const nodes[] = {&root};
    return search_on_host(nodes, team);
  }
  request(root, 0, 0, batch);
  if (batch.searches.empty()) return;
  send(batch);
  launch_searches(batch);
  s.queue.await(batch.work.answer);
  take_splits(batch);
  search_in_doubt();
}

// Appends the work of a node: its test and range.
NodeWork& DeviceBatches::open_work(const GrowNode& node, Batch& batch) const {
  NodeWork& work = batch.works.emplace_back();
  work.test = test_of(codes_, static_cast<std::size_t>(node.feature),
                      {.bin = node.split.bin,
                       .missing_left = node.split.missing_left,
                       .levels = node.split.by_set ? &node.split.left : nullptr});
  work.begin = static_cast<std::uint32_t>(node.begin);
  work.end = static_cast<std::uint32_t>(node.end);
  work.buffer = static_cast<std::uint32_t>(node.buffer);
  work.first_tile = batch.n_tiles;
  batch.n_tiles += static_cast<std::uint32_t>(blocks_for(node.n_rows(), tile_rows));
  batch.counts.push_back({0, 0});
  return work;
}

// The work of a batch: tests and ranges of its nodes, histograms and searches of their children.
// Nodes whose children can only be leaves need none: the rows find their leaves by a walk.
DeviceBatches::Batch DeviceBatches::open_batch(TreePolicy& policy,
                                               std::span<GrowNode* const> nodes) {
  Batch batch;
  for (GrowNode* const given : nodes) {
    GrowNode& node = *given;
    policy.open_children(node);
    // Counts of rows are not known yet: an upper bound of them decides.
    const auto may_split = [&](const GrowNode& child) {
      return policy.may_split(child.depth, node.n_rows(), child.sums.data());
    };
    const bool may[] = {may_split(*node.left), may_split(*node.right)};
    if (!may[0] && !may[1]) {
      forget(node);
      continue;
    }
    const auto number = static_cast<std::uint32_t>(batch.nodes.size());
    batch.nodes.push_back(&node);
    NodeWork& work = open_work(node, batch);
    for (std::uint32_t side = 0; side < 2; ++side)
      if (may[side] && searches_on_device_)
        request(side == 0 ? *node.left : *node.right, number, side, batch);
    work.parent = node.histogram;
    work.children[0] = acquire();
    if (work.parent == nullptr) work.children[1] = acquire();
  }
  return batch;
}

void DeviceBatches::launch_partition(const Batch& batch, std::size_t clear_blocks) {
  DeviceState& s = state_;
  s.queue.launch(s.device.kernel("partition"), {batch.n_tiles + clear_blocks}, threads, 0,
                 s.table->codes(), batch.work, s.elements[0].data(), s.elements[1].data());
}

void DeviceBatches::expand(TreePolicy& policy, std::span<GrowNode* const> nodes, Team& team) {
  DeviceState& s = state_;
  team.poll_if_due(0);
  Batch batch = open_batch(policy, nodes);
  if (batch.nodes.empty()) return;
  std::size_t n_rows = 0;
  for (const GrowNode* node : batch.nodes) n_rows += node->n_rows();
  send(batch);
  if (sizes_.in_doubt() && !sizes_.any_empty() && policy.width() == 1)
    batch.work.certain_h = sizes_.certain_h();
  plan_histograms(n_rows, batch.work);
  const bool clears = batch.work.parts == nullptr;
  const std::size_t clear_blocks = clears ? std::min<std::size_t>(264, 2 * batch.nodes.size()) : 0;
  launch_partition(batch, clear_blocks);
  launch_histograms(batch.work);
  launch_searches(batch);
  s.queue.await(batch.work.answer);
  for (std::size_t j = 0; j < batch.nodes.size(); ++j) {
    GrowNode& node = *batch.nodes[j];
    const NodeWork& work = batch.works[j];
    const NodeCount& count = batch.work.final_counts[j];
    policy.place_children(node, count.left, count.left);
    const bool left_is_smaller = count.left <= count.right;
    (left_is_smaller ? node.left : node.right)->histogram = work.children[0];
    (left_is_smaller ? node.right : node.left)->histogram =
        work.parent != nullptr ? work.parent : work.children[1];
    node.histogram = nullptr;
  }
  if (searches_on_device_) {
    take_splits(batch);
    search_in_doubt();
  } else {
    std::vector<GrowNode*> searched;
    for (GrowNode* node : batch.nodes)
      for (GrowNode* child : {node->left, node->right})
        if (policy.may_split(*child)) searched.push_back(child);
    search_on_host(impure(std::move(searched)), team);
  }
  const bool scarce = in_use_ * slots_.size() * sizeof(std::int64_t) > params_.histogram_bytes;
  for (GrowNode* node : batch.nodes)
    for (GrowNode* child : {node->left, node->right})
      if (child->gain < 0 || scarce) forget(*child);
}

// ---- for workers ----

std::size_t DeviceBatches::n_tree_rows() const {
  return state_.n_rows;
}

void DeviceBatches::build_root(GrowNode& root, Team& team) {
  make_room(built_, slots_.size());
  Batch batch;
  launch_root(built_.data(), batch);
  const std::int64_t* const on_device[] = {built_.data()};
  const auto take = [&](std::size_t, const std::int64_t* histogram, int) {
    std::copy_n(histogram, slots_.size(), root.histogram);
  };
  each_histogram(on_device, take, team);
  root.sums = state_.root_of(policy_.width(), policy_.channels());
}

std::vector<std::int64_t> DeviceBatches::divide(std::span<GrowNode* const> nodes,
                                                std::span<GrowNode* const> built, Team& team) {
  DeviceState& s = state_;
  team.poll_if_due(0);
  const std::size_t size = slots_.size();
  make_room(built_, built.size() * size);
  Batch batch;
  std::vector<std::size_t> divided;  // numbers of the nodes that are
  std::vector<const std::int64_t*> on_device;
  std::vector<std::int64_t*> on_host;
  std::size_t n_rows = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const GrowNode* const children[] = {nodes[i]->left, nodes[i]->right};
    if (children[0]->histogram == nullptr && children[1]->histogram == nullptr) continue;
    NodeWork& work = open_work(*nodes[i], batch);
    for (int side = 0; side < 2; ++side) {
      if (children[side]->histogram == nullptr) continue;
      work.children[side] = built_.data() + on_host.size() * size;
      on_device.push_back(work.children[side]);
      on_host.push_back(children[side]->histogram);
    }
    divided.push_back(i);
    n_rows += nodes[i]->n_rows();
  }
  std::vector<std::int64_t> n_left(nodes.size(), 0);
  if (divided.empty()) return n_left;
  s.queue.fill_zero(built_.address(), on_host.size() * size * sizeof(std::int64_t));
  send(batch);
  batch.work.is_by_side = 1;
  plan_histograms(n_rows, batch.work);
  launch_partition(batch, 0);
  launch_histograms(batch.work);
  const auto take = [&](std::size_t j, const std::int64_t* histogram, int) {
    std::copy_n(histogram, size, on_host[j]);
  };
  each_histogram(on_device, take, team);
  s.queue.await(batch.work.answer);
  for (std::size_t j = 0; j < divided.size(); ++j)
    n_left[divided[j]] = batch.work.final_counts[j].left;
  return n_left;
}

}  // namespace arboost::cuda
