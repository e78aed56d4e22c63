// One thread a row.
#include "predict/device/device_answers.h"

namespace arboost::cuda {
namespace {

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
