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

namespace arboost {

using RowId = std::uint32_t;  // index of a training row; a fit holds at most 2^32 - 1 rows

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

// A binned table. Feature f has n_bins[f] codes for values, in the order of the values; missing
// values have the code n_bins[f]. The table is kept twice, because histograms read all features of
// one row and partitions read one feature of many rows.
//
//   by_row      row 0: f0 f1 ... pad | row 1: f0 f1 ... pad | ...      row_stride bytes a row
//   by_column   f0: row 0, row 1, ... | f1: row 0, row 1, ... | ...    n_rows codes a feature
//
// A code takes one byte while every feature has at most 255 bins (and missing), two up to 65,535,
// and four above: then the codes are ranks of values (bin/rank.h), too many for histograms, so that
// by_row and first_slot are empty.
struct Codes {
  std::size_t n_rows = 0;
  std::size_t n_features = 0;
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
  // Histogram slots: feature f owns slots [first_slot[f], first_slot[f + 1]), one for each value
  // code and one more where values are missing. Throws where they are more than 2^31 - 1.
  std::vector<std::uint32_t> first_slot;
  void number_slots();

  template <class Code>
  const Code* row(std::size_t i) const {
    return reinterpret_cast<const Code*>(by_row.data() + i * row_stride);
  }
  template <class Code>
  const Code* column(std::size_t feature) const {
    return reinterpret_cast<const Code*>(by_column.data()) + feature * n_rows;
  }
  template <class Code>
  Code* column(std::size_t feature) {
    return reinterpret_cast<Code*>(by_column.data()) + feature * n_rows;
  }
  // The same as bytes, whatever the width.
  const std::uint8_t* column_bytes(std::size_t feature) const {
    return by_column.data() + feature * n_rows * static_cast<std::size_t>(width);
  }
};

// One row's gradient and hessian as fixed-point integers: value = integer * 2^-exponent, with one
// exponent for all gradients and one for all hessians of a round (DESIGN: integer gradients).
struct FixedPair {
  std::int32_t g;
  std::int32_t h;
};

}  // namespace arboost
