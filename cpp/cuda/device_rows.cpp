// A batch of nodes is one upload, three or four launches and one download.
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
  DeviceArray<std::int64_t> sums, root_sums;
  DeviceArray<double> values;
  DeviceArray<NodeTest> tests;
  DeviceArray<WalkNode> tree;

  DeviceArray<std::uint32_t> first_slot;
  DeviceArray<FeatureColumn> columns;
  std::vector<DeviceArray<std::int64_t>> histograms;  // a block of several each
  std::vector<std::int64_t*> free;
  std::size_t in_use = 0;

  DeviceArray<std::byte> batch;
  DeviceArray<Segment> segments;
  DeviceArray<FoundSplit> found;
  DeviceArray<std::int64_t> parts;
  DeviceArray<LeafRows> leaves;
  std::unique_ptr<DeviceRounds> rounds;
  PinnedBytes sent, sent_batch, received;
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
  std::vector<std::uint32_t> first_slot(slots_.slots().first, slots_.slots().first + n_stores);
  first_slot.push_back(static_cast<std::uint32_t>(slots_.slots().first_sparse));
  s.queue.upload(first_slot.data(), n_stores + 1, s.first_slot);
  std::vector<FeatureColumn> columns;
  for (std::size_t f = 0; f < codes.n_features; ++f)
    columns.push_back(
        {codes.where[f].storage == Storage::own ? slots_.slots().first[codes.where[f].store] : 0,
         codes.n_bins[f], params_.monotone.empty() ? 0 : params_.monotone[f],
         codes.has_missing[f]});
  s.send(columns, s.columns);
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
  const FixedPair* pairs = gradients.device_pairs;
  if (pairs == nullptr) {
    make_room(s.all_pairs, gradients.pairs.size());
    s.queue.upload(gradients.pairs.data(), gradients.pairs.size(), s.all_pairs);
    pairs = s.all_pairs.data();
  }
  const auto first = static_cast<std::ptrdiff_t>(output), n = static_cast<std::ptrdiff_t>(width);
  const auto some = [=](const std::vector<std::int64_t>& sums) {
    return std::vector<std::int64_t>(sums.begin() + first, sums.begin() + first + n);
  };
  Pairs all{pairs + output * gradients.output_stride(),
            gradients.row_stride(),
            gradients.output_stride(),
            gradients.g_exponent,
            gradients.h_exponent,
            some(gradients.sum_abs_g),
            some(gradients.sum_h)};
  if (sample == nullptr) return all;
  const float* weights = sample->weights_or_null();
  const float largest = weights == nullptr || sample->size == 0
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
  Pairs own{s.sample_pairs.data(),       width, 1, gradients.g_exponent - drop,
            gradients.h_exponent - drop, {},    {}};
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
  make_room(s.root_sums, policy_.width() + 1);
  s.queue.fill_zero(s.root_sums.address(), s.root_sums.size() * sizeof(std::int64_t));
  if (scaling.narrow) {
    const std::size_t blocks = 8 * static_cast<std::size_t>(s.device.multiprocessors());
    s.queue.launch(s.device.kernel("quantise_narrow"), {std::min(blocks, blocks_for(n))}, threads,
                   0, rows, s.elements[0].data(), s.root_sums.data());
  } else {
    make_room(s.wide, codes_.n_rows * policy_.width());
    s.queue.launch(s.device.kernel("quantise_wide"), {blocks_for(n)}, threads, 0, rows, scaling.g,
                   scaling.h, s.elements[0].data(), s.wide.data());
  }
}

bool DeviceRows::searches_on_device() const {
  const auto& categories = codes_.is_category;
  const bool any_category =
      std::any_of(categories.begin(), categories.end(), [](std::uint8_t is) { return is != 0; });
  return !any_category && codes_.is_plain() && codes_.sparse.size() == 0 && codes_.width == 1 &&
         policy_.width() == 1 && !params_.random_cuts;
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
  const std::size_t most = params_.best_first ? (getenv("CAP") ? atoi(getenv("CAP")) : 64) : 1024;
  return std::clamp<std::size_t>(params_.histogram_bytes / std::max<std::size_t>(1, bytes), 1,
                                 most);
}

// Plans the blocks that add `n_rows` rows, at most, to the histograms of a batch.
void DeviceRows::plan_histograms(std::size_t n_rows, BatchWork& work) {
  State& s = *state_;
  constexpr std::size_t rows_per_share = 4096, most_part_bytes = std::size_t{512} << 20;
  const auto processors = static_cast<std::size_t>(s.device.multiprocessors());
  const std::size_t n_nodes = work.n_nodes;
  const std::size_t shares = std::clamp<std::size_t>(std::max(n_rows / rows_per_share, n_nodes), 1,
                                                     tables_of_processor * processors);
  work.n_shares = static_cast<std::uint32_t>(shares);
  const std::size_t n_parts = shares + 2 * n_nodes, size = slots_.size();
  const bool in_tables = codes_.width == 1 && codes_.n_stores > 0 && codes_.sparse.size() == 0;
  work.parts = nullptr;
  if (!in_tables || n_parts * size * sizeof(std::int64_t) > most_part_bytes) return;
  make_room(s.parts, std::bit_ceil(n_parts * size));
  work.parts = s.parts.data();
}

// Adds the rows of the batch's segments to their histograms.
void DeviceRows::launch_histograms(const BatchWork& work) {
  State& s = *state_;
  const DeviceCodes codes = [&] {
    DeviceCodes own = s.table.codes();
    own.first_sparse = static_cast<std::uint32_t>(slots_.slots().first_sparse);
    return own;
  }();
  const RowValues values{scaling_.narrow ? nullptr : s.wide.data(),
                         static_cast<std::uint32_t>(policy_.width()),
                         static_cast<std::uint32_t>(slots_.channels())};
  const std::size_t blocks = 16 * static_cast<std::size_t>(s.device.multiprocessors());
  if (codes_.width == 1 && codes_.n_stores > 0) {
    std::uint32_t n_codes = 1;
    for (std::size_t j = 0; j < codes_.n_stores; ++j)
      n_codes = std::max(n_codes, codes_.first_slot[j + 1] - codes_.first_slot[j]);
    const std::size_t bytes = n_codes * 64 * sizeof(std::int32_t);
    s.queue.launch(s.device.kernel("histograms", bytes),
                   {work.n_shares, (codes_.n_stores + 31) / 32, slots_.channels()}, table_threads,
                   bytes, codes, s.first_slot.data(), n_codes, work, s.elements[0].data(),
                   s.elements[1].data(), values);
  } else if (codes_.n_stores > 0) {
    s.queue.launch(s.device.kernel("histograms_wide"), {blocks}, threads, 0, codes,
                   s.first_slot.data(), work, s.elements[0].data(), s.elements[1].data(), values);
  }
  if (codes_.sparse.size() > 0)
    s.queue.launch(s.device.kernel("histograms_sparse"), {blocks}, threads, 0, codes, work,
                   s.elements[0].data(), s.elements[1].data(), values);
  const std::uint32_t parts_of_node = work.parts == nullptr ? 1 : work.n_shares / work.n_nodes;
  const std::uint32_t n_adders = std::bit_floor(std::clamp(parts_of_node / 4, 1u, 8u));
  s.queue.launch(
      s.device.kernel("combine"),
      {std::min<std::size_t>(32 * n_adders, blocks_for(slots_.size(), threads / n_adders)),
       2 * work.n_nodes},
      threads, 0, work, n_adders);
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
  std::vector<NodeCount> counts;
  BatchCount state{0, 0};
  std::vector<GrowNode*> searched;
  std::vector<double> scores;  // of the searched nodes
  std::span<const std::uint32_t> last_features;
  std::uint32_t n_tiles = 0;
  std::size_t most_features = 0;

  BatchWork work{};  // on the device

  // On the host, after the device has done it.
  const NodeCount* found_counts = nullptr;
  const FoundSplit* best = nullptr;
};

void DeviceRows::request(GrowNode& node, std::uint32_t work, std::uint32_t side, Batch& batch) {
  const double score = policy_.node_score(node);
  const auto features = policy_.columns().of_node(node, columns_);
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

// Sends a batch in one copy, and points batch.work to it. What the host reads lies together:
//
//   nodes, searches, features, n_done, state | counts, best
void DeviceRows::send(Batch& batch) {
  State& s = *state_;
  const std::size_t n = batch.works.size(), m = batch.searches.size();
  std::size_t size = 0;
  const auto place = [&size](std::size_t bytes) {
    const std::size_t at = size;
    size += (bytes + 15) / 16 * 16;
    return at;
  };
  const std::size_t works = place(n * sizeof(NodeWork)), searches = place(m * sizeof(NodeSearch)),
                    features = place(batch.features.size() * sizeof(std::uint32_t)),
                    n_done = place(m * sizeof(std::uint32_t)), state = place(sizeof(BatchCount)),
                    counts = place(n * sizeof(NodeCount)), sent = size,
                    best = place(m * sizeof(FoundSplit));
  make_room(s.batch, std::bit_ceil(size));
  make_room(s.segments, 2 * n);
  make_room(s.found, m * batch.most_features);
  std::byte* staged = s.sent_batch.room(std::bit_ceil(size));
  const auto put = [&](std::size_t at, const void* from, std::size_t bytes) {
    if (bytes > 0) std::memcpy(staged + at, from, bytes);
  };
  put(works, batch.works.data(), n * sizeof(NodeWork));
  put(searches, batch.searches.data(), m * sizeof(NodeSearch));
  put(features, batch.features.data(), batch.features.size() * sizeof(std::uint32_t));
  std::memset(staged + n_done, 0, m * sizeof(std::uint32_t));
  put(state, &batch.state, sizeof(BatchCount));
  put(counts, batch.counts.data(), n * sizeof(NodeCount));
  s.queue.copy_in(staged, sent, s.batch.address());
  std::byte* const on_device = s.batch.data();
  batch.work = {.nodes = reinterpret_cast<NodeWork*>(on_device + works),
                .searches = reinterpret_cast<NodeSearch*>(on_device + searches),
                .features = reinterpret_cast<std::uint32_t*>(on_device + features),
                .state = reinterpret_cast<BatchCount*>(on_device + state),
                .counts = reinterpret_cast<NodeCount*>(on_device + counts),
                .n_done = reinterpret_cast<std::uint32_t*>(on_device + n_done),
                .best = reinterpret_cast<FoundSplit*>(on_device + best),
                .segments = s.segments.data(),
                .found = s.found.data(),
                .parts = nullptr,
                .n_nodes = static_cast<std::uint32_t>(n),
                .n_searches = static_cast<std::uint32_t>(m),
                .n_tiles = batch.n_tiles,
                .most_features = static_cast<std::uint32_t>(batch.most_features),
                .n_shares = 1,
                .histogram_size = static_cast<std::uint32_t>(slots_.size())};
}

// Waits for a batch, and points to its results.
void DeviceRows::receive(Batch& batch) {
  State& s = *state_;
  const auto first = reinterpret_cast<Address>(batch.work.counts);
  const std::size_t before = reinterpret_cast<Address>(batch.work.best) - first;
  const std::size_t bytes = before + batch.searches.size() * sizeof(FoundSplit);
  std::byte* staged = s.received.room(std::bit_ceil(bytes));
  s.queue.copy_out(first, bytes, staged);
  s.queue.wait();
  batch.found_counts = reinterpret_cast<const NodeCount*>(staged);
  batch.best = reinterpret_cast<const FoundSplit*>(staged + before);
}

void DeviceRows::launch_searches(const Batch& batch) {
  State& s = *state_;
  if (batch.searches.empty() || batch.most_features == 0) return;
  s.queue.launch(s.device.kernel(is_plain(policy_.gain()) ? "search_plain" : "search_limited"),
                 {batch.most_features, batch.searches.size()}, threads, 0, policy_.gain(),
                 batch.work, s.columns.data());
}

// Results of the searches of a batch.
void DeviceRows::take_splits(const Batch& batch) {
  for (std::size_t j = 0; j < batch.searched.size(); ++j) {
    GrowNode& node = *batch.searched[j];
    const FoundSplit& best = batch.best[j];
    if (batch.searches[j].n_features == 0 || !best.found || !policy_.may_split(node)) continue;
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

// Histograms of all trees before, of other channels or of a tree that was interrupted, are free.
void DeviceRows::free_histograms() {
  State& s = *state_;
  s.free.clear();
  s.in_use = 0;
  const std::size_t size = slots_.size();
  for (auto& block : s.histograms)
    for (std::size_t j = 0; j + size <= block.size(); j += size) s.free.push_back(block.data() + j);
}

void DeviceRows::open_root(TreePolicy& policy, Team& team) {
  State& s = *state_;
  Device::Use use(s.device);
  search_.start_tree(team.size());
  slots_.release_all();
  free_histograms();
  const std::size_t channels = policy.channels();
  const auto n = static_cast<std::uint32_t>(tree_rows_.n);
  GrowNode& root = policy.open_root(n, false);
  // Narrow pairs were added up when they were made, but not counted.
  if (!scaling_.narrow) {
    const RowValues values{s.wide.data(), static_cast<std::uint32_t>(policy_.width()),
                           static_cast<std::uint32_t>(policy_.width())};
    s.queue.launch(s.device.kernel("sum_values"), {std::min<std::size_t>(1024, blocks_for(n))},
                   threads, 0, s.elements[0].data(), n, values, s.root_sums.data());
  }
  root.sums = s.receive<std::int64_t>(s.root_sums.address(), channels);
  if (channels > policy.width()) root.sums[policy.width()] = n;
  if (!policy.may_split(root)) return;
  root.histogram = acquire();
  s.queue.fill_zero(reinterpret_cast<Address>(root.histogram),
                    slots_.size() * sizeof(std::int64_t));
  Batch batch;
  batch.works.push_back({});
  batch.works[0].children[0] = root.histogram;
  batch.counts.push_back({n, ~0u});  // as the smaller child of a node
  batch.state.n_rows = n;
  if (searches_on_device()) request(root, 0, 0, batch);
  send(batch);
  s.send(std::vector<Segment>{{0, n, 0, 0, root.histogram}, {0, 0, 0, n, nullptr}}, s.segments);
  batch.work.segments = s.segments.data();
  plan_histograms(n, batch.work);
  launch_histograms(batch.work);
  GrowNode* const nodes[] = {&root};
  if (!searches_on_device()) return search_on_host(nodes, team);
  launch_searches(batch);
  receive(batch);
  take_splits(batch);
}

// The work of a batch: tests and ranges of its nodes, histograms and searches of their children.
DeviceRows::Batch DeviceRows::open_batch(TreePolicy& policy, std::span<GrowNode* const> nodes) {
  Batch batch;
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
    // Counts of rows are not known yet: an upper bound of them decides.
    bool any = false;
    for (std::uint32_t side = 0; side < 2; ++side) {
      GrowNode& child = side == 0 ? *node.left : *node.right;
      const bool may = policy.may_split(child.depth, node.n_rows(), child.sums.data());
      any |= may;
      if (may && searches_on_device()) request(child, static_cast<std::uint32_t>(j), side, batch);
    }
    if (any) {
      work.parent = node.histogram;
      work.children[0] = acquire();
      if (work.parent == nullptr) work.children[1] = acquire();
    } else {
      forget(node);
    }
    batch.works.push_back(work);
  }
  batch.counts.assign(nodes.size(), {0, 0});
  return batch;
}

void DeviceRows::expand(TreePolicy& policy, std::span<GrowNode* const> nodes, Team& team) {
  State& s = *state_;
  Device::Use use(s.device);
  team.poll_if_due(0);
  Batch batch = open_batch(policy, nodes);
  std::size_t n_rows = 0;
  bool any_histogram = false;
  for (std::size_t j = 0; j < nodes.size(); ++j) {
    n_rows += nodes[j]->n_rows();
    any_histogram |= batch.works[j].children[0] != nullptr;
  }
  send(batch);
  plan_histograms(n_rows, batch.work);
  const bool clears = any_histogram && batch.work.parts == nullptr;
  const std::size_t clear_blocks = clears ? std::min<std::size_t>(264, 2 * nodes.size()) : 0;
  s.queue.launch(s.device.kernel("partition"), {batch.n_tiles + clear_blocks}, threads, 0,
                 s.table.codes(), batch.work, s.elements[0].data(), s.elements[1].data());
  if (any_histogram) {
    launch_histograms(batch.work);
    launch_searches(batch);
  }
  receive(batch);
  for (std::size_t j = 0; j < nodes.size(); ++j) {
    GrowNode& node = *nodes[j];
    const NodeWork& work = batch.works[j];
    const NodeCount& count = batch.found_counts[j];
    policy.place_children(node, count.left, count.left);
    if (work.children[0] == nullptr) continue;
    const bool left_is_smaller = count.left <= count.right;
    (left_is_smaller ? node.left : node.right)->histogram = work.children[0];
    (left_is_smaller ? node.right : node.left)->histogram =
        work.parent != nullptr ? work.parent : work.children[1];
    node.histogram = nullptr;
  }
  if (searches_on_device()) {
    take_splits(batch);
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
  Device::Use use(state_->device);
  send_tree(forest);
  if (sample_ == nullptr || !request.leaves_from_all_rows) return summed(shape, pairs_, true);
  sample_ = nullptr;
  tree_rows_ = training_rows();
  pairs_ = pairs_of(gradients, output, nullptr);
  is_walked_ = true;
  walk();
  return summed(shape, pairs_, false);
}

// Sends the last tree of the forest, for walks.
void DeviceRows::send_tree(const GrownTrees& forest) {
  State& s = *state_;
  has_leaves_ = has_walked_ = false;
  const std::size_t tree = forest.n_trees() - 1, first = forest.first(tree);
  std::vector<NodeTest> nodes(forest.n_nodes(tree));
  for (std::size_t id = 0; id < nodes.size(); ++id) {
    const std::size_t at = first + id;
    if (forest.left[at] == 0) continue;
    nodes[id] = test_of(
        codes_, static_cast<std::size_t>(forest.feature[at]),
        {.bin = static_cast<std::uint32_t>(forest.bin[at]),
         .missing_left = forest.default_left[at] != 0,
         .levels = forest.set[at] < 0 ? nullptr
                                      : &forest.sets[static_cast<std::size_t>(forest.set[at])]});
    nodes[id].left = static_cast<std::uint32_t>(forest.left[at]);
  }
  std::vector<WalkNode> walked(nodes.size());
  for (std::size_t id = 0; id < nodes.size(); ++id) {
    const NodeTest& test = nodes[id];
    const bool usual = codes_.width == 1 && !test.sparse && !test.rule.by_set;
    walked[id] = {test.left, test.store | (usual ? 0 : is_unusual), test.rule.bin,
                  test.rule.missing_left};
  }
  s.send(nodes, s.tests);
  s.send(walked, s.tree);
}

// Notes the leaves of all training rows in the last tree.
void DeviceRows::walk() const {
  if (has_walked_) return;
  State& s = *state_;
  const RowNumbers rows{nullptr, s.table_rows.data()};
  s.queue.launch(s.device.kernel("walk"), {blocks_for(n_training_)}, threads, 0, s.table.codes(),
                 s.tree.data(), s.tests.data(), rows, static_cast<std::uint32_t>(n_training_),
                 s.leaf_of_row.data());
  has_walked_ = true;
}

LeafSums DeviceRows::sums_of(const TreeShape& shape, const Gradients& gradients, std::size_t output,
                             Team&) {
  Device::Use use(state_->device);
  walk();
  return summed(shape, pairs_of(gradients, output, sample_), false);
}

// Sums over the rows of the tree: from its partition, or by the leaves that a walk has noted.
LeafSums DeviceRows::summed(const TreeShape& shape, const Pairs& pairs, bool from_partition) {
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
  if (from_partition) {
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
        leaves.push_back(
            {static_cast<std::uint32_t>(node.begin), static_cast<std::uint32_t>(node.end),
             static_cast<std::uint32_t>(node.buffer), static_cast<std::uint32_t>(id), n_tiles});
        n_tiles += static_cast<std::uint32_t>(blocks_for(node.n_rows(), tile_rows));
      });
    }
    if (!leaves.empty()) {
      s.send(leaves, s.leaves);
      s.queue.launch(s.device.kernel("leaf_sums"), {n_tiles}, threads, 0, s.leaves.data(),
                     static_cast<std::uint32_t>(leaves.size()), s.elements[0].data(),
                     s.elements[1].data(), rows, renumbered ? s.number_of_row.data() : nullptr,
                     s.sums.data());
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
    walk();
    state_->queue.download(state_->leaf_of_row, codes_.n_rows, space_.leaf_of_row.data());
    state_->queue.wait();
    has_leaves_ = true;
  }
  return space_.leaf_of_row.data();
}

void DeviceRows::add_values(const GrownTrees& forest, ScoreRows scores, Team& team) const {
  add_leaf_values(forest, codes_, tree_rows_, n_training_, leaves(), scores, team);
}

DeviceRounds& DeviceRows::rounds() {
  if (!state_->rounds)
    state_->rounds = std::make_unique<DeviceRounds>(state_->device, state_->queue);
  return *state_->rounds;
}

void DeviceRows::open_rounds(const LossRows& rows, std::optional<Device::Use>& use) {
  use.emplace(state_->device);
  rounds().open(rows);
}

void DeviceRows::fetch_scores(double* scores) {
  Device::Use use(state_->device);
  rounds().fetch(scores);
}

void DeviceRows::add_values(const GrownTrees& forest, std::size_t output) {
  State& s = *state_;
  const std::size_t last = forest.n_trees() - 1, n = forest.n_nodes(last) * forest.width;
  s.send(std::vector<double>(forest.values(last), forest.values(last) + n), s.values);
  const RowNumbers rows{nullptr, s.table_rows.data()};
  s.queue.launch(s.device.kernel("add_values"), {blocks_for(n_training_)}, threads, 0,
                 s.table.codes(), s.tree.data(), s.tests.data(), rows,
                 static_cast<std::uint32_t>(n_training_), s.values.data(),
                 static_cast<std::uint32_t>(forest.width),
                 static_cast<std::uint32_t>(s.rounds->outputs()), s.rounds->scores(output));
}

}  // namespace arboost::cuda
