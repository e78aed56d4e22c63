// The words that all stages share: row ids, codes, gradients. Each says its unit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>  // aligned memory
#include <memory>
#include <new>  // bad_alloc
#include <vector>

#if defined(_WIN32)
#include <malloc.h>  // aligned memory
#endif
#if !defined(_WIN32)
#include <sys/mman.h>  // large blocks
#endif

// The pointer that it qualifies is the only way to its memory in the function: loops may vectorise.
#if defined(_MSC_VER)
#define ARBOOST_RESTRICT __restrict
#else
#define ARBOOST_RESTRICT __restrict__
#endif

// Functions on registers, which must not become calls.
#if defined(_MSC_VER) && !defined(__clang__)
#define ARBOOST_INLINE __forceinline
#else
#define ARBOOST_INLINE inline __attribute__((always_inline))
#endif

namespace arboost {

using RowId = std::uint32_t;  // index of a training row; a fit holds at most 2^32 - 1 rows

// Asks for memory that will be read soon. (Each file has a copy of its own.)
static inline void prefetch([[maybe_unused]] const void* address) {
#if !defined(_MSC_VER)
  __builtin_prefetch(address);
#endif
}

namespace memory {

constexpr std::size_t huge_page = std::size_t{1} << 21;

// Uninitialised, aligned to cache lines. Large blocks come from the system and go back to it at
// once; where it offers huge pages they are made of those, because rows are read in the order of
// the tree's nodes and each such read of a 4 KiB page would cost a look-up of its address.
inline void* take(std::size_t bytes) {
  void* block = nullptr;
#if defined(_WIN32)
  block = _aligned_malloc(bytes, 64);
#else
  if (bytes < huge_page) {
    block = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  } else {
    const std::size_t rounded = (bytes + huge_page - 1) / huge_page * huge_page;
    void* wide = mmap(nullptr, rounded + huge_page, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (wide == MAP_FAILED) throw std::bad_alloc();
    // Give back what lies before and behind the aligned part.
    const auto start = reinterpret_cast<std::uintptr_t>(wide);
    const std::size_t before = (huge_page - start % huge_page) % huge_page;
    block = static_cast<char*>(wide) + before;
    if (before > 0) munmap(wide, before);
    munmap(static_cast<char*>(block) + rounded, huge_page - before);
#if defined(__linux__)
    madvise(block, rounded, MADV_HUGEPAGE);
#endif
  }
#endif
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

inline void give_back(void* block, std::size_t bytes) {
#if defined(_WIN32)
  (void)bytes;
  _aligned_free(block);
#else
  if (bytes < huge_page)
    std::free(block);
  else
    munmap(block, (bytes + huge_page - 1) / huge_page * huge_page);
#endif
}

}  // namespace memory

// An array of plain numbers that are not initialised.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size)
      : data_(size == 0 ? nullptr : static_cast<T*>(memory::take(size * sizeof(T))),
              Free{size * sizeof(T)}),
        size_(size) {}

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_.get()[i]; }
  const T& operator[](std::size_t i) const { return data_.get()[i]; }

 private:
  struct Free {
    std::size_t bytes = 0;
    void operator()(T* block) const { memory::give_back(block, bytes); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t size_ = 0;
};

// How a feature's codes are stored. Most rows of many columns have one and the same code, the usual
// one: 0 of a flag, a count or a word of a text.
//
//   own      a stored column has the feature's codes and nothing else
//   shared   stored codes of one byte are numbers of mixed radix, code = sum of digit * stride over
//            the column's digits. A digit is a feature's code, or it is exclusive: of features of
//            which no row, or hardly any, has more than one away from its usual code. It is 0 where
//            all have that, and else counts the other codes of one feature after the other.
//   sparse   only what is not the usual code is stored, with its row
enum class Storage : std::uint8_t { own, shared, sparse };

struct Place {
  Storage storage = Storage::own;
  bool exclusive = false;
  std::uint32_t store = 0;     // stored column, or number among the sparse ones
  std::uint32_t digit = 0;     // shared: number among the digits of the table
  std::uint32_t first = 0;     // exclusive: what the digit is for the lowest of the other codes
  std::uint32_t usual = 0;     // exclusive and sparse
  std::uint32_t n_others = 0;  // exclusive and sparse: codes but the usual one, missing included

  // Where a code but the usual one is among the others, and back.
  std::uint32_t rank_of(std::uint32_t code) const { return code - (code > usual ? 1 : 0); }
  std::uint32_t code_of(std::uint32_t rank) const { return rank + (rank >= usual ? 1 : 0); }
};

struct Digit {
  std::uint32_t store, stride, radix;
};

// The rows of sparse columns that have not the usual code, by column and by row.
//
//   by column   rows[k], codes[k] for k in [start[c], start[c + 1]): rows ascend
//   by row      slots[k] for k in [row_start[r], row_start[r + 1]): column c owns the histogram
//               slots [first_slot[c], first_slot[c + 1]), one for each of its other codes
struct SparseCodes {
  std::vector<std::uint32_t> features;  // of each column, ascending
  std::vector<std::uint64_t> start{0};
  Buffer<RowId> rows;
  Buffer<std::uint8_t> codes;  // of the table's width
  std::vector<std::uint32_t> first_slot{0};
  Buffer<std::uint64_t> row_start;
  int slot_width = 2;  // bytes of a slot: 2, or 4 where there are more than 2^16
  Buffer<std::uint8_t> slots;

  std::size_t size() const { return features.size(); }
  std::size_t n_slots() const { return first_slot.back(); }
  std::size_t n_stored() const { return start.back(); }
  template <class Slot>
  const Slot* row_slots() const {
    return reinterpret_cast<const Slot*>(slots.data());
  }
};

// A binned table. Feature f has n_bins[f] codes for values, in the order of the values; missing
// values have the code n_bins[f]. Stored columns are kept twice, because histograms read all of one
// row and partitions read one of many rows.
//
//   by_row      row 0: s0 s1 ... pad | row 1: s0 s1 ... pad | ...      row_stride bytes a row
//   by_column   s0: row 0, row 1, ... | s1: row 0, row 1, ... | ...    n_rows codes a stored column
//
// A code takes one byte while every feature has at most 255 bins (and missing), two up to 65,535,
// and four above: then the codes are ranks of values (bin/rank.h), too many for histograms, so that
// by_row and first_slot are empty. Features share stored columns only of one byte.
struct Codes {
  std::size_t n_rows = 0;
  std::size_t n_features = 0;
  std::size_t n_stores = 0;    // stored columns
  int width = 1;               // bytes of one code: 1, 2 or 4
  std::size_t row_stride = 0;  // bytes from one row to the next in by_row, a multiple of 8
  Buffer<std::uint8_t> by_row;
  Buffer<std::uint8_t> by_column;
  std::vector<std::uint32_t> n_bins;       // codes for values, per feature
  std::vector<std::uint8_t> has_missing;   // 1 where a training value is missing
  std::vector<std::vector<double>> edges;  // between the bins, per feature
  // 1 where codes are those of a category's levels, which have no order; empty: nowhere. At most
  // 255 levels.
  std::vector<std::uint8_t> is_category;
  bool has_levels(std::size_t feature) const {
    return !is_category.empty() && is_category[feature] != 0;
  }
  std::vector<Place> where;   // per feature
  std::vector<Digit> digits;  // those of one stored column together, strides ascending
  SparseCodes sparse;
  // Histogram slots: stored column s owns slots [first_slot[s], first_slot[s + 1]), one for each of
  // its codes. Those of sparse columns follow. Throws where they are more than 2^31 - 1.
  std::vector<std::uint32_t> first_slot;
  void number_slots();

  // Every feature has a stored column of its own.
  void give_own_places();
  bool is_plain() const { return n_stores == n_features && digits.empty(); }
  // Codes that a feature's rows may have.
  std::uint32_t n_codes(std::size_t feature) const {
    return n_bins[feature] + has_missing[feature];
  }
  // The feature's code where its stored column, own or shared, has the given one.
  std::uint32_t decode(std::size_t feature, std::uint32_t stored) const;

  template <class Code>
  const Code* row(std::size_t i) const {
    return reinterpret_cast<const Code*>(by_row.data() + i * row_stride);
  }
  template <class Code>
  const Code* column(std::size_t store) const {
    return reinterpret_cast<const Code*>(by_column.data()) + store * n_rows;
  }
  template <class Code>
  Code* column(std::size_t store) {
    return reinterpret_cast<Code*>(by_column.data()) + store * n_rows;
  }
  // The same as bytes, whatever the width.
  const std::uint8_t* column_bytes(std::size_t store) const {
    return by_column.data() + store * n_rows * static_cast<std::size_t>(width);
  }
};

// One row's gradient and hessian as fixed-point integers: value = integer * 2^-exponent, with one
// exponent for all gradients and one for all hessians of a round (DESIGN: integer gradients).
struct FixedPair {
  std::int32_t g;
  std::int32_t h;
};

}  // namespace arboost
