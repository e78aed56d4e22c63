// A CUDA device: memory, kernels and launches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cuda/answer.h"
#include "cuda/driver.h"

namespace arboost::cuda {

struct KernelProgram;

// Blocks of a launch over n items.
inline std::size_t in_blocks(std::size_t n, std::size_t size) {
  return (n + size - 1) / size;
}

// Where the run-time compiler and compiled kernels lie; set once by the package.
struct Places {
  std::vector<std::string> compilers;
  std::string cache;  // folder; empty: kernels are compiled in every process
};
void set_places(Places places);

// Machine code of a program's kernels (cuda/kernel_sources.h) for an architecture such as 90. Needs
// the run-time compiler alone.
std::vector<char> compiled_program(const std::string& name, int architecture);

// One device of this process, shared by all its fits. Thread-safe.
class Device {
 public:
  // Throws DeviceError where the device does not exist.
  static Device& number(int ordinal);
  static int count();

  const std::string& name() const { return name_; }
  int multiprocessors() const { return multiprocessors_; }
  std::size_t shared_bytes() const { return shared_bytes_; }  // of a block, at most
  std::size_t free_bytes() const;
  // The kernel of this name, with `shared_bytes` of shared memory.
  Function kernel(const char* name, std::size_t shared_bytes = 0);

  // Makes the device current in this thread, for as long as it lives.
  class Use {
   public:
    explicit Use(const Device& device);
    explicit Use(int ordinal) : Use(number(ordinal)) {}
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
  };

 private:
  explicit Device(int ordinal);
  Module module_of(const KernelProgram& program);

  std::string name_;
  int handle_ = 0, architecture_ = 0, multiprocessors_ = 0;
  std::size_t shared_bytes_ = 0;
  Context context_ = nullptr;
  std::mutex mutex_;                                                          // guards what follows
  std::unordered_map<std::string, Module> modules_;                           // by program
  std::unordered_map<std::string, std::future<std::vector<char>>> binaries_;  // not yet loaded
  struct Kernel {
    Function function = nullptr;
    std::size_t shared_bytes = 48 << 10;  // that a block may have
  };
  std::unordered_map<std::string, Kernel> kernels_;
};

Address take_memory(std::size_t bytes);
void give_memory_back(Address address);

// Device memory of plain numbers, freed with the object. The device must be current.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(std::size_t size) : size_(size) {
    if (size > 0) address_ = take_memory(size * sizeof(T));
  }
  ~DeviceArray() {
    if (address_ != 0) give_memory_back(address_);
  }
  DeviceArray(DeviceArray&& other) noexcept
      : address_(std::exchange(other.address_, 0)), size_(std::exchange(other.size_, 0)) {}
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(size_, other.size_);
    return *this;
  }

  std::size_t size() const { return size_; }
  Address address() const { return address_; }
  T* data() const { return reinterpret_cast<T*>(address_); }  // for kernels only

 private:
  Address address_ = 0;
  std::size_t size_ = 0;
};

template <class T>
void make_room(DeviceArray<T>& array, std::size_t size) {
  if (array.size() >= size) return;
  array = {};  // first: the two need not fit together
  array = DeviceArray<T>(size);
}

// Frees memory of a device, given itself or by its number, in a destructor: where the device is
// gone, its memory is, too.
template <class Which, class Free>
void free_on(const Which& device, Free free) {
  try {
    Device::Use use(device);
    free();
  } catch (const DeviceError&) {
  }
}

// Memory of a device that any thread may free.
class OwnedBytes {
 public:
  OwnedBytes(std::size_t bytes, int device) : device_(Device::number(device)) {
    Device::Use use(device_);
    bytes_ = DeviceArray<std::uint8_t>(bytes);
  }
  ~OwnedBytes() {
    free_on(device_, [this] { bytes_ = {}; });
  }
  OwnedBytes(const OwnedBytes&) = delete;
  OwnedBytes& operator=(const OwnedBytes&) = delete;

  Address address() const { return bytes_.address(); }
  std::uint8_t* data() const { return bytes_.data(); }  // for kernels only

 private:
  const Device& device_;
  DeviceArray<std::uint8_t> bytes_;
};

// Host memory that the device reads and writes while kernels run.
class PinnedBytes {
 public:
  PinnedBytes() = default;
  ~PinnedBytes();
  PinnedBytes(const PinnedBytes&) = delete;
  PinnedBytes& operator=(const PinnedBytes&) = delete;
  // A buffer of at least `bytes`; growing discards its content.
  std::byte* buffer(std::size_t bytes);

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

// Work in order, beside that of other queues.
class Queue {
 public:
  Queue();
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Launches kernel<<<blocks, threads, shared_bytes>>>(args ...).
  struct Grid {
    std::size_t x = 1, y = 1, z = 1;
  };
  template <class... Args>
  void launch(Function kernel, Grid blocks, unsigned threads, std::size_t shared_bytes,
              const Args&... args) {
    void* pointers[] = {const_cast<void*>(static_cast<const void*>(&args))...};
    launch_with(kernel, blocks, threads, shared_bytes, pointers);
  }

  template <class T>
  void upload(const T* from, std::size_t n, const DeviceArray<T>& to) {
    copy_in(from, n * sizeof(T), to.address());
  }
  // A copy of a short array, which must live until the queue is waited for; with room for `more`
  // elements behind it.
  template <class T>
  DeviceArray<T> send(const std::vector<T>& from, std::size_t more = 0) {
    DeviceArray<T> to(from.size() + more);
    upload(from.data(), from.size(), to);
    return to;
  }
  template <class T>
  void download(const DeviceArray<T>& from, std::size_t n, T* to) {
    copy_out(from.address(), n * sizeof(T), to);
  }
  void copy_in(const void* from, std::size_t bytes, Address to);
  void copy_out(Address from, std::size_t bytes, void* to);
  void fill_zero(Address at, std::size_t bytes) { fill(at, bytes, 0); }
  void fill_ones(Address at, std::size_t bytes) { fill(at, bytes, 0xff); }
  void wait();  // until all of it is done

  // A flag that a kernel sets once its results are in the host's memory: quicker than a copy.
  // Kernels set their flags in the order of the requests.
  Answer ask();
  void await(const Answer& answer);

 private:
  void launch_with(Function kernel, Grid blocks, unsigned threads, std::size_t shared_bytes,
                   void** args);
  void fill(Address at, std::size_t bytes, unsigned char value);
  Stream stream_ = nullptr;
  PinnedBytes flag_;
  std::uint32_t ticket_ = 0;
};

// Waits for a stream of another package: a handle of the driver, or 1 for the default stream.
void wait_for(std::uint64_t stream);

// Number of the device that an address belongs to. Throws DeviceError for other memory.
int device_of(Address address);

}  // namespace arboost::cuda
