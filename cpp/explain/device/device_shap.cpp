// One launch a chunk of rows.
#include "explain/device/device_shap.h"

#include <algorithm>
#include <vector>

#include "explain/device/shap_pages.h"

namespace arboost::cuda {
namespace {

constexpr std::size_t most_program_bytes = std::size_t{4} << 30;
constexpr std::size_t staged_bytes =
    page_numbers * sizeof(double) + page_steps * sizeof(DeviceShapStep);

// Kernels read whole 16 bytes.
template <class T>
DeviceArray<T> send(const std::vector<T>& from, Queue& queue) {
  return queue.send(from, 16 / sizeof(T) + 1);
}

}  // namespace

DeviceShap::DeviceShap(const DeviceForest& trees, const ShapForest& forest, Team& team)
    : trees_(trees), n_features_(forest.n_features), n_outputs_(forest.n_outputs) {
  Device& device = trees.device();
  const std::size_t max_bytes = std::min(most_program_bytes, device.free_bytes() / 2);
  const HostShapPages host = shap_pages(trees.trees(), forest, max_bytes, team);
  stack_ = host.stack;
  std::vector<std::uint32_t> features(trees.trees().features.begin(), trees.trees().features.end());
  Device::Use use(device);
  Queue queue;
  pages_ = send(host.pages, queue);
  steps_ = send(host.steps, queue);
  numbers_ = send(host.numbers, queue);
  page_start_ = send(host.page_start, queue);
  features_ = send(features, queue);
  sets_ = send(forest.sets, queue);
  queue.wait();
}

DeviceShap::~DeviceShap() {
  free_on(trees_.device(), [this] {
    pages_ = {};
    steps_ = {};
    numbers_ = {};
    page_start_ = {};
    features_ = {};
    sets_ = {};
  });
}

std::size_t DeviceShap::shared_bytes() const {
  const ForestLayout& trees = trees_.trees();
  return staged_bytes + shap_threads * ((2 * stack_ + trees.columns.size()) * sizeof(double) +
                                        trees.n_words() * sizeof(std::uint32_t));
}

void DeviceShap::launch(const DeviceForest::Chunk& chunk, const ShapResults& out) const {
  const auto n_columns = static_cast<std::uint32_t>(trees_.trees().columns.size());
  const ShapPages pages{pages_.data(),    steps_.data(), numbers_.data(), page_start_.data(),
                        features_.data(), n_columns,     stack_};
  const std::size_t blocks = in_blocks(chunk.rows.n_rows, shap_threads);
  const std::size_t shared = shared_bytes();
  Device& device = trees_.device();
  if (shared <= device.shared_bytes())
    return chunk.queue.launch(device.kernel("shap_rows", shared), {blocks, n_outputs_},
                              shap_threads, shared, chunk.rows, pages, sets_.data(), out);
  make_room(chunk.scratch, blocks * shap_threads * n_outputs_ * scratch_bytes());
  chunk.queue.launch(device.kernel("shap_wide_rows"), {blocks, n_outputs_}, shap_threads,
                     staged_bytes, chunk.rows, pages, sets_.data(), out,
                     reinterpret_cast<double*>(chunk.scratch.data()));
}

void DeviceShap::values(const TableSource& rows, std::span<const double> divisors, Team& team,
                        RowSink out) const {
  if (divisors.size() != n_outputs_) throw std::invalid_argument("not one divisor for each output");
  Device::Use use(trees_.device());
  Queue queue;
  DeviceArray<double> output_divisors(n_outputs_);
  queue.upload(divisors.data(), n_outputs_, output_divisors);
  queue.wait();
  const std::size_t row_bytes = n_features_ * n_outputs_ * sizeof(double);
  const bool is_shared = shared_bytes() <= trees_.device().shared_bytes();
  const std::size_t scratch = is_shared ? 0 : n_outputs_ * scratch_bytes();
  trees_.for_rows(rows, row_bytes, scratch, team, out, [&](const DeviceForest::Chunk& chunk) {
    chunk.queue.fill_zero(chunk.results, chunk.rows.n_rows * row_bytes);
    if (trees_.trees().columns.empty()) return;
    launch(chunk,
           {reinterpret_cast<double*>(chunk.results), output_divisors.data(),
            static_cast<std::uint32_t>(n_features_), static_cast<std::uint32_t>(n_outputs_)});
  });
}

}  // namespace arboost::cuda
