// Cost: a few hundred ns a split. Parallel over trees.
#include "explain/device/shap_pages.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>

#include "cuda/driver.h"  // DeviceError

namespace arboost::cuda {
namespace {

constexpr std::size_t alignment = 2;  // numbers: 16 bytes

// Pages of some trees, with one program for all of them.
class PageWriter {
 public:
  PageWriter(const ForestLayout& trees, const ShapForest& forest)
      : trees_(trees), forest_(forest), program_(forest, false) {
    for (const ShapForest::Column& column : forest.columns)
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

}  // namespace

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

}  // namespace arboost::cuda
