// Cost: linear in the folded slots, or in the stored codes of a small node's rows. One object a
// thread.
#include "grow/rows/feature_sums.h"

#include <algorithm>
#include <bit>

namespace arboost {
namespace {

constexpr std::uint32_t not_folded = ~std::uint32_t{0};  // the only digit of its column

}  // namespace

FeatureSums::FeatureSums(const Codes& codes, std::size_t most_channels)
    : codes_(codes),
      most_channels_(most_channels),
      channels_(most_channels),
      digits_begin_(codes.n_stores + 1, 0) {
  for (const Digit& digit : codes.digits) ++digits_begin_[digit.store + std::size_t{1}];
  for (std::size_t s = 0; s < codes.n_stores; ++s) digits_begin_[s + 1] += digits_begin_[s];
  std::uint32_t slot = 0;
  for (const Digit& digit : codes.digits) {
    const bool alone =
        digits_begin_[digit.store + std::size_t{1}] - digits_begin_[digit.store] == 1;
    radices_.push_back(digit.radix);
    digit_slot_.push_back(alone ? not_folded : slot);
    slot += alone ? 0 : digit.radix;
  }
  folded_.resize(slot * most_channels);
  rest_.resize(256 * most_channels);
  shared_first_.resize(codes.n_stores);
  std::uint32_t next = 0;
  for (std::uint32_t s = 0; s < codes.n_stores; ++s) {
    if (digits_begin_[s] == digits_begin_[s + 1]) continue;
    shared_.push_back(s);
    shared_first_[s] = next;
    next += codes.first_slot[s + 1] - codes.first_slot[s];
  }
  shared_slots_ = {shared_first_.data(), shared_.data(), 0, shared_.size(), next, next};
  shared_sums_.resize(next * most_channels);
}

void FeatureSums::open(const std::int64_t* histogram, const Slots& slots, std::size_t channels) {
  clear();
  channels_ = channels;
  is_small_ = false;
  stored_ = histogram;
  first_ = slots.first;
  sparse_ = histogram + slots.first_sparse * channels_;
  fold(slots);
}

void FeatureSums::open(const Element* elements, std::size_t n, const std::int64_t* values,
                       const RowSums& sums) {
  clear();
  channels_ = static_cast<std::size_t>(sums.channels());
  is_small_ = true;
  if (!shared_.empty()) {
    std::fill(shared_sums_.begin(), shared_sums_.end(), 0);
    grow_kernels().accumulate(codes_.row_codes(), shared_slots_, sums, elements, n, false,
                              shared_sums_.data());
    stored_ = shared_sums_.data();
    first_ = shared_first_.data();
    fold(shared_slots_);
  }
  const SparseCodes& sparse = codes_.sparse;
  if (sparse.size() == 0) return;
  if (touched_.sums.size() == 0) {
    touched_.slots.resize(sparse.n_slots() / 64 + 1, 0);
    touched_.words.resize(sparse.n_slots() / 4096 + 1, 0);
    touched_.sums =
        Buffer<std::int64_t>(sparse.n_slots() * most_channels_);  // last: says all is there
    std::fill_n(touched_.sums.data(), touched_.sums.size(), 0);
  }
  sparse_ = touched_.sums.data();
  sparse.slot_width == 2 ? touch<std::uint16_t>(elements, n, values)
                         : touch<std::uint32_t>(elements, n, values);
}

void FeatureSums::fold(const Slots& slots) {
  for (std::size_t j = 0; j < slots.n_stores; ++j) {
    const std::size_t s = slots.store(j);
    const std::uint32_t begin = digits_begin_[s], end = digits_begin_[s + 1];
    if (end - begin < 2) continue;
    grow_kernels().fold(stored_ + first_[s] * channels_, radices_.data() + begin, end - begin,
                        channels_, rest_.data(), folded_.data() + digit_slot_[begin] * channels_);
  }
}

template <class Slot>
void FeatureSums::touch(const Element* elements, std::size_t n, const std::int64_t* values) {
  const std::uint64_t* start = codes_.sparse.row_start.data();
  const Slot* slots = codes_.sparse.row_slots<Slot>();
  std::int64_t* sums = touched_.sums.data();
  for (std::size_t i = 0; i < n; ++i, values += channels_) {
    const std::size_t row = row_of(elements[i]);
    for (std::uint64_t k = start[row]; k < start[row + 1]; ++k) {
      touched_.mark(slots[k]);
      for (std::size_t c = 0; c < channels_; ++c) sums[slots[k] * channels_ + c] += values[c];
    }
  }
}

void FeatureSums::clear() {
  if (!is_small_ || touched_.sums.size() == 0) return;
  touched_.for_each(0, codes_.sparse.n_slots(), [&](std::size_t slot) {
    std::fill_n(touched_.sums.data() + slot * channels_, channels_, 0);
    touched_.slots[slot / 64] = 0;  // for_each has its own copy of the word
  });
  std::fill(touched_.words.begin(), touched_.words.end(), 0);
}

template <class Use>
void FeatureSums::Touched::for_each(std::size_t begin, std::size_t end, const Use& use) const {
  if (begin == end) return;
  const std::size_t first = begin / 64, last = (end - 1) / 64;
  const auto use_word = [&](std::size_t w) {
    std::uint64_t bits = slots[w];
    if (w == first) bits &= ~std::uint64_t{0} << (begin % 64);
    if (w == last) bits &= ~std::uint64_t{0} >> (63 - (end - 1) % 64);
    for (; bits != 0; bits &= bits - 1)
      use(w * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
  };
  for (std::size_t group = first / 64; group <= last / 64; ++group)
    for (std::uint64_t bits = words[group]; bits != 0; bits &= bits - 1) {
      const std::size_t w = group * 64 + static_cast<std::size_t>(std::countr_zero(bits));
      if (w >= first && w <= last) use_word(w);
    }
}

bool FeatureSums::Touched::any(std::size_t begin, std::size_t end) const {
  if (end - begin == 1) return slots[begin / 64] >> (begin % 64) & 1;  // the most frequent case
  bool is_touched = false;
  for_each(begin, end, [&](std::size_t) { is_touched = true; });
  return is_touched;
}

bool FeatureSums::varies(std::size_t feature) const {
  const FeatureStorage& storage = codes_.where[feature];
  if (!is_small_ || storage.kind != Storage::sparse) return true;
  const std::uint32_t first = codes_.sparse.first_slot[storage.store];
  return touched_.any(first, first + storage.n_others);
}

const std::int64_t* FeatureSums::others(const FeatureStorage& storage) const {
  if (storage.kind == Storage::sparse)
    return sparse_ + codes_.sparse.first_slot[storage.store] * channels_;
  const std::uint32_t folded = digit_slot_[storage.digit];
  const std::int64_t* digit = folded == not_folded ? stored_ + first_[storage.store] * channels_
                                                   : folded_.data() + folded * channels_;
  return digit + (storage.exclusive ? storage.first : 0) * channels_;
}

const std::int64_t* FeatureSums::of(std::size_t feature, const std::int64_t* totals,
                                    std::vector<std::int64_t>& buffer) const {
  const FeatureStorage& storage = codes_.where[feature];
  if (storage.kind == Storage::single) return stored_ + first_[storage.store] * channels_;
  const std::int64_t* from = others(storage);
  if (storage.kind == Storage::shared && !storage.exclusive) return from;
  const std::size_t n_codes = storage.n_others + std::size_t{1}, usual = storage.usual;
  buffer.resize(std::max(buffer.size(), n_codes * channels_));
  std::copy(totals, totals + channels_,
            buffer.begin() + static_cast<std::ptrdiff_t>(usual * channels_));
  for (std::size_t rank = 0; rank + 1 < n_codes; ++rank) {
    const std::size_t code = storage.code_of(static_cast<std::uint32_t>(rank));
    for (std::size_t c = 0; c < channels_; ++c) {
      const std::int64_t sum = from[rank * channels_ + c];
      buffer[code * channels_ + c] = sum;
      buffer[usual * channels_ + c] -= sum;
    }
  }
  return buffer.data();
}

std::size_t FeatureSums::list(std::size_t feature, const std::int64_t* totals,
                              SplitScratch& scratch) const {
  const FeatureStorage& storage = codes_.where[feature];
  const std::uint32_t first = codes_.sparse.first_slot[storage.store];
  std::int64_t* usual_sums = scratch.missing.data();
  std::copy(totals, totals + channels_, usual_sums);  // at first the usual code's
  std::size_t n = 0;
  touched_.for_each(first, first + storage.n_others, [&](std::size_t slot) {
    scratch.bins[n++] = storage.code_of(static_cast<std::uint32_t>(slot - first));
    for (std::size_t c = 0; c < channels_; ++c) usual_sums[c] -= sparse_[slot * channels_ + c];
  });
  // The usual code is inserted among the others, in their order.
  std::size_t at = n++;
  for (; at > 0 && scratch.bins[at - 1] > storage.usual; --at)
    scratch.bins[at] = scratch.bins[at - 1];
  scratch.bins[at] = storage.usual;
  for (std::size_t c = 0; c < channels_; ++c) {
    const std::int64_t usual = usual_sums[c];
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t slot = first + storage.rank_of(scratch.bins[i]);
      usual_sums[c] = i == at ? usual : sparse_[slot * channels_ + c];
      scratch.prefix[c * scratch.stride + i] = sum += usual_sums[c];
    }
  }
  return n;
}

std::size_t FeatureSums::add_candidates(std::size_t feature, const std::int64_t* totals,
                                        std::size_t n, SplitScratch& scratch,
                                        std::vector<std::int64_t>& buffer) const {
  const FeatureStorage& storage = codes_.where[feature];
  const std::uint32_t n_bins = codes_.n_bins[feature];
  if (n_bins == 2 && storage.n_others == 1 &&
      (storage.exclusive || storage.kind == Storage::sparse)) {
    const std::int64_t* other = others(storage);
    for (std::size_t c = 0; c < channels_; ++c)
      scratch.prefix[c * scratch.stride + n] = storage.usual == 0 ? totals[c] - other[c] : other[c];
    return n + 1;
  }
  const std::int64_t* sums = of(feature, totals, buffer);
  for (std::size_t c = 0; c < channels_; ++c) {
    std::int64_t sum = 0;
    for (std::size_t code = 0; code + 1 < n_bins; ++code)
      scratch.prefix[c * scratch.stride + n + code] = sum += sums[code * channels_ + c];
  }
  return n + n_bins - 1;
}

}  // namespace arboost
