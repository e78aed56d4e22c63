// Uninitialised arrays of plain numbers, aligned to cache lines. Large ones use huge pages, where
// the system offers them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>  // aligned memory
#include <memory>
#include <new>  // bad_alloc

#if defined(_WIN32)
#include <malloc.h>  // aligned memory
#endif
#if !defined(_WIN32)
#include <sys/mman.h>  // large blocks
#endif

namespace arboost {

namespace memory {

constexpr std::size_t huge_page = std::size_t{1} << 21;

// Allocates uninitialised memory, aligned to cache lines. Large blocks are mapped from the system
// and unmapped at once when freed. They use huge pages where available: rows are read in the order
// of the tree's nodes, and with pages of 4 KiB each such read would miss the TLB.
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
    // Unmap the parts before and behind the aligned block.
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

// An uninitialised array of plain numbers.
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

// Grows the buffer to at least `size` numbers; growing discards its content.
template <class T>
void make_room(Buffer<T>& buffer, std::size_t size) {
  if (buffer.size() < size) buffer = Buffer<T>(size);
}

}  // namespace arboost
