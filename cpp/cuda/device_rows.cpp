// A batch of nodes is one upload, six launches and one download.
#include "cuda/device_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/random.h"
#include "grow/rows/row_leaves.h"

namespace arboost::cuda {
namespace {

constexpr unsigned threads = 256;

std::size_t blocks_for(std::size_t n, std::size_t size = threads) {
  return std::max<std::size_t>(1, (n + size - 1) / size);
}

}  // namespace

// Memory of a fit on the device.
struct DeviceRows::State {
  State(Device& device_, const Codes& codes) : device(device_), table(codes, queue) {}

  Device& device;
  Queue queue;
  DeviceTable table;
  DeviceArray<RowId> table_rows;
  DeviceArray<std::uint32_t> positions;
  DeviceArray<float> weights;
  DeviceArray<FixedPair> all_pairs, sample_pairs;
  DeviceArray<Element> elements[2];
  DeviceArray<PackedSum> wide;
  DeviceArray<std::uint32_t> number_of_row, leaf_of_row;
  DeviceArray<std::int64_t> sums;
  DeviceArray<NodeTest> tree;

  DeviceArray<std::uint32_t> first_slot;
  DeviceArray<FeatureColumn> columns;
  std::vector<DeviceArray<std::int64_t>> histograms;  // a block of several each
  std::vector<std::int64_t*> free;
  std::size_t in_use = 0;

  DeviceArray<NodeWork> works;
  DeviceArray<NodeSearch> searches;
  DeviceArray<std::uint32_t> features;
  DeviceArray<NodeCount> counts;
  DeviceArray<Segment> segments;
  DeviceArray<std::uint32_t> total;
  DeviceArray<FoundSplit> found, best;
  DeviceArray<LeafRows> leaves;
  PinnedBytes sent, received;
  std::size_t sent_size = 0, n_sent = 0;

  // Sends an array of records to the device. Copies read the staged bytes until the next wait.
  template <class T>
  void send(const std::vector<T>& from, DeviceArray<T>& to) {
    make_room(to, from.size());
    const std::size_t bytes = from.size() * sizeof(T);
    if (n_sent + bytes > sent_size) {
      queue.wait();
      sent_size = std::max(sent_size, std::bit_ceil(4 * bytes));
      sent.room(sent_size);
      n_sent = 0;
    }
    std::byte* staged = sent.room(sent_size) + n_sent;
    n_sent += (bytes + 15) / 16 * 16;
    std::memcpy(staged, from.data(), bytes);
    queue.copy_in(staged, bytes, to.address());
  }
  template <class T>
  std::vector<T> receive(Address from, std::size_t n) {
    std::byte* staged = received.room(n * sizeof(T));
    queue.copy_out(from, n * sizeof(T), staged);
    queue.wait();
    n_sent = 0;
    std::vector<T> numbers(n);
    std::memcpy(numbers.data(), staged, n * sizeof(T));
    return numbers;
  }
};

DeviceRows::DeviceRows(const Codes& codes, std::span<const RowId> table_rows, TreePolicy& policy,
                       Workspace& workspace)
    : codes_(codes),
      policy_(policy),
      params_(policy.params()),
      table_rows_(table_rows.begin(), table_rows.end()),
      n_training_(table_rows.empty() ? codes.n_rows : table_rows.size()),
      space_(workspace),
      host_rows_(codes, {}, policy.width(), false, params_.sum_bits, workspace, alone_),
      sizes_(codes, params_, policy.width(), true),
      slots_(codes, params_.histogram_bytes, workspace),
      search_(codes, policy, {.rows = host_rows_, .histograms = slots_, .sizes = sizes_}) {
  if (params_.criterion != Criterion::quadratic || params_.allow_zero_gain)
    throw DeviceError("CART trees do not grow on a CUDA device yet: use device=\"cpu\"");
  Device& device = Device::number(params_.device);
  Device::Use use(device);
  state_ = std::make_unique<State>(device, codes);
  State& s = *state_;
  if (!table_rows_.empty()) {
    s.table_rows = DeviceArray<RowId>(table_rows_.size());
    s.queue.upload(table_rows_.data(), table_rows_.size(), s.table_rows);
  }
  s.leaf_of_row = DeviceArray<std::uint32_t>(codes.n_rows);
  const std::size_t n_stores = codes.n_stores;
  s.first_slot = DeviceArray<std::uint32_t>(n_stores + 1);
  s.queue.upload(slots_.slots().first, n_stores, s.first_slot);
  std::vector<FeatureColumn> columns;
  for (std::size_t f = 0; f < codes.n_features; ++f)
    columns.push_back({codes.where[f].storage == Storage::own
                           ? slots_.slots().first[codes.where[f].store]
                           : 0,
                       codes.n_bins[f], params_.monotone.empty() ? 0 : params_.monotone[f],
                       codes.has_missing[f]});
  s.send(columns, s.columns);
  s.total = DeviceArray<std::uint32_t>(1);
  s.queue.wait();
}

DeviceRows::~DeviceRows() {
  try {
    Device::Use use(state_->device);
    state_.reset();
  } catch (const DeviceError&) {  // the device is gone, and its memory with it
  }
}

DeviceRows::Pairs DeviceRows::pairs_of(const Gradients& gradients, std::size_t output,
                                       const Sample* sample) {
  State& s = *state_;
  const std::size_t width = policy_.width();
  make_room(s.all_pairs, gradients.pairs.size());
  s.queue.upload(gradients.pairs.data(), gradients.pairs.size(), s.all_pairs);
  const auto first = static_cast<std::ptrdiff_t>(output), n = static_cast<std::ptrdiff_t>(width);
  const auto some = [=](const std::vector<std::int64_t>& sums) {
    return std::vector<std::int64_t>(sums.begin() + first, sums.begin() + first + n);
  };
  Pairs all{s.all_pairs.data() + output * gradients.output_stride(),
            gradients.row_stride(),
            gradients.output_stride(),
            gradients.g_exponent,
            gradients.h_exponent,
            some(gradients.sum_abs_g),
            some(gradients.sum_h)};
  if (sample == nullptr) return all;
  const float* weights = sample->weights_or_null();
  const float largest =
      weights == nullptr || sample->size == 0
          ? 1.0f
          : std::max(1.0f, *std::max_element(weights, weights + sample->size));
  const int drop = bits_of_factor(largest);
  const double factor = std::ldexp(1.0, -drop);
  make_room(s.sample_pairs, sample->size * width);
  make_room(s.sums, 2 * width);
  if (weights != nullptr) {
    make_room(s.weights, sample->size);
    s.queue.upload(weights, sample->size, s.weights);
  }
  s.queue.fill_zero(s.sums.address(), 2 * width * sizeof(std::int64_t));
  const PairRows rows{all.pairs,
                      all.row_stride,
                      all.output_stride,
                      {s.positions.data(), s.table_rows.data()},
                      static_cast<std::uint32_t>(sample->size),
                      0,
                      static_cast<std::uint32_t>(width),
                      0,
                      0};
  s.queue.launch(s.device.kernel("gather_pairs"), {std::min<std::size_t>(1024, blocks_for(rows.n))},
                 threads, 0, rows, weights == nullptr ? nullptr : s.weights.data(), factor,
                 s.sample_pairs.data(), s.sums.data());
  const std::vector<std::int64_t> sums = s.receive<std::int64_t>(s.sums.address(), 2 * width);
  Pairs own{s.sample_pairs.data(), width, 1, gradients.g_exponent - drop,
            gradients.h_exponent - drop, {}, {}};
  for (std::size_t k = 0; k < width; ++k) {
    own.sum_abs_g.push_back(sums[2 * k]);
    own.sum_h.push_back(sums[2 * k + 1]);
  }
  return own;
}

TreeScale DeviceRows::start_tree(const Gradients& gradients, std::size_t output,
                                 const TreeRequest& request, Team&) {
  State& s = *state_;
  Device::Use use(s.device);
  sample_ = request.sample;
  has_leaves_ = is_walked_ = false;
  tree_rows_ = training_rows();
  if (sample_ != nullptr) {
    tree_rows_ = {sample_->size, sample_->positions.data(), tree_rows_.table_rows};
    make_room(s.positions, sample_->size);
    s.queue.upload(sample_->positions.data(), sample_->size, s.positions);
  }
  pairs_ = pairs_of(gradients, output, sample_);
  scaling_ = scaling_of(pairs_.sum_abs_g, pairs_.sum_h, tree_rows_.n, params_.sum_bits, true);
  const auto bits = counter_hash(request.seed, Purpose::gradient_rounding, request.number, output);
  quantise(scaling_, static_cast<std::uint32_t>(bits));
  sizes_.start_tree();
  const bool counted = sizes_.counting() != Counting::none;
  slots_.use_channels(policy_.width() + (counted ? 1 : 0));
  double weight = 0;
  for (const std::int64_t h : pairs_.sum_h)
    weight += std::ldexp(static_cast<double>(h), -pairs_.h_exponent) /
              static_cast<double>(policy_.width());
  return {.g_unit = std::ldexp(1.0, scaling_.g.shift() - pairs_.g_exponent),
          .h_unit = std::ldexp(1.0, scaling_.h.shift() - pairs_.h_exponent),
          .weight = weight,
          .n_rows = tree_rows_.n,
          .counted = counted,
          .least_h = 1};
}

void DeviceRows::quantise(const TreeScaling& scaling, std::uint32_t seed) {
  State& s = *state_;
  const std::size_t n = tree_rows_.n;
  for (auto& elements : s.elements) make_room(elements, n);
  const PairRows rows{pairs_.pairs,
                      pairs_.row_stride,
                      pairs_.output_stride,
                      {sample_ == nullptr ? nullptr : s.positions.data(), s.table_rows.data()},
                      static_cast<std::uint32_t>(n),
                      seed,
                      static_cast<std::uint32_t>(policy_.width()),
                      scaling.g.shift(),
                      scaling.h.shift()};
  if (scaling.narrow) {
    s.queue.launch(s.device.kernel("quantise_narrow"), {blocks_for(n)}, threads, 0, rows,
                   s.elements[0].data());
  } else {
    make_room(s.wide, codes_.n_rows * policy_.width());
    s.queue.launch(s.device.kernel("quantise_wide"), {blocks_for(n)}, threads, 0, rows, scaling.g,
                   scaling.h, s.elements[0].data(), s.wide.data());
  }
}

bool DeviceRows::searches_on_device() const {
  return codes_.is_plain() && codes_.sparse.size() == 0 && codes_.width == 1 &&
         codes_.is_category.empty() && policy_.width() == 1 && !params_.random_cuts;
}

std::int64_t* DeviceRows::acquire() {
  State& s = *state_;
  const std::size_t size = slots_.size();
  if (s.free.empty()) {
    constexpr std::size_t block_bytes = std::size_t{32} << 20;
    const std::size_t n =
        std::clamp<std::size_t>(block_bytes / (size * sizeof(std::int64_t)), 1, 256);
    s.histograms.emplace_back(n * size);
    for (std::size_t j = 0; j < n; ++j) s.free.push_back(s.histograms.back().data() + j * size);
  }
  ++s.in_use;
  std::int64_t* histogram = s.free.back();
  s.free.pop_back();
  return histogram;
}

void DeviceRows::release(std::int64_t* histogram) {
  if (histogram == nullptr) return;
  state_->free.push_back(histogram);
  --state_->in_use;
}

void DeviceRows::forget(GrowNode& node) {
  release(node.histogram);
  node.histogram = nullptr;
}

std::size_t DeviceRows::batch_size() const {
  const std::size_t bytes = 2 * slots_.size() * sizeof(std::int64_t);
  const std::size_t most = params_.best_first ? 64 : 1024;
  return std::clamp<std::size_t>(params_.histogram_bytes / std::max<std::size_t>(1, bytes), 1,
                                 most);
}

// Adds the rows of segments to their histograms.
void DeviceRows::launch_histograms(std::uint32_t n_segments, std::size_t most_rows) {
  State& s = *state_;
  const DeviceCodes codes = [&] {
    DeviceCodes own = s.table.codes();
    own.first_sparse = static_cast<std::uint32_t>(slots_.slots().first_sparse);
    return own;
  }();
  const RowValues values{scaling_.narrow ? nullptr : s.wide.data(),
                         static_cast<std::uint32_t>(policy_.width()),
                         static_cast<std::uint32_t>(slots_.channels())};
  const auto processors = static_cast<std::size_t>(s.device.multiprocessors());
  if (codes_.width == 1 && codes_.n_stores > 0) {
    std::uint32_t n_codes = 1;
    for (std::size_t j = 0; j < codes_.n_stores; ++j)
      n_codes = std::max(n_codes, codes_.first_slot[j + 1] - codes_.first_slot[j]);
    constexpr std::size_t rows_per_share = 2048;
    constexpr unsigned table_threads = 1024;
    const std::size_t groups = (codes_.n_stores + 31) / 32;
    const std::size_t shares =
        std::clamp<std::size_t>(most_rows / rows_per_share, 1, 2 * processors);
    const std::size_t bytes = n_codes * 64 * sizeof(std::int32_t);
    s.queue.launch(s.device.kernel("histograms", bytes), {shares, groups, slots_.channels()},
                   table_threads, bytes, codes, s.first_slot.data(), n_codes, s.segments.data(),
                   n_segments, s.total.data(), s.elements[0].data(), s.elements[1].data(), values);
  } else if (codes_.n_stores > 0) {
    s.queue.launch(s.device.kernel("histograms_wide"),
                   {std::min(blocks_for(most_rows), 16 * processors)}, threads, 0, codes,
                   s.first_slot.data(), s.segments.data(), n_segments, s.total.data(),
                   s.elements[0].data(), s.elements[1].data(), values);
  }
  if (codes_.sparse.size() > 0)
    s.queue.launch(s.device.kernel("histograms_sparse"),
                   {std::min(blocks_for(most_rows), 16 * processors)}, threads, 0, codes,
                   s.segments.data(), n_segments, s.total.data(), s.elements[0].data(),
                   s.elements[1].data(), values);
}

void DeviceRows::search_on_host(std::span<GrowNode* const> nodes, Team& team) {
  State& s = *state_;
  std::int64_t* const room = slots_.acquire();
  for (GrowNode* node : nodes) {
    std::int64_t* const on_device = node->histogram;
    const std::vector<std::int64_t> sums =
        s.receive<std::int64_t>(reinterpret_cast<Address>(on_device), slots_.size());
    std::copy(sums.begin(), sums.end(), room);
    node->histogram = room;
    search_.find(*node, 0, team);
    node->histogram = on_device;
  }
  slots_.release(room);
}

// The nodes of a batch, with the searches of their children.
struct DeviceRows::Batch {
  std::vector<NodeWork> works;
  std::vector<NodeSearch> searches;
  std::vector<std::uint32_t> features;
  std::vector<GrowNode*> searched;
  std::vector<double> scores;  // of the searched nodes
  std::uint32_t n_tiles = 0;
  std::size_t most_features = 0;
};

void DeviceRows::request(GrowNode& node, std::uint32_t work, std::uint32_t side, Batch& batch) {
  const double score = policy_.node_score(node);
  const auto features = policy_.columns().of_node(node, columns_);
  batch.searches.push_back({node.sums[0], policy_.floor_of(node.sums.data(), score), node.lower,
                            node.upper, static_cast<std::uint32_t>(batch.features.size()),
                            static_cast<std::uint32_t>(features.size()), work, side});
  batch.features.insert(batch.features.end(), features.begin(), features.end());
  batch.most_features = std::max(batch.most_features, features.size());
  batch.searched.push_back(&node);
  batch.scores.push_back(score);
}

void DeviceRows::launch_searches(const Batch& batch, const NodeWork* works) {
  State& s = *state_;
  if (batch.searches.empty() || batch.most_features == 0) return;
  const std::size_t n = batch.searches.size();
  make_room(s.found, n * batch.most_features);
  make_room(s.best, n);
  s.send(batch.searches, s.searches);
  s.send(batch.features, s.features);
  const auto stride = static_cast<std::uint32_t>(batch.most_features);
  const bool plain = is_plain(policy_.gain());
  s.queue.launch(s.device.kernel(plain ? "search_plain" : "search_limited"), {stride, n}, threads,
                 0, policy_.gain(), s.searches.data(), works, s.counts.data(), s.features.data(),
                 s.columns.data(), stride, s.found.data());
  s.queue.launch(s.device.kernel("choose"), {n}, 32, 0, s.searches.data(), stride, s.found.data(),
                 s.best.data());
}

// Results of the searches of a batch.
void DeviceRows::take_splits(const Batch& batch, std::span<const FoundSplit> found) {
  for (std::size_t j = 0; j < batch.searched.size(); ++j) {
    GrowNode& node = *batch.searched[j];
    const FoundSplit& best = found[j];
    if (!best.found || batch.searches[j].n_features == 0 || !policy_.may_split(node)) continue;
    node.gain = std::max(best.score - batch.scores[j], 0.0);
    node.feature = static_cast<std::int32_t>(best.feature);
    node.split = {};
    node.split.score = best.score;
    node.split.found = true;
    node.split.bin = best.bin;
    node.split.missing_left = best.missing_left != 0;
    node.split.missing_seen = best.missing_seen != 0;
    node.left_sums.assign(policy_.channels(), 0);
    node.left_sums[0] = best.left;
    policy_.settle(node.feature, node.split, best.next, node.left_sums.data(), node.sums.data());
  }
}

void DeviceRows::open_root(TreePolicy& policy, Team& team) {
  State& s = *state_;
  Device::Use use(s.device);
  search_.start_tree(team.size());
  slots_.release_all();
  s.free.clear();  // histograms of a tree that was interrupted, or of other channels
  s.in_use = 0;
  const std::size_t size = slots_.size();
  for (auto& block : s.histograms)
    for (std::size_t j = 0; j + size <= block.size(); j += size)
      s.free.push_back(block.data() + j);
  const std::size_t n = tree_rows_.n, channels = policy.channels();
  GrowNode& root = policy.open_root(n, false);
  const RowValues values{scaling_.narrow ? nullptr : s.wide.data(),
                         static_cast<std::uint32_t>(policy_.width()),
                         static_cast<std::uint32_t>(channels)};
  make_room(s.sums, channels);
  s.queue.fill_zero(s.sums.address(), channels * sizeof(std::int64_t));
  s.queue.launch(s.device.kernel("sum_values"), {std::min<std::size_t>(1024, blocks_for(n))},
                 threads, 0, s.elements[0].data(), static_cast<std::uint32_t>(n), values,
                 s.sums.data());
  root.sums = s.receive<std::int64_t>(s.sums.address(), channels);
  if (!policy.may_split(root)) return;
  root.histogram = acquire();
  s.queue.fill_zero(reinterpret_cast<Address>(root.histogram), size * sizeof(std::int64_t));
  Batch batch;
  batch.works.push_back({});
  batch.works[0].children[0] = root.histogram;
  const std::vector<NodeCount> counts{{static_cast<std::uint32_t>(n), ~0u}};
  const std::vector<Segment> segments{{0, static_cast<std::uint32_t>(n), 0, 0, root.histogram}};
  const std::vector<std::uint32_t> total{static_cast<std::uint32_t>(n)};
  s.send(batch.works, s.works);
  s.send(counts, s.counts);
  s.send(segments, s.segments);
  s.send(total, s.total);
  launch_histograms(1, n);
  GrowNode* const nodes[] = {&root};
  if (!searches_on_device()) return search_on_host(nodes, team);
  request(root, 0, 0, batch);
  launch_searches(batch, s.works.data());
  take_splits(batch, s.receive<FoundSplit>(s.best.address(), batch.searches.size()));
}

void DeviceRows::expand(TreePolicy& policy, std::span<GrowNode* const> nodes, Team& team) {
  State& s = *state_;
  Device::Use use(s.device);
  team.poll_if_due(0);
  const bool on_device = searches_on_device();
  Batch batch;
  std::size_t n_rows = 0;
  bool any_histogram = false;
  for (std::size_t j = 0; j < nodes.size(); ++j) {
    GrowNode& node = *nodes[j];
    policy.open_children(node);
    NodeWork work{};
    work.test = test_of(codes_, static_cast<std::size_t>(node.feature),
                        {.bin = node.split.bin,
                         .missing_left = node.split.missing_left,
                         .levels = node.split.by_set ? &node.split.left : nullptr});
    work.begin = static_cast<std::uint32_t>(node.begin);
    work.end = static_cast<std::uint32_t>(node.end);
    work.buffer = static_cast<std::uint32_t>(node.buffer);
    work.first_tile = batch.n_tiles;
    batch.n_tiles += static_cast<std::uint32_t>(blocks_for(node.n_rows(), tile_rows));
    n_rows += node.n_rows();
    // Counts of rows are not known yet: an upper bound of them decides.
    GrowNode* const children[] = {node.left, node.right};
    bool any = false;
    for (std::uint32_t side = 0; side < 2; ++side) {
      const GrowNode& child = *children[side];
      const bool may = policy.may_split(child.depth, node.n_rows(), child.sums.data());
      any |= may;
      if (may && on_device) request(*children[side], static_cast<std::uint32_t>(j), side, batch);
    }
    if (any) {
      work.parent = node.histogram;
      work.children[0] = acquire();
      if (work.parent == nullptr) work.children[1] = acquire();
      any_histogram = true;
    } else {
      forget(node);
    }
    batch.works.push_back(work);
  }
  const auto n_nodes = static_cast<std::uint32_t>(nodes.size());
  make_room(s.counts, n_nodes);
  make_room(s.segments, 2 * nodes.size());
  s.send(batch.works, s.works);
  s.queue.fill_zero(s.counts.address(), n_nodes * sizeof(NodeCount));
  s.queue.launch(s.device.kernel("partition"), {batch.n_tiles}, threads, 0, s.table.codes(),
                 s.works.data(), n_nodes, s.elements[0].data(), s.elements[1].data(),
                 s.counts.data());
  if (any_histogram) {
    const auto size = static_cast<std::uint32_t>(slots_.size());
    const Queue::Grid all_slots{std::min<std::size_t>(32, blocks_for(size)), n_nodes};
    s.queue.launch(s.device.kernel("plan"), {1}, 1024, 0, s.works.data(), n_nodes, s.counts.data(),
                   s.segments.data(), s.total.data());
    s.queue.launch(s.device.kernel("clear"), all_slots, threads, 0, s.works.data(), size);
    launch_histograms(2 * n_nodes, n_rows);
    s.queue.launch(s.device.kernel("subtract"), all_slots, threads, 0, s.works.data(), size);
    if (on_device) launch_searches(batch, s.works.data());
  }
  const std::vector<NodeCount> counts = s.receive<NodeCount>(s.counts.address(), n_nodes);
  std::vector<FoundSplit> found;
  if (!batch.searches.empty())
    found = s.receive<FoundSplit>(s.best.address(), batch.searches.size());
  for (std::size_t j = 0; j < nodes.size(); ++j) {
    GrowNode& node = *nodes[j];
    const NodeWork& work = batch.works[j];
    policy.place_children(node, counts[j].left, counts[j].left);
    const bool left_is_smaller = counts[j].left <= counts[j].right;
    GrowNode& smaller = left_is_smaller ? *node.left : *node.right;
    GrowNode& larger = left_is_smaller ? *node.right : *node.left;
    if (work.children[0] == nullptr) continue;
    smaller.histogram = work.children[0];
    larger.histogram = work.parent != nullptr ? work.parent : work.children[1];
    node.histogram = nullptr;
  }
  if (on_device) {
    take_splits(batch, found);
  } else {
    std::vector<GrowNode*> searched;
    for (GrowNode* node : nodes)
      for (GrowNode* child : {node->left, node->right})
        if (child->histogram != nullptr && policy.may_split(*child)) searched.push_back(child);
    search_on_host(searched, team);
  }
  const bool scarce = s.in_use * slots_.size() * sizeof(std::int64_t) > params_.histogram_bytes;
  for (GrowNode* node : nodes)
    for (GrowNode* child : {node->left, node->right})
      if (child->gain < 0 || scarce) forget(*child);
}

LeafSums DeviceRows::leaf_sums(const TreeShape& shape, const GrownTrees& forest,
                               const Gradients& gradients, std::size_t output,
                               const TreeRequest& request, Team&) {
  State& s = *state_;
  Device::Use use(s.device);
  if (sample_ == nullptr || !request.leaves_from_all_rows) return summed(shape, pairs_, true);
  sample_ = nullptr;
  tree_rows_ = training_rows();
  pairs_ = pairs_of(gradients, output, nullptr);
  is_walked_ = true;
  const std::size_t tree = forest.n_trees() - 1, first = forest.first(tree);
  std::vector<NodeTest> nodes(forest.n_nodes(tree));
  for (std::size_t id = 0; id < nodes.size(); ++id) {
    const std::size_t at = first + id;
    if (forest.left[at] == 0) continue;
    nodes[id] = test_of(codes_, static_cast<std::size_t>(forest.feature[at]),
                        {.bin = static_cast<std::uint32_t>(forest.bin[at]),
                         .missing_left = forest.default_left[at] != 0,
                         .levels = forest.set[at] < 0
                                       ? nullptr
                                       : &forest.sets[static_cast<std::size_t>(forest.set[at])]});
    nodes[id].left = static_cast<std::uint32_t>(forest.left[at]);
  }
  s.send(nodes, s.tree);
  const RowNumbers rows{nullptr, s.table_rows.data()};
  s.queue.launch(s.device.kernel("walk"), {blocks_for(n_training_)}, threads, 0, s.table.codes(),
                 s.tree.data(), rows, static_cast<std::uint32_t>(n_training_),
                 s.leaf_of_row.data());
  return summed(shape, pairs_, false);
}

LeafSums DeviceRows::sums_of(const TreeShape& shape, const Gradients& gradients,
                             std::size_t output, Team&) {
  Device::Use use(state_->device);
  return summed(shape, pairs_of(gradients, output, sample_), false);
}

// Sums over the rows of the tree; `assign`: leaves are noted, too, from the partition.
LeafSums DeviceRows::summed(const TreeShape& shape, const Pairs& pairs, bool assign) {
  State& s = *state_;
  const std::size_t width = policy_.width(), size = shape.size() * width * 2, n = tree_rows_.n;
  const RowNumbers numbers{sample_ == nullptr ? nullptr : s.positions.data(), s.table_rows.data()};
  const PairRows rows{pairs.pairs,
                      pairs.row_stride,
                      pairs.output_stride,
                      numbers,
                      static_cast<std::uint32_t>(n),
                      0,
                      static_cast<std::uint32_t>(width),
                      0,
                      0};
  make_room(s.sums, size);
  s.queue.fill_zero(s.sums.address(), size * sizeof(std::int64_t));
  if (assign) {
    const bool renumbered = numbers.positions != nullptr || numbers.table_rows != nullptr;
    if (renumbered) {
      make_room(s.number_of_row, codes_.n_rows);
      s.queue.launch(s.device.kernel("number_rows"), {blocks_for(n)}, threads, 0, numbers,
                     static_cast<std::uint32_t>(n), s.number_of_row.data());
    }
    std::vector<LeafRows> leaves;
    std::uint32_t n_tiles = 0;
    for (std::size_t id = 0; id < shape.size(); ++id) {
      if (shape.left()[id] != 0) continue;
      each_holder(shape.placed()[id].node, [&](const GrowNode& node) {
        if (node.n_rows() == 0) return;
        leaves.push_back({static_cast<std::uint32_t>(node.begin),
                          static_cast<std::uint32_t>(node.end),
                          static_cast<std::uint32_t>(node.buffer), static_cast<std::uint32_t>(id),
                          n_tiles});
        n_tiles += static_cast<std::uint32_t>(blocks_for(node.n_rows(), tile_rows));
      });
    }
    if (!leaves.empty()) {
      s.send(leaves, s.leaves);
      s.queue.launch(s.device.kernel("leaf_sums"), {n_tiles}, threads, 0, s.leaves.data(),
                     static_cast<std::uint32_t>(leaves.size()), s.elements[0].data(),
                     s.elements[1].data(), rows, renumbered ? s.number_of_row.data() : nullptr,
                     s.leaf_of_row.data(), s.sums.data());
    }
  } else {
    s.queue.launch(s.device.kernel("sums_by_leaf"), {std::min<std::size_t>(1024, blocks_for(n))},
                   threads, 0, rows, s.leaf_of_row.data(), s.sums.data());
  }
  std::vector<std::int64_t> sums = s.receive<std::int64_t>(s.sums.address(), size);
  add_inner_sums(shape.left(), 2 * width, sums);
  return {std::move(sums), pairs.g_exponent, pairs.h_exponent};
}

const std::uint32_t* DeviceRows::leaves() const {
  make_room(space_.leaf_of_row, codes_.n_rows);
  if (!has_leaves_) {
    Device::Use use(state_->device);
    state_->queue.download(state_->leaf_of_row, codes_.n_rows, space_.leaf_of_row.data());
    state_->queue.wait();
    has_leaves_ = true;
  }
  return space_.leaf_of_row.data();
}

void DeviceRows::add_values(const GrownTrees& forest, ScoreRows scores, Team& team) const {
  add_leaf_values(forest, codes_, tree_rows_, n_training_, leaves(), scores, team);
}

}  // namespace arboost::cuda
