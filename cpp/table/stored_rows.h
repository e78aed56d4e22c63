// Row-major codes in a file instead of memory. A few windows of rows are mapped at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

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

  // Bytes [at, at + n) in memory, as long as the window lives. Its pages belong to the system's
  // cache of the file: the system may take them back, and reads them again at the next window.
  class Window {
   public:
    Window() = default;
    Window(const CodesFile& file, std::uint64_t at, std::size_t n);
    ~Window();
    Window(Window&& other) noexcept;
    Window& operator=(Window&& other) noexcept;
    const std::uint8_t* data() const { return data_; }

   private:
    void* mapped_ = nullptr;
    std::size_t size_ = 0;
    const std::uint8_t* data_ = nullptr;
  };

 private:
  int descriptor_;
};

// Rows [begin, end) of a table, in memory.
struct RowWindow {
  std::size_t begin, end;
  // Codes of row r at row_zero + r * stride.
  const std::uint8_t* row_zero;
};

class StoredRows {
 public:
  // Bytes that a kernel may read behind the last row.
  static constexpr std::size_t padding = 64;

  // The file has the codes of row r at r * stride, and `padding` bytes behind the last row.
  StoredRows(std::shared_ptr<const CodesFile> file, std::size_t n_rows, std::size_t stride,
             std::size_t window_rows, std::uint64_t checksum);

  std::size_t window_rows() const { return window_rows_; }
  std::uint64_t checksum() const { return checksum_; }  // of all rows, for any windows

  // Calls use(window) for the windows of window_rows rows that hold rows of [begin, end), in order;
  // the next window is read meanwhile by another thread.
  void each_window(std::size_t begin, std::size_t end,
                   FunctionRef<void(const RowWindow&)> use) const;

 private:
  CodesFile::Window window_of(std::size_t begin) const;

  std::shared_ptr<const CodesFile> file_;
  std::size_t n_rows_, stride_, window_rows_;
  std::uint64_t checksum_;
};

}  // namespace arboost
