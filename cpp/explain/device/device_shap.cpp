// Trees -> pages of steps and numbers, on the host: a few hundred ns a split, parallel over trees.
// Then one launch a chunk of rows.
#include "explain/device/device_shap.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "cuda/driver.h"  // DeviceError
#include "predict/device/forest_layout.h"

namespace arboost::cuda {
namespace {

constexpr std::size_t most_program_bytes = std::size_t{4} << 30;
constexpr std::size_t page_bytes =
    page_numbers * sizeof(double) + page_steps * sizeof(DeviceShapStep);

// Kernels read whole 16 bytes.
template <class T>
DeviceArray<T> send(const std::vector<T>& from, Queue& queue) {
  return queue.send(from, 16 / sizeof(T) + 1);
}

struct HostShapPages {
  std::vector<DeviceShapPage> pages;
  std::vector<DeviceShapStep> steps;
  std::vector<double> numbers;
  std::vector<std::uint32_t> page_start;  // [output + 1]
  std::uint32_t stack = 0;                // products of a row in the largest tree
};

constexpr std::size_t alignment = 2;  // numbers: 16 bytes

// Pages of some trees, with one program for all of them.
class PageWriter {
 public:
  PageWriter(const ForestLayout& trees, const ShapForest& forest)
      : trees_(trees), forest_(forest), program_(forest, false) {
    for (const UsedColumn& column : forest.columns)
      columns_.push_back(trees.column_of(column.feature, column.of_codes));
  }

  HostShapPages write(std::size_t tree, std::size_t value) {
    made_ = {};
    if (tree != tree_) program_.set_tree(tree_ = tree);
    bool is_start = true;
    for (std::size_t i = 0; i < program_.n_parts(); ++i) {
      const ShapRun run = program_.part(i, value);
      if (run.depth > most_shap_depth || 10 * run.points > page_numbers)
        throw DeviceError("a tree is too deep for SHAP values on a CUDA device: it has " +
                          std::to_string(run.depth + 1) + " levels, and at most " +
                          std::to_string(most_shap_depth + 1) +
                          " are allowed. Use model.to(\"cpu\").");
      made_.stack = static_cast<std::uint32_t>((run.depth + 1) * run.points);
      for (std::size_t s = 0; s < run.n_steps; ++s) {
        add(run, run.steps[s], is_start);
        is_start = false;
      }
    }
    return std::move(made_);
  }

 private:
  void add(const ShapRun& run, const ShapStep& step, bool is_start) {
    const bool has_room = !made_.pages.empty() && made_.pages.back().n_steps < page_steps &&
                          made_.pages.back().n_numbers + 10 * run.points <= page_numbers;
    if (!has_room) {
      made_.numbers.resize((made_.numbers.size() + alignment - 1) / alignment * alignment);
      made_.pages.push_back({made_.steps.size(), made_.numbers.size(), 0, 0,
                             static_cast<std::uint32_t>(run.points), is_start});
    }
    DeviceShapStep made{};
    made.column = columns_[step.column];
    made.depth = static_cast<std::uint16_t>(step.depth);
    made.above = static_cast<std::uint16_t>(step.above);
    made.flags =
        (step.is_end ? ShapFlags::is_end : 0u) | (step.is_left ? ShapFlags::is_left : 0u) |
        (step.again ? ShapFlags::again : 0u) | (step.above_left ? ShapFlags::above_left : 0u) |
        (step.again_above ? ShapFlags::again_above : 0u) | (step.adds ? ShapFlags::adds : 0u);
    // Without interactions, the first three parts of an edge on the way down count.
    made.edge = take(run, step.edge, step.is_end ? 2 : 3);
    made.leaves = take(run, step.leaves, 5);
    if (!step.is_end) set_test(step, made);
    made_.steps.push_back(made);
    ++made_.pages.back().n_steps;
  }

  std::uint32_t take(const ShapRun& run, std::size_t from, std::size_t parts) {
    if (from == no_numbers) return no_page_numbers;
    DeviceShapPage& page = made_.pages.back();
    const std::uint32_t at = page.n_numbers;
    const double* first = run.numbers + from;
    made_.numbers.insert(made_.numbers.end(), first, first + parts * run.points);
    page.n_numbers += static_cast<std::uint32_t>(parts * run.points);
    return at;
  }

  void set_test(const ShapStep& step, DeviceShapStep& made) {
    if (step.set != no_level_set) {
      made.flags |= ShapFlags::by_set;
      made.test = step.set;
      return;
    }
    const std::uint32_t code = trees_.code_of(made.column, step.threshold);
    made.flags |= step.missing_left ? 0u : ShapFlags::shift;
    made.test = step.missing_left ? code : code - 1;
  }

  const ForestLayout& trees_;
  const ShapForest& forest_;
  ShapProgram program_;
  std::size_t tree_ = ~std::size_t{0};
  std::vector<std::uint32_t> columns_;  // of the forest's columns
  HostShapPages made_;
};

// One tree's contribution to one output.
struct Job {
  std::size_t tree, value;
};

void append(HostShapPages& all, const HostShapPages& more) {
  all.numbers.resize((all.numbers.size() + alignment - 1) / alignment * alignment);
  for (DeviceShapPage page : more.pages) {
    page.first_step += all.steps.size();
    page.first_number += all.numbers.size();
    all.pages.push_back(page);
  }
  all.steps.insert(all.steps.end(), more.steps.begin(), more.steps.end());
  all.numbers.insert(all.numbers.end(), more.numbers.begin(), more.numbers.end());
  all.stack = std::max(all.stack, more.stack);
}

std::size_t bytes_of(const HostShapPages& pages) {
  return pages.steps.size() * sizeof(DeviceShapStep) + pages.numbers.size() * sizeof(double);
}

// Throws DeviceError where the trees are too deep, or need too many bytes.
HostShapPages shap_pages(const ForestLayout& trees, const ShapForest& forest,
                         std::size_t most_bytes, Team& team) {
  HostShapPages all;
  std::vector<std::unique_ptr<PageWriter>> writers(static_cast<std::size_t>(team.size()));
  std::atomic<std::size_t> bytes{0};
  for (std::size_t output = 0; output < forest.n_outputs; ++output) {
    all.page_start.push_back(static_cast<std::uint32_t>(all.pages.size()));
    std::vector<Job> jobs;
    for (std::size_t t = 0; t < forest.n_trees(); ++t)
      if (forest.trees.width > 1 || forest.first_output(t) == output)
        jobs.push_back({t, forest.trees.width > 1 ? output : 0});
    std::vector<HostShapPages> made(jobs.size());
    team.for_chunks(0, jobs.size(), 1, [&](std::size_t begin, std::size_t end, int member) {
      auto& writer = writers[static_cast<std::size_t>(member)];
      if (writer == nullptr) writer = std::make_unique<PageWriter>(trees, forest);
      for (std::size_t i = begin; i < end; ++i) {
        made[i] = writer->write(jobs[i].tree, jobs[i].value);
        if ((bytes += bytes_of(made[i])) > most_bytes)
          throw DeviceError("SHAP values of this model need more than " +
                            std::to_string(most_bytes >> 20) +
                            " MiB on the CUDA device: its trees have too many splits. Use "
                            "model.to(\"cpu\"), or explain a model with fewer or shallower trees.");
      }
    });
    for (HostShapPages& pages : made) {
      append(all, pages);
      pages = {};
    }
  }
  all.page_start.push_back(static_cast<std::uint32_t>(all.pages.size()));
  return all;
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
  return page_bytes + shap_threads * ((2 * stack_ + trees.columns.size()) * sizeof(double) +
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
                     page_bytes, chunk.rows, pages, sets_.data(), out,
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
