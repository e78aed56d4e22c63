// Rows -> histogram of gradient sums. About 0.4 ns for each (row, feature): one addition to memory,
// close to the CPU's limit of one store a cycle. Single-threaded; callers split the rows.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#include "grow/kernels/grow_kernels.h"

namespace arboost::ARBOOST_ISA {
namespace {

// Prefetch distance in rows, where a row has no columns to tell it.
constexpr std::size_t prefetch_distance = 24;

// Prefetches the cache lines of a row from the first of the columns to the last one. A node's rows
// are scattered in the table: a line takes as long as about 1,400 updates to arrive.
class RowPrefetch {
 public:
  RowPrefetch(const RowCodes& codes, const Slots& slots)
      : distance_(slots.n_stores < 15    ? 96
                  : slots.n_stores > 175 ? 8
                                         : 1400 / slots.n_stores),
        rows_(codes.first + slots.store(0) * static_cast<std::size_t>(codes.width)),
        stride_(codes.stride),
        last_((slots.store(slots.n_stores - 1) - slots.store(0) + 1) *
                  static_cast<std::size_t>(codes.width) -
              1),
        // Rows whose length divides a cache line lie within one; others may cross lines.
        more_(line % stride_ == 0 ? 0 : last_ / line + 1) {}

  std::size_t distance() const { return distance_; }  // in rows

  void operator()(RowId row) const {
    const std::uint8_t* at = rows_ + row * stride_;
    prefetch(at);
    for (std::size_t k = 1; k <= more_; ++k) prefetch(at + (k * line < last_ ? k * line : last_));
  }

 private:
  static constexpr std::size_t line = 64;
  std::size_t distance_;
  RowZero rows_;
  std::size_t stride_, last_, more_;
};

// g:16 h:16 of an element -> g:32 h:32.
inline PackedSum widen(Element e) {
  const auto pair = static_cast<std::int32_t>(e >> 32);
  return pack(pair >> 16, pair & 0xffff);
}

void read_narrow(const Element* ARBOOST_RESTRICT elements, std::size_t n,
                 std::int64_t* ARBOOST_RESTRICT values) {
  for (std::size_t i = 0; i < n; ++i) values[i] = widen(elements[i]);
}

// Offsets of stored columns in a histogram: uniform, which saves one load an update; by table; or
// by table for a subset of the columns.
enum class Layout { uniform, table, subset };

// Iterates over the columns' slots, with the positions of their codes in a row.
template <Layout layout>
class SlotWalk {
 public:
  SlotWalk(const Slots& slots, std::int64_t* hist)
      : hist_(hist), step_(slots.stride), first_(slots.first), stores_(slots.stores) {}
  std::int64_t* next(std::size_t j) {
    if constexpr (layout == Layout::uniform) {
      std::int64_t* here = hist_;
      hist_ += step_;
      return here;
    } else {
      return hist_ + first_[code(j)];
    }
  }
  std::size_t code(std::size_t j) const { return layout == Layout::subset ? stores_[j] : j; }

 private:
  std::int64_t* hist_;
  std::size_t step_;
  const std::uint32_t* first_;
  const std::uint32_t* stores_;
};

// One channel. Four rows at a time: the CPU has independent chains of updates, and the columns are
// walked once for all of them.
template <class Code, Layout layout, class Value>
void accumulate_one(const RowCodes& codes, const Slots& slots, const Element* elements,
                    std::size_t n, Value value, std::int64_t* hist) {
  const RowZero rows = codes.first;
  const std::size_t stride = codes.stride;
  const std::size_t n_stores = slots.n_stores;
  const SlotWalk<layout> start(slots, hist);
  const RowPrefetch ask(codes, slots);
  const auto row = [=](std::size_t i) {
    return reinterpret_cast<const Code*>(rows + row_of(elements[i]) * stride);
  };
  constexpr std::size_t together = 4;
  const std::size_t distance = ask.distance();
  for (std::size_t r = 0; r < distance && r < n; ++r) ask(row_of(elements[r]));
  std::size_t i = 0;
  for (; i + together <= n; i += together) {
    if (i + together + distance <= n)
      for (std::size_t r = 0; r < together; ++r) ask(row_of(elements[i + distance + r]));
    const Code* codes_of[together];
    PackedSum values[together];
    for (std::size_t r = 0; r < together; ++r) {
      codes_of[r] = row(i + r);
      values[r] = value(elements[i + r]);
    }
    SlotWalk<layout> walk = start;
    const auto add_column = [&](std::size_t f) {
      std::int64_t* slot = walk.next(f);
      const std::size_t at = walk.code(f);
      for (std::size_t r = 0; r < together; ++r) slot[codes_of[r][at]] += values[r];
    };
    std::size_t f = 0;
    for (; f + 2 <= n_stores; f += 2) {
      add_column(f);
      add_column(f + 1);
    }
    if (f < n_stores) add_column(f);
  }
  for (; i < n; ++i) {
    const Code* a = row(i);
    const PackedSum va = value(elements[i]);
    SlotWalk<layout> walk = start;
    for (std::size_t f = 0; f < n_stores; ++f) walk.next(f)[a[walk.code(f)]] += va;
  }
}

// Asks for the cache lines of a row, and for those of its wide pairs.
class WidePrefetch {
 public:
  WidePrefetch(const RowCodes& codes, const Slots& slots, const RowSums& sums)
      : codes_(codes, slots), wide_(sums.wide), outputs_(static_cast<std::size_t>(sums.outputs)) {}

  std::size_t distance() const { return codes_.distance(); }

  void operator()(RowId row) const {
    codes_(row);
    if (wide_ != nullptr) prefetch(wide_ + row * outputs_);
  }

 private:
  RowPrefetch codes_;
  const PackedSum* wide_;
  std::size_t outputs_;
};

// A few channels: outputs, then the count where it is asked for. A row's contributions are signed
// once and stay in registers.
template <class Code, std::size_t channels>
void accumulate_few(const RowCodes& codes, const Slots& slots, const RowSums& sums,
                    const Element* elements, std::size_t n, std::int64_t sign, std::int64_t* hist) {
  const WidePrefetch ask(codes, slots, sums);
  const auto outputs = static_cast<std::size_t>(sums.outputs);
  for (std::size_t i = 0; i < n; ++i) {
    if (i + ask.distance() < n) ask(row_of(elements[i + ask.distance()]));
    const RowId id = row_of(elements[i]);
    const PackedSum narrow = widen(elements[i]);
    const PackedSum* row_sums = sums.wide == nullptr ? &narrow : sums.wide + id * outputs;
    PackedSum values[channels];
    for (std::size_t k = 0; k + 1 < channels; ++k) values[k] = sign * row_sums[k];
    values[channels - 1] = sums.counted ? sign : sign * row_sums[channels - 1];
    const Code* row = codes.row<Code>(id);
    for (std::size_t j = 0; j < slots.n_stores; ++j) {
      const std::size_t f = slots.store(j);
      std::int64_t* slot = hist + (slots.first[f] + row[f]) * channels;
      for (std::size_t k = 0; k < channels; ++k) slot[k] += values[k];
    }
  }
}

// Any number of channels.
template <class Code, bool subtract>
void accumulate_many(const RowCodes& codes, const Slots& slots, const RowSums& sums,
                     const Element* elements, std::size_t n, std::int64_t* hist) {
  const auto channels = static_cast<std::size_t>(sums.channels());
  const auto outputs = static_cast<std::size_t>(sums.outputs);
  const WidePrefetch ask(codes, slots, sums);
  const auto add_to = [](std::int64_t& slot, std::int64_t value) {
    subtract ? slot -= value : slot += value;
  };
  for (std::size_t i = 0; i < n; ++i) {
    if (i + ask.distance() < n) ask(row_of(elements[i + ask.distance()]));
    const RowId id = row_of(elements[i]);
    const PackedSum* values = sums.wide + id * outputs;  // vector leaves have no narrow pairs
    const Code* row = codes.row<Code>(id);
    for (std::size_t j = 0; j < slots.n_stores; ++j) {
      const std::size_t f = slots.store(j);
      std::int64_t* ARBOOST_RESTRICT slot = hist + (slots.first[f] + row[f]) * channels;
      for (std::size_t k = 0; k < outputs; ++k) add_to(slot[k], values[k]);
      if (sums.counted) add_to(slot[outputs], 1);
    }
  }
}

template <class Code>
void accumulate_channels(const RowCodes& codes, const Slots& slots, const RowSums& sums,
                         const Element* elements, std::size_t n, std::int64_t sign,
                         std::int64_t* hist) {
  switch (sums.channels()) {
    case 2:
      return accumulate_few<Code, 2>(codes, slots, sums, elements, n, sign, hist);
    case 3:
      return accumulate_few<Code, 3>(codes, slots, sums, elements, n, sign, hist);
    case 4:
      return accumulate_few<Code, 4>(codes, slots, sums, elements, n, sign, hist);
    default:
      return sign < 0 ? accumulate_many<Code, true>(codes, slots, sums, elements, n, hist)
                      : accumulate_many<Code, false>(codes, slots, sums, elements, n, hist);
  }
}

template <class Code, Layout layout>
void accumulate_single(const RowCodes& codes, const Slots& slots, const RowSums& sums,
                       const Element* elements, std::size_t n, std::int64_t sign,
                       std::int64_t* hist) {
  const PackedSum* wide = sums.wide;
  if (wide != nullptr) {
    const auto value = [wide, sign](Element e) { return sign * wide[row_of(e)]; };
    accumulate_one<Code, layout>(codes, slots, elements, n, value, hist);
  } else {
    const auto value = [sign](Element e) { return sign * widen(e); };
    accumulate_one<Code, layout>(codes, slots, elements, n, value, hist);
  }
}

template <class Code>
void accumulate_code(const RowCodes& codes, const Slots& slots, const RowSums& sums,
                     const Element* elements, std::size_t n, std::int64_t sign,
                     std::int64_t* hist) {
  if (sums.channels() > 1)
    accumulate_channels<Code>(codes, slots, sums, elements, n, sign, hist);
  else if (slots.stores != nullptr)
    accumulate_single<Code, Layout::subset>(codes, slots, sums, elements, n, sign, hist);
  else if (slots.stride != 0)
    accumulate_single<Code, Layout::uniform>(codes, slots, sums, elements, n, sign, hist);
  else
    accumulate_single<Code, Layout::table>(codes, slots, sums, elements, n, sign, hist);
}

// Sparse columns: each row has a list of slots. Lists and slots are scattered in memory, so both
// are prefetched.
template <class Slot, bool single>
void accumulate_lists(const SparseCodes& sparse, const RowSums& sums, const Element* elements,
                      std::size_t n, std::int64_t sign, std::int64_t* hist) {
  constexpr std::size_t slots_distance = 4;
  const std::uint64_t* start = sparse.row_start.data();
  const auto* slots = reinterpret_cast<const Slot*>(sparse.slots.data());
  const auto channels = static_cast<std::size_t>(sums.channels());
  const auto outputs = static_cast<std::size_t>(sums.outputs);
  for (std::size_t i = 0; i < n; ++i) {
    if (i + 2 * prefetch_distance < n)
      prefetch(start + row_of(elements[i + 2 * prefetch_distance]));
    if (i + prefetch_distance < n) prefetch(slots + start[row_of(elements[i + prefetch_distance])]);
    if (i + slots_distance < n) {
      const RowId ahead = row_of(elements[i + slots_distance]);
      for (std::uint64_t k = start[ahead]; k < start[ahead + std::size_t{1}]; ++k)
        prefetch(hist + slots[k] * channels);
    }
    const RowId row = row_of(elements[i]);
    const PackedSum narrow = widen(elements[i]);
    const PackedSum* values = sums.wide == nullptr ? &narrow : sums.wide + row * outputs;
    const std::uint64_t end = start[row + std::size_t{1}];
    for (std::uint64_t k = start[row]; k < end; ++k) {
      std::int64_t* slot = hist + slots[k] * channels;
      if constexpr (single) {
        *slot += sign * values[0];
      } else {
        for (std::size_t c = 0; c < outputs; ++c) slot[c] += sign * values[c];
        if (sums.counted) slot[outputs] += sign;
      }
    }
  }
}

void accumulate_sparse(const SparseCodes& sparse, const RowSums& sums, const Element* elements,
                       std::size_t n, std::int64_t sign, std::int64_t* hist) {
  if (sparse.slot_width == 2)
    sums.channels() == 1
        ? accumulate_lists<std::uint16_t, true>(sparse, sums, elements, n, sign, hist)
        : accumulate_lists<std::uint16_t, false>(sparse, sums, elements, n, sign, hist);
  else
    sums.channels() == 1
        ? accumulate_lists<std::uint32_t, true>(sparse, sums, elements, n, sign, hist)
        : accumulate_lists<std::uint32_t, false>(sparse, sums, elements, n, sign, hist);
}

void accumulate(const RowCodes& codes, const Slots& slots, const RowSums& sums,
                const Element* elements, std::size_t n, bool subtract, std::int64_t* hist) {
  const std::int64_t sign = subtract ? -1 : 1;
  if (slots.first_sparse < slots.n_slots)
    accumulate_sparse(*codes.sparse, sums, elements, n, sign,
                      hist + slots.first_sparse * static_cast<std::size_t>(sums.channels()));
  if (slots.n_stores == 0) return;
  if (codes.width == 1)
    accumulate_code<std::uint8_t>(codes, slots, sums, elements, n, sign, hist);
  else
    accumulate_code<std::uint16_t>(codes, slots, sums, elements, n, sign, hist);
}

void add(std::int64_t* target, const std::int64_t* source, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) target[i] += source[i];
}

void subtract(std::int64_t* target, const std::int64_t* source, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) target[i] -= source[i];
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
