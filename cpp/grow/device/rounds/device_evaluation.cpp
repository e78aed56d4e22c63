// A round is one copy and one launch, its loss two launches and an answer of 16 bytes.
#include "grow/device/rounds/device_evaluation.h"

#include <utility>  // exchange
#include <vector>

#include "cuda/staging.h"
#include "grow/device/table/device_table.h"
#include "loss/lane_sums.h"

namespace arboost::cuda {
namespace {

constexpr unsigned total_block = 256;
constexpr std::size_t most_open = 512;  // losses in the memory of the device

}  // namespace

struct DeviceEvaluation::State {
  Queue queue;
  std::shared_ptr<const DeviceTable> table;
  DeviceArray<RowId> table_rows;
  DeviceArray<double> y, weight, scores, sums, totals, parameters;
  std::vector<double> sent_parameters, losses;  // losses: fetched, and not returned yet
  std::vector<LossSpec> open;                   // losses that were not fetched yet
  TreeAdder adder;
  PinnedBytes received;
  Buffer<double> host_scores;
};

DeviceEvaluation::DeviceEvaluation(int device, const Codes& codes,
                                   std::span<const RowId> table_rows, const LossRows& rows)
    : EvaluationRows(rows), device_(Device::number(device)), codes_(codes) {
  Device::Use use(device_);
  state_ = std::make_unique<State>();
  State& s = *state_;
  s.table = table_on(device_, codes, s.queue);
  s.table_rows = uploaded(device_, table_rows.data(), table_rows.size());
  s.y = uploaded(device_, rows.y, n_rows());
  if (rows.weight != nullptr) s.weight = uploaded(device_, rows.weight, n_rows());
  s.scores = uploaded(device_, rows.scores, n_rows() * outputs());
}

DeviceEvaluation::~DeviceEvaluation() {
  free_on(device_, [this] { state_.reset(); });
}

void DeviceEvaluation::add(const GrownTrees& forest, std::size_t first, std::size_t n,
                           double factor, Team&) {
  const std::size_t width = forest.width, per_round = outputs() / width;
  std::vector<AddedTree> trees;
  for (std::size_t t = first; t < first + n; ++t)
    trees.push_back({t, t % per_round * width, factor});
  State& s = *state_;
  Device::Use use(device_);
  s.adder.add(device_, s.queue, *s.table, codes_, forest, trees,
              {{nullptr, s.table_rows.data()},
               static_cast<std::uint32_t>(n_rows()),
               outputs(),
               s.scores.data()});
}

void DeviceEvaluation::start_loss(const LossSpec& spec, Team&) {
  check_parameters(spec, outputs());
  State& s = *state_;
  Device::Use use(device_);
  if (s.open.size() == most_open) collect();
  if (s.sent_parameters != spec.parameters) {
    s.queue.wait();  // kernels that read the others
    s.parameters = uploaded(device_, spec.parameters.data(), spec.parameters.size());
    s.sent_parameters = spec.parameters;
  }
  const std::size_t n_blocks = in_blocks(n_rows(), value_block);
  make_room(s.sums, 2 * (n_blocks + in_blocks(n_rows(), value_chunk)));
  make_room(s.totals, 2 * most_open);
  LossArgs args{};
  args.loss = spec.loss;
  args.parameters = s.parameters.data();
  args.rows = {s.y.data(), s.weight.data(), s.scores.data(), n_rows(), outputs()};
  args.g_scale = args.h_scale = 1;
  s.queue.launch(device_.kernel("block_losses"), {n_blocks}, value_block, 0, args, s.sums.data());
  s.queue.launch(device_.kernel("total_loss"), {1}, total_block, 0, s.sums.data(),
                 static_cast<std::uint32_t>(n_blocks), s.sums.data() + 2 * n_blocks,
                 s.totals.data() + 2 * s.open.size());
  s.open.push_back(spec);
}

// Fetches the losses that were started.
void DeviceEvaluation::collect() {
  State& s = *state_;
  if (s.open.empty()) return;
  auto* totals = reinterpret_cast<double*>(s.received.buffer(2 * most_open * sizeof(double)));
  s.queue.download(s.totals, 2 * s.open.size(), totals);
  s.queue.wait();
  for (std::size_t i = 0; i < s.open.size(); ++i)
    s.losses.push_back(mean_of(s.open[i], {totals[2 * i], totals[2 * i + 1]}, outputs()));
  s.open.clear();
}

std::vector<double> DeviceEvaluation::losses() {
  Device::Use use(device_);
  collect();
  return std::exchange(state_->losses, {});
}

void DeviceEvaluation::set_scores(const double* scores) {
  Device::Use use(device_);
  state_->queue.wait();
  upload_staged(device_, scores, n_rows() * outputs() * sizeof(double), state_->scores.address());
}

const double* DeviceEvaluation::scores() {
  Device::Use use(device_);
  State& s = *state_;
  s.queue.wait();
  make_room(s.host_scores, n_rows() * outputs());
  download_staged(device_, s.scores.address(), n_rows() * outputs() * sizeof(double),
                  s.host_scores.data());
  return s.host_scores.data();
}

}  // namespace arboost::cuda
