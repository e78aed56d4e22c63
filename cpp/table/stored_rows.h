// Row-major codes in a file instead of memory. Two windows of rows are in memory at a time.
//
// Windows are mapped: pages that are in the system's cache of the file are not copied. Where the
// system evicts pages from one pass to the next, as in a container whose limit counts the cache,
// the cache is in the way; then windows are read past it into memory of their own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/buffer.h"
#include "base/parallel.h"  // FunctionRef

namespace arboost {

// An open file that this process alone reads and writes. Throws std::system_error.
class CodesFile {
 public:
  explicit CodesFile(int descriptor);  // of a file open for reading; duplicated
  ~CodesFile();
  CodesFile(const CodesFile&) = delete;
  CodesFile& operator=(const CodesFile&) = delete;

  std::uint64_t size() const;
  void write(std::uint64_t at, const void* bytes, std::size_t n);
  void read(std::uint64_t at, void* bytes, std::size_t n) const;

  // True if most of the bytes [at, at + n) are in the system's cache, or nobody can tell.
  bool is_cached(std::uint64_t at, std::size_t n) const;

  // Bytes [at, at + n) in memory, as long as the window lives.
  class Window {
   public:
    Window() = default;
    Window(const CodesFile& file, std::uint64_t at, std::size_t n);
    ~Window();
    Window(Window&& other) noexcept;
    Window& operator=(Window&& other) noexcept;
    const std::uint8_t* data() const { return data_; }

    // Reads other bytes past the system's cache into the memory of this window. False where the
    // file system cannot: nothing has changed then.
    bool read_past_cache(const CodesFile& file, std::uint64_t at, std::size_t n);

   private:
    void* mapped_ = nullptr;
    std::size_t size_ = 0;
    Buffer<std::uint8_t> own_;
    const std::uint8_t* data_ = nullptr;
  };

 private:
  int descriptor_;
  int past_cache_ = -1;  // another descriptor of the file; -1: none
};

// Address of the codes of row 0. Of a window of later rows it is a number that no pointer may have:
// a pointer before its array is undefined.
class RowZero {
 public:
  RowZero(const std::uint8_t* row, std::size_t bytes_from_row_zero = 0)
      : address_(reinterpret_cast<std::uintptr_t>(row) - bytes_from_row_zero) {}
  const std::uint8_t* operator+(std::size_t bytes) const {
    return reinterpret_cast<const std::uint8_t*>(address_ + bytes);
  }
  RowZero& operator+=(std::size_t bytes) {
    address_ += bytes;
    return *this;
  }

 private:
  std::uintptr_t address_;
};

// Rows [begin, end) of a table, in memory.
struct RowWindow {
  std::size_t begin, end;
  RowZero row_zero;  // codes of row r at row_zero + r * stride
};

class StoredRows {
 public:
  // Bytes that a kernel may read behind the last row.
  static constexpr std::size_t padding = 64;

  virtual ~StoredRows() = default;
  virtual std::size_t window_rows() const = 0;
  virtual std::uint64_t checksum() const = 0;  // of all rows, for any windows

  // Calls use(window) for the windows of window_rows rows that hold rows of [begin, end), in order.
  virtual void each_window(std::size_t begin, std::size_t end,
                           FunctionRef<void(const RowWindow&)> use) const = 0;
};

class RowsInFile final : public StoredRows {
 public:
  // The file has the codes of row r at r * stride, and `padding` bytes behind the last row.
  RowsInFile(std::shared_ptr<const CodesFile> file, std::size_t n_rows, std::size_t stride,
             std::size_t window_rows, std::uint64_t checksum);

  std::size_t window_rows() const override { return window_rows_; }
  std::uint64_t checksum() const override { return checksum_; }
  // The next window is read meanwhile by another thread.
  void each_window(std::size_t begin, std::size_t end,
                   FunctionRef<void(const RowWindow&)> use) const override;

 private:
  // The window of row `begin`, in the memory of a window that is done where that is its own.
  CodesFile::Window window_of(std::size_t begin, CodesFile::Window done) const;

  std::shared_ptr<const CodesFile> file_;
  std::size_t n_rows_, stride_, window_rows_;
  std::uint64_t checksum_;
  // Windows that have been mapped before, and whether one of them was evicted since.
  std::unique_ptr<std::atomic<bool>[]> mapped_;
  mutable std::atomic<bool> evicts_{false};
};

}  // namespace arboost
