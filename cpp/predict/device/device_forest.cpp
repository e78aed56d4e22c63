// Two chunks at a time: one is read on the host while the device works on the other.
#include "predict/device/device_forest.h"

#include <algorithm>
#include <cstring>    // memcpy
#include <stdexcept>  // invalid_argument

#include "cuda/staging.h"

namespace arboost::cuda {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{128} << 20;
constexpr std::size_t fewest_rows = 512, most_chunk_rows = std::size_t{1} << 27;
constexpr std::size_t shared_words = 48 * 1024;  // bytes of a block's rows in shared memory

constexpr unsigned answer_threads = 256;

template <class... Args>
void answer(Device& device, const char* kernel, std::size_t n_rows, const Args&... args) {
  if (n_rows == 0) return;
  Device::Use use(device);
  Queue queue;
  queue.launch(device.kernel(kernel), {in_blocks(n_rows, answer_threads)}, answer_threads, 0,
               args...);
  queue.wait();
}

}  // namespace

TableSource device_source(const DeviceColumns& columns) {
  TableSource source;
  source.device = &columns;
  source.n_rows = columns.n_rows;
  return source;
}

TableSource host_source(const Columns& columns, std::size_t n_used) {
  TableSource source;
  source.host = &columns;
  source.n_rows = columns.n_rows;
  if (columns.n_rows == 0) return source;
  const HostMatrix matrix = find_matrix(columns);
  if (matrix.row_bytes <= n_used * sizeof(double)) source.matrix = matrix;
  return source;
}

struct DeviceForest::Lane {
  Queue queue;
  PinnedBytes read, received;
  std::vector<CodedColumn> columns;  // that the queue is copying
  DeviceArray<CodedColumn> coded;
  DeviceArray<std::uint32_t> words;
  DeviceArray<std::uint8_t> values;
  DeviceArray<std::byte> results, scratch;
  // Results that the queue is copying to the host: from the pinned memory they go on to here.
  std::byte* target = nullptr;
  std::size_t target_bytes = 0;
};

// Lanes of one call, given back at its end.
struct DeviceForest::Borrowed {
  explicit Borrowed(const DeviceForest& forest) : forest_(forest) {
    for (auto& lane : lanes) {
      {
        std::lock_guard lock(forest_.mutex_);
        if (!forest_.free_lanes_.empty()) {
          lane = std::move(forest_.free_lanes_.back());
          forest_.free_lanes_.pop_back();
        }
      }
      if (lane == nullptr) lane = std::make_unique<Lane>();
      lane->target = nullptr;
    }
  }
  ~Borrowed() {
    if (!is_done) return;  // after an error, kernels may still use the buffers
    std::lock_guard lock(forest_.mutex_);
    for (auto& lane : lanes) forest_.free_lanes_.push_back(std::move(lane));
  }

  std::unique_ptr<Lane> lanes[2];
  bool is_done = false;

 private:
  const DeviceForest& forest_;
};

DeviceForest::DeviceForest(int device, const Forest& forest, std::size_t n_columns,
                           std::size_t n_outputs)
    : device_(Device::number(device)),
      n_columns_(n_columns),
      n_outputs_(n_outputs),
      width_(forest.width),
      trees_(forest_layout(forest, n_columns, n_outputs)) {
  Device::Use use(device_);
  Queue queue;
  nodes_ = queue.send(trees_.nodes);
  tree_start_ = queue.send(trees_.tree_start);
  order_ = queue.send(trees_.order);
  output_start_ = queue.send(trees_.output_start);
  sets_ = queue.send(trees_.sets);
  thresholds_ = queue.send(trees_.thresholds);
  if (width_ > 1) {
    values_ = DeviceArray<double>(forest.value.size());
    queue.upload(forest.value.data(), forest.value.size(), values_);
  }
  if (trees_.small) {
    small_nodes_ = queue.send(trees_.small->nodes);
    small_values_ = queue.send(trees_.small->values);
    groups_ = queue.send(trees_.small->groups);
  }
  queue.wait();
}

DeviceForest::~DeviceForest() {
  const auto give_back = [this](auto&... arrays) { ((arrays = {}), ...); };
  free_on(device_, [&] {
    free_lanes_.clear();
    give_back(nodes_, tree_start_, order_, output_start_, small_nodes_, values_, small_values_,
              sets_, groups_, thresholds_);
  });
}

std::size_t DeviceForest::rows_of_chunk(const TableSource& rows, std::size_t more_bytes) const {
  std::size_t row_bytes = trees_.n_words() * sizeof(std::uint32_t) + more_bytes + 1;
  if (rows.host != nullptr)
    row_bytes += rows.matrix.first != nullptr ? rows.matrix.row_bytes
                                              : trees_.columns.size() * sizeof(double);
  // Two chunks, and room for others.
  const std::size_t max_bytes = std::min(chunk_bytes, device_.free_bytes() / 4);
  const std::size_t fitting = max_bytes / row_bytes / fewest_rows * fewest_rows;
  return std::min(
      {std::max(fewest_rows, fitting), most_chunk_rows, std::max<std::size_t>(1, rows.n_rows)});
}

// Rows of the host as they are -> pinned memory -> device.
void DeviceForest::send_rows(const TableSource& rows, std::size_t begin, std::size_t n, Team& team,
                             Lane& lane) const {
  const HostMatrix& matrix = rows.matrix;
  const std::size_t bytes = (n - 1) * matrix.row_bytes + matrix.used_bytes;
  std::byte* sent = lane.read.buffer(bytes);
  copy_by_threads(matrix.first + begin * matrix.row_bytes, bytes, sent, team);
  make_room(lane.values, bytes);
  lane.queue.copy_in(sent, bytes, lane.values.address());
  for (std::size_t c = 0; c < lane.columns.size(); ++c) {
    const Column& column = rows.host->columns[trees_.features[c]];
    lane.columns[c].column = {lane.values.data() + (column.pieces[0].values - matrix.first),
                              column.stride, column.missing, column.type};
  }
}

// Columns that splits look at -> doubles in pinned memory -> device, [column][row].
void DeviceForest::send_columns(const TableSource& rows, std::size_t begin, std::size_t n,
                                Team& team, Lane& lane) const {
  const std::size_t n_used = lane.columns.size(), bytes = n_used * n * sizeof(double);
  std::byte* sent = lane.read.buffer(bytes);
  auto* values = reinterpret_cast<double*>(sent);
  constexpr std::size_t grain = 16 * block_rows;
  team.for_chunks(0, n, grain, [&](std::size_t first, std::size_t last, int) {
    for (std::size_t at = first; at < last; at += block_rows)
      for (std::size_t c = 0; c < n_used; ++c)
        read_block(rows.host->columns[trees_.features[c]], begin + at,
                   begin + std::min(last, at + block_rows), values + c * n + at, 1);
  });
  make_room(lane.values, bytes);
  lane.queue.copy_in(sent, bytes, lane.values.address());
  for (std::size_t c = 0; c < n_used; ++c)
    lane.columns[c].column = {lane.values.data() + c * n * sizeof(double), sizeof(double),
                              std::numeric_limits<double>::quiet_NaN(), Type::float64};
}

void DeviceForest::code_chunk(const TableSource& rows, std::size_t begin, std::size_t n, Team& team,
                              Lane& lane) const {
  make_room(lane.words, trees_.n_words() * n);
  if (trees_.columns.empty()) return;
  lane.columns = trees_.columns;
  if (rows.device != nullptr) {
    for (std::size_t c = 0; c < lane.columns.size(); ++c) {
      DeviceColumn& column = lane.columns[c].column = rows.device->columns[trees_.features[c]];
      column.values += static_cast<std::int64_t>(begin) * column.stride;
    }
  } else if (rows.matrix.first != nullptr) {
    send_rows(rows, begin, n, team, lane);
  } else {
    send_columns(rows, begin, n, team, lane);
  }
  make_room(lane.coded, lane.columns.size());
  lane.queue.upload(lane.columns.data(), lane.columns.size(), lane.coded);
  const CodedColumns coded{.columns = lane.coded.data(),
                           .thresholds = thresholds_.data(),
                           .n_columns = static_cast<std::uint32_t>(lane.columns.size()),
                           .per_word = trees_.per_word};
  lane.queue.launch(device_.kernel("code_rows"), {trees_.n_words(), in_blocks(n, code_tile)},
                    code_threads, 0, coded, static_cast<std::uint64_t>(n), lane.words.data());
}

void DeviceForest::finish_chunk(Lane& lane) const {
  lane.queue.wait();
  if (lane.target != nullptr)
    std::memcpy(lane.target, lane.received.buffer(lane.target_bytes), lane.target_bytes);
  lane.target = nullptr;
}

void DeviceForest::for_rows(const TableSource& rows, std::size_t result_bytes,
                            std::size_t scratch_bytes, Team& team, RowSink out,
                            const std::function<void(const Chunk&)>& work) const {
  if (rows.n_rows == 0) return;
  Device::Use use(device_);
  const bool to_host = out.host != nullptr;
  const std::size_t size = rows_of_chunk(rows, scratch_bytes + (to_host ? result_bytes : 0));
  Borrowed borrowed(*this);
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < rows.n_rows; begin += size, ++number) {
    const std::size_t n = std::min(size, rows.n_rows - begin);
    Lane& lane = *borrowed.lanes[number % 2];
    finish_chunk(lane);
    code_chunk(rows, begin, n, team, lane);
    make_room(lane.scratch, scratch_bytes * n);
    if (to_host) make_room(lane.results, result_bytes * n);
    const Address results = to_host ? lane.results.address() : out.device + begin * result_bytes;
    const CodedRows coded{lane.words.data(), n, trees_.n_words(), trees_.per_word};
    work({lane.queue, coded, results, lane.scratch});
    if (!to_host) continue;
    lane.target = out.host + begin * result_bytes;
    lane.target_bytes = n * result_bytes;
    lane.queue.copy_out(results, lane.target_bytes, lane.received.buffer(lane.target_bytes));
  }
  for (auto& lane : borrowed.lanes) finish_chunk(*lane);
  borrowed.is_done = true;
}

AnyTrees DeviceForest::any_trees() const {
  return {nodes_.data(),
          tree_start_.data(),
          order_.data(),
          output_start_.data(),
          static_cast<std::uint32_t>(n_trees()),
          static_cast<std::uint32_t>(n_outputs_),
          static_cast<std::uint32_t>(width_),
          values_.data(),
          sets_.data()};
}

void DeviceForest::walk_small(const Chunk& chunk, const ScoreRows& out) const {
  const ForestLayout::Small& small = *trees_.small;
  const SmallTrees trees{small_nodes_.data(), small_values_.data(),
                         groups_.data(),      static_cast<std::uint32_t>(small.groups.size()),
                         small.most_trees,    small.depth,
                         small.block_rows,    sets_.data()};
  const std::size_t n_nodes = std::size_t{small.most_trees} << small.depth;
  const std::size_t shared = n_nodes * (sizeof(double) + sizeof(std::uint32_t)) +
                             chunk.rows.n_words * small.block_rows * sizeof(std::uint32_t);
  const char* name = trees_.sets.empty() ? "walk_small_trees" : "walk_small_trees_with_sets";
  chunk.queue.launch(device_.kernel(name, shared), {in_blocks(chunk.rows.n_rows, small.block_rows)},
                     small.block_rows / rows_at_once, shared, chunk.rows, trees, out);
}

template <class... Args>
void DeviceForest::walk_any(const char* kernel, const Chunk& chunk, std::size_t parts,
                            const Args&... args) const {
  const std::size_t words = chunk.rows.n_words * walk_threads * sizeof(std::uint32_t);
  const bool in_shared = words <= shared_words;
  chunk.queue.launch(device_.kernel(kernel), {in_blocks(chunk.rows.n_rows, walk_threads), parts},
                     walk_threads, in_shared ? words : 0, chunk.rows, any_trees(), args...,
                     in_shared);
}

void DeviceForest::scores(const TableSource& rows, const Combination& how, Team& team,
                          RowSink out) const {
  const bool is_median = !how.weights.empty();
  if (how.base.size() != n_outputs_ ||
      (is_median && (how.weights.size() != n_trees() || n_outputs_ != 1)))
    throw std::invalid_argument("base scores or weights that do not fit the forest");
  Device::Use use(device_);
  Queue queue;
  DeviceArray<double> base(n_outputs_), weights(how.weights.size());
  queue.upload(how.base.data(), n_outputs_, base);
  queue.upload(how.weights.data(), how.weights.size(), weights);
  queue.wait();
  const std::size_t scratch = is_median ? n_trees() * sizeof(double) : 0;
  for_rows(rows, n_outputs_ * sizeof(double), scratch, team, out, [&](const Chunk& chunk) {
    const ScoreRows target{reinterpret_cast<double*>(chunk.results), base.data(), how.mean_of,
                           static_cast<std::uint32_t>(n_outputs_)};
    if (is_median)
      walk_any("walk_medians", chunk, 1, target, weights.data(),
               reinterpret_cast<double*>(chunk.scratch.data()));
    else if (trees_.small)
      walk_small(chunk, target);
    else if (width_ == 1)
      walk_any("walk_trees", chunk, n_outputs_, target);
    else
      walk_any("walk_vector_trees", chunk, in_blocks(width_, outputs_at_once), target);
  });
}

void DeviceForest::leaves(const TableSource& rows, Team& team, RowSink out) const {
  if (n_trees() == 0) return;
  for_rows(rows, n_trees() * sizeof(std::int32_t), 0, team, out, [&](const Chunk& chunk) {
    walk_any("walk_leaves", chunk, 1, reinterpret_cast<std::int32_t*>(chunk.results));
  });
}

void link_on_device(Device& device, Link link, const RawRows& rows, Address out) {
  answer(device, "link_rows", rows.n_rows, static_cast<std::int32_t>(link), rows.raw,
         static_cast<std::uint32_t>(rows.stride), static_cast<std::uint32_t>(rows.n_outputs),
         std::uint64_t{rows.n_rows}, out);
}

void sort_on_device(Device& device, const RawRows& rows, Address out) {
  answer(device, "sort_rows", rows.n_rows, rows.raw, static_cast<std::uint32_t>(rows.n_outputs),
         std::uint64_t{rows.n_rows}, out);
}

void label_on_device(Device& device, const RawRows& rows, std::span<const std::byte> labels,
                     std::size_t bytes, std::size_t out_stride, Address out) {
  Device::Use use(device);
  DeviceArray<std::byte> table(labels.size());
  Queue queue;
  queue.upload(labels.data(), labels.size(), table);
  queue.wait();
  answer(device, "likeliest_labels", rows.n_rows, rows.raw, static_cast<std::uint32_t>(rows.stride),
         static_cast<std::uint32_t>(rows.n_outputs), std::uint64_t{rows.n_rows}, table.address(),
         static_cast<std::uint32_t>(bytes), static_cast<std::uint32_t>(out_stride), out);
}

}  // namespace arboost::cuda
