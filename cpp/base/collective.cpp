// Sums by messages. Bytes that a worker sends for S bytes of numbers and W workers: (W - 1) S for
// few numbers; (W - 1) / W S for their parts, and as much again where all workers need them.
#include "base/collective.h"

#include <algorithm>
#include <stdexcept>

#include "base/packed_numbers.h"

namespace arboost {
namespace {

// Numbers that are sent to all workers at once: less than a message costs anyway.
constexpr std::size_t few_numbers = 2048;

void check_end(const PackedReader& reader) {
  if (!reader.is_done())
    throw std::logic_error("workers disagree about the numbers that they exchange");
}

}  // namespace

const std::vector<Collective::Bytes>& Collective::exchange(View message) {
  return exchange(std::vector<View>(size(), message));
}

void Collective::sum(Arrays arrays) {
  if (size() == 1) return;
  std::size_t n = 0;
  for (const Numbers& array : arrays) n += array.size();
  if (n * (size() - 1) <= few_numbers) return sum_everywhere(arrays);
  const auto share = [this](const Numbers& array, std::size_t r) {
    const std::size_t begin = array.size() * r / size();
    return array.subspan(begin, array.size() * (r + 1) / size() - begin);
  };
  add_parts(arrays, share, {});
  share_parts(arrays, share);
}

void Collective::sum_everywhere(Arrays arrays) {
  messages_.resize(size());
  Bytes& message = messages_.front();
  message.clear();
  for (const Numbers& array : arrays) pack_numbers(array, message);
  const std::vector<Bytes>& received = exchange(View(message));
  for (std::size_t r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    PackedReader reader(received[r]);
    for (const Numbers& array : arrays) reader.add_to(array);
    check_end(reader);
  }
}

void Collective::sum_parts(Arrays arrays, std::span<const std::size_t> bounds, Numbers numbers) {
  if (size() == 1) return;
  const auto part = [bounds](const Numbers& array, std::size_t r) {
    return array.subspan(bounds[r], bounds[r + 1] - bounds[r]);
  };
  add_parts(arrays, part, numbers);
}

// Adds up part(array, r) of each array in worker r, and the numbers in all.
void Collective::add_parts(Arrays arrays, PartOf part, Numbers numbers) {
  messages_.resize(size());
  std::vector<View> views(size());
  for (std::size_t r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    messages_[r].clear();
    pack_numbers(numbers, messages_[r]);
    for (const Numbers& array : arrays) pack_numbers(part(array, r), messages_[r]);
    views[r] = messages_[r];
  }
  const std::vector<Bytes>& received = exchange(views);
  for (std::size_t r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    PackedReader reader(received[r]);
    reader.add_to(numbers);
    for (const Numbers& array : arrays) reader.add_to(part(array, rank()));
    check_end(reader);
  }
}

// Replaces part r of each array by that of worker r.
void Collective::share_parts(Arrays arrays, PartOf part) {
  Bytes message;
  for (const Numbers& array : arrays) pack_numbers(part(array, rank()), message);
  const std::vector<Bytes>& received = exchange(View(message));
  for (std::size_t r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    PackedReader reader(received[r]);
    for (const Numbers& array : arrays) reader.copy_to(part(array, r));
    check_end(reader);
  }
}

void Collective::max(Numbers numbers) {
  for (const std::vector<std::int64_t>& other : gather(numbers)) {
    if (other.size() != numbers.size())
      throw std::logic_error("workers disagree about the numbers that they exchange");
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::max(numbers[i], other[i]);
  }
}

std::vector<std::vector<std::int64_t>> Collective::gather(std::span<const std::int64_t> numbers) {
  std::vector<std::vector<std::int64_t>> all(size());
  all[rank()].assign(numbers.begin(), numbers.end());
  if (size() == 1) return all;
  const std::int64_t n[] = {static_cast<std::int64_t>(numbers.size())};
  Bytes message;
  pack_numbers(n, message);
  pack_numbers(numbers, message);
  const std::vector<Bytes>& received = exchange(View(message));
  for (std::size_t r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    PackedReader reader(received[r]);
    std::int64_t length[1];
    reader.copy_to(length);
    all[r].resize(static_cast<std::size_t>(length[0]));
    reader.copy_to(all[r]);
    check_end(reader);
  }
  return all;
}

}  // namespace arboost
