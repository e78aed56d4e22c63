// Windows of a file: mapped by the system, or read past its cache.
#include "table/stored_rows.h"

#include <algorithm>
#include <cerrno>
#include <future>
#include <new>  // bad_alloc
#include <system_error>
#include <utility>

#if defined(_WIN32)
#include <io.h>

#include <mutex>
#else
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>
#endif

namespace arboost {
namespace {

[[noreturn]] void fail(const char* action) {
  throw std::system_error(errno, std::generic_category(), action);
}

// Reads or writes n bytes by steps: step(done, left) returns how many more are done.
template <class Step>
void transfer(std::size_t n, const char* action, Step step) {
  for (std::size_t done = 0; done < n;) {
    const auto more = step(done, n - done);
    if (more < 0 && errno == EINTR) continue;
    if (more == 0) errno = EIO;  // the file has been cut short
    if (more <= 0) fail(action);
    done += static_cast<std::size_t>(more);
  }
}

}  // namespace

#if defined(_WIN32)

namespace {
std::mutex position_mutex;  // reads and writes move the one position of a file
constexpr std::size_t most = std::size_t{1} << 30;  // bytes of a call
}  // namespace

CodesFile::CodesFile(int descriptor) : descriptor_(_dup(descriptor)) {
  if (descriptor_ < 0) fail("opening the file of codes");
}

CodesFile::~CodesFile() {
  _close(descriptor_);
}

std::uint64_t CodesFile::size() const {
  const std::int64_t size = _filelengthi64(descriptor_);
  if (size < 0) fail("looking at the file of codes");
  return static_cast<std::uint64_t>(size);
}

void CodesFile::write(std::uint64_t at, const void* bytes, std::size_t n) {
  std::lock_guard lock(position_mutex);
  const auto* from = static_cast<const char*>(bytes);
  if (_lseeki64(descriptor_, static_cast<std::int64_t>(at), SEEK_SET) < 0)
    fail("writing the file of codes");
  transfer(n, "writing the file of codes", [&](std::size_t done, std::size_t left) {
    return _write(descriptor_, from + done, static_cast<unsigned>(std::min(left, most)));
  });
}

void CodesFile::read(std::uint64_t at, void* bytes, std::size_t n) const {
  std::lock_guard lock(position_mutex);
  auto* to = static_cast<char*>(bytes);
  if (_lseeki64(descriptor_, static_cast<std::int64_t>(at), SEEK_SET) < 0)
    fail("reading the file of codes");
  transfer(n, "reading the file of codes", [&](std::size_t done, std::size_t left) {
    return _read(descriptor_, to + done, static_cast<unsigned>(std::min(left, most)));
  });
}

bool CodesFile::is_cached(std::uint64_t, std::size_t) const {
  return true;
}

CodesFile::Window::Window(const CodesFile& file, std::uint64_t at, std::size_t n)
    : own_(n), data_(own_.data()) {
  file.read(at, own_.data(), n);
}

CodesFile::Window::~Window() = default;

bool CodesFile::Window::read_past_cache(const CodesFile&, std::uint64_t, std::size_t) {
  return false;
}

#else

CodesFile::CodesFile(int descriptor) : descriptor_(dup(descriptor)) {
  if (descriptor_ < 0) fail("opening the file of codes");
#if defined(O_DIRECT) && defined(__linux__)
  // The file may have no name of its own.
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor_);
  past_cache_ = open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
#endif
}

CodesFile::~CodesFile() {
  close(descriptor_);
  if (past_cache_ >= 0) close(past_cache_);
}

std::uint64_t CodesFile::size() const {
  struct stat status{};
  if (fstat(descriptor_, &status) != 0) fail("looking at the file of codes");
  return static_cast<std::uint64_t>(status.st_size);
}

void CodesFile::write(std::uint64_t at, const void* bytes, std::size_t n) {
  const auto* from = static_cast<const char*>(bytes);
  transfer(n, "writing the file of codes", [&](std::size_t done, std::size_t left) {
    return pwrite(descriptor_, from + done, left, static_cast<off_t>(at + done));
  });
}

void CodesFile::read(std::uint64_t at, void* bytes, std::size_t n) const {
  auto* to = static_cast<char*>(bytes);
  transfer(n, "reading the file of codes", [&](std::size_t done, std::size_t left) {
    return pread(descriptor_, to + done, left, static_cast<off_t>(at + done));
  });
}

CodesFile::Window::Window(const CodesFile& file, std::uint64_t at, std::size_t n) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t before = at % page;
  // Reading a page behind the end of a file ends the process.
  if (at + n > file.size()) {
    errno = EIO;
    fail("reading the file of codes");
  }
  size_ = n + before;
#if defined(MAP_POPULATE)
  constexpr int flags = MAP_SHARED | MAP_POPULATE;
#else
  constexpr int flags = MAP_SHARED;
#endif
  mapped_ =
      mmap(nullptr, size_, PROT_READ, flags, file.descriptor_, static_cast<off_t>(at - before));
  if (mapped_ == MAP_FAILED) {
    mapped_ = nullptr;
    fail("mapping the file of codes");
  }
  data_ = static_cast<const std::uint8_t*>(mapped_) + before;
#if !defined(MAP_POPULATE)
  madvise(mapped_, size_, MADV_WILLNEED);
#endif
}

CodesFile::Window::~Window() {
  if (mapped_ != nullptr) munmap(mapped_, size_);
}

bool CodesFile::is_cached(std::uint64_t at, std::size_t n) const {
#if defined(__linux__)
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t before = at % page, size = n + before;
  void* mapped =
      mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor_, static_cast<off_t>(at - before));
  if (mapped == MAP_FAILED) return true;
  std::vector<unsigned char> pages((size + page - 1) / page);
  const bool is_known = mincore(mapped, size, pages.data()) == 0;
  munmap(mapped, size);
  const auto cached =
      std::count_if(pages.begin(), pages.end(), [](auto page_state) { return page_state & 1; });
  return !is_known || 2 * static_cast<std::size_t>(cached) >= pages.size();
#else
  (void)at, (void)n;
  return true;
#endif
}

bool CodesFile::Window::read_past_cache(const CodesFile& file, std::uint64_t at, std::size_t n) {
  // Offset, size and memory of such reads are multiples of a sector; large buffers are aligned.
  constexpr std::size_t sector = 4096;
  const std::size_t before = at % sector;
  const std::size_t size = (before + n + sector - 1) / sector * sector;
  if (file.past_cache_ < 0 || size < memory::huge_page) return false;
  if (own_.size() < size) own_ = Buffer<std::uint8_t>(size);
  for (std::size_t done = 0; done < before + n;) {
    const ssize_t more = pread(file.past_cache_, own_.data() + done, size - done,
                               static_cast<off_t>(at - before + done));
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0 || (static_cast<std::size_t>(more) % sector != 0 &&
                      done + static_cast<std::size_t>(more) < before + n))
      return false;
    done += static_cast<std::size_t>(more);
  }
  if (mapped_ != nullptr) munmap(mapped_, size_);
  mapped_ = nullptr;
  data_ = own_.data() + before;
  return true;
}

#endif

CodesFile::Window::Window(Window&& other) noexcept
    : mapped_(std::exchange(other.mapped_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      own_(std::move(other.own_)),
      data_(std::exchange(other.data_, nullptr)) {}

CodesFile::Window& CodesFile::Window::operator=(Window&& other) noexcept {
  std::swap(mapped_, other.mapped_);
  std::swap(size_, other.size_);
  std::swap(own_, other.own_);
  std::swap(data_, other.data_);
  return *this;
}

RowsInFile::RowsInFile(std::shared_ptr<const CodesFile> file, std::size_t n_rows,
                       std::size_t stride, std::size_t window_rows, std::uint64_t checksum)
    : file_(std::move(file)),
      n_rows_(n_rows),
      stride_(stride),
      window_rows_(window_rows),
      checksum_(checksum),
      mapped_(new std::atomic<bool>[n_rows / window_rows + 1]()) {}

CodesFile::Window RowsInFile::window_of(std::size_t begin, CodesFile::Window done) const {
  const std::size_t n = std::min(window_rows_, n_rows_ - begin) * stride_ + padding;
  const std::uint64_t at = std::uint64_t{begin} * stride_;
  std::atomic<bool>& mapped = mapped_[begin / window_rows_];
  if (!evicts_ && mapped && !file_->is_cached(at, n)) evicts_ = true;
  if (evicts_ && done.read_past_cache(*file_, at, n)) return done;
  mapped = true;
  return {*file_, at, n};
}

void RowsInFile::each_window(std::size_t begin, std::size_t end,
                             FunctionRef<void(const RowWindow&)> use) const {
  if (begin >= end) return;
  std::size_t first = begin / window_rows_ * window_rows_;
  CodesFile::Window window = window_of(first, {}), done;
  for (; first < end; first += window_rows_) {
    const std::size_t last = std::min(first + window_rows_, n_rows_);
    std::future<CodesFile::Window> next;
    if (last < end)
      next = std::async(std::launch::async, [this, last, &done] {
        if (!prepare_exceptions()) throw std::bad_alloc();
        return window_of(last, std::move(done));
      });
    use({first, last, {window.data(), first * stride_}});
    if (!next.valid()) continue;
    CodesFile::Window next_window = next.get();
    done = std::move(window);
    window = std::move(next_window);
  }
}

}  // namespace arboost
