// Draws with replacement on the device, where the sample stays.
#include <bit>

#include "grow/device/device_rows.h"
#include "grow/device/device_state.h"
#include "grow/device/records/sample_records.h"

namespace arboost::cuda {

void DeviceRows::draw_with_replacement(std::size_t n_draws, const DrawSeed& seed, Sample& out,
                                       Team&) {
  DeviceState& s = *state_;
  Device::Use use(s.device);
  make_room(s.draw_counts, n_training_);
  make_room(s.positions, n_training_);
  make_room(s.weights, n_training_);
  s.queue.fill_zero(s.draw_counts.address(), n_training_ * sizeof(std::uint32_t));
  s.queue.launch(s.device.kernel("count_draws"), {blocks_for(n_draws)}, threads, 0,
                 BootstrapDraws{seed.seed, seed.draw, n_draws, n_training_}, s.draw_counts.data());
  const DrawnRows drawn{s.positions.data(), s.weights.data(),
                        static_cast<std::uint32_t>(n_training_)};
  const std::size_t blocks = 8 * static_cast<std::size_t>(s.device.multiprocessors());
  s.queue.launch(s.device.kernel("collect_draws"), {std::min(blocks, blocks_for(n_training_))},
                 threads, 0, s.draw_counts.data(), drawn, s.sample_sums.start(2, s.queue));
  const std::vector<std::int64_t> sums = s.sample_sums.wait(s.queue);
  out.size = static_cast<std::size_t>(sums[0]);
  out.weighted = true;
  out.on_device = true;
  out.largest_weight = std::bit_cast<float>(static_cast<std::uint32_t>(sums[1]));
}

}  // namespace arboost::cuda
