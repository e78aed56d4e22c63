// Kernels are compiled once for each architecture, and kept in a folder between processes.
#include "cuda/device.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>  // cref
#include <map>
#include <new>        // bad_alloc
#include <stdexcept>  // logic_error, invalid_argument
#include <string_view>

#include "base/parallel.h"  // prepare_exceptions
#include "cuda/kernel_sources.h"

namespace arboost::cuda {
namespace {

// Attributes of devices and kernels, by their numbers in the driver.
constexpr int multiprocessor_count = 16, major_version = 75, minor_version = 76,
              most_shared_bytes = 97, shared_bytes_of_kernel = 8;

// The same arithmetic as in the core: no contraction, no approximations.
const std::string options[] = {"--std=c++20",          "--device-as-default-execution-space",
                               "-DARBOOST_ISA=device", "--fmad=false",
                               "--ftz=false",          "--prec-div=true",
                               "--prec-sqrt=true"};

std::mutex places_mutex;
Places known_places;

Places places() {
  std::lock_guard lock(places_mutex);
  return known_places;
}

// Calls the driver from a destructor: in a forked process there is nothing to release.
template <class Call>
void release(Call call) {
  try {
    call(driver());
  } catch (const DeviceError&) {
  }
}

// FNV-1a.
std::uint64_t hash_of(std::string_view text, std::uint64_t hash = 1469598103934665603u) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

// A hash of all that decides on the compiled kernels.
std::uint64_t fingerprint(const KernelProgram& program, int architecture, int compiler) {
  std::uint64_t hash = hash_of(program.source);
  for (const Header& header : kernel_headers()) hash = hash_of(header.text, hash);
  for (const std::string& option : options) hash = hash_of(option, hash);
  return hash_of(std::to_string(architecture) + " " + std::to_string(compiler), hash);
}

// Bytes that a hash follows in the file; empty where there is no such file, or it is damaged.
std::vector<char> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::uint64_t hash = 0;
  if (bytes.size() < sizeof hash) return {};
  std::memcpy(&hash, bytes.data() + bytes.size() - sizeof hash, sizeof hash);
  bytes.resize(bytes.size() - sizeof hash);
  return hash == hash_of({bytes.data(), bytes.size()}) ? bytes : std::vector<char>();
}

// Atomic, and silent: a folder that cannot be written to costs time only.
void write_file(const std::filesystem::path& path, const std::vector<char>& bytes) {
  static std::atomic<int> number{0};
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  char suffix[64];
  std::snprintf(suffix, sizeof suffix, ".%ld.%d", process_id(), number++);
  std::filesystem::path scratch = path;
  scratch += suffix;
  {
    std::ofstream file(scratch, std::ios::binary);
    const std::uint64_t hash = hash_of({bytes.data(), bytes.size()});
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.write(reinterpret_cast<const char*>(&hash), sizeof hash);
    if (!file) return std::filesystem::remove(scratch, ignored), void();
  }
  std::filesystem::rename(scratch, path, ignored);
}

std::vector<char> compiled(const KernelProgram& program, int architecture) {
  return compile(program.source, kernel_headers(), options, architecture, places().compilers);
}

std::vector<char> kept_or_compiled(const KernelProgram& program, int architecture) {
  if (!prepare_exceptions()) throw std::bad_alloc();
  const Places where = places();
  const int compiler = compiler_version(where.compilers);
  char name[96];
  std::snprintf(name, sizeof name, "%s-sm%d-%016llx.kernels", program.name, architecture,
                static_cast<unsigned long long>(fingerprint(program, architecture, compiler)));
  const std::filesystem::path path = std::filesystem::path(where.cache) / name;
  if (!where.cache.empty()) {
    std::vector<char> kept = read_file(path);
    if (!kept.empty()) return kept;
  }
  std::vector<char> binary = compiled(program, architecture);
  if (!where.cache.empty()) write_file(path, binary);
  return binary;
}

const KernelProgram& program_of(const std::string& kernel) {
  for (const KernelProgram& program : kernel_programs())
    for (const char* name : program.kernels)
      if (kernel == name) return program;
  throw std::logic_error("no program has the kernel " + kernel);
}

}  // namespace

void set_places(Places where) {
  std::lock_guard lock(places_mutex);
  known_places = std::move(where);
}

std::vector<char> compiled_program(const std::string& name, int architecture) {
  for (const KernelProgram& program : kernel_programs())
    if (name == program.name) return compiled(program, architecture);
  throw std::invalid_argument("there is no program " + name);
}

int Device::count() {
  int n = 0;
  check(driver().DeviceGetCount(&n), "counting devices");
  return n;
}

Device& Device::number(int ordinal) {
  static std::mutex mutex;
  static std::map<int, std::unique_ptr<Device>> devices;
  const int n = count();  // raises in a forked process
  std::lock_guard lock(mutex);
  const auto entry = devices.find(ordinal);
  if (entry != devices.end()) return *entry->second;
  if (ordinal < 0 || ordinal >= n)
    throw DeviceError("there is no CUDA device " + std::to_string(ordinal) + ": " +
                      std::to_string(n) +
                      " visible. Look at nvidia-smi and CUDA_VISIBLE_DEVICES, "
                      "or use device=\"cpu\".");
  return *(devices[ordinal] = std::unique_ptr<Device>(new Device(ordinal)));
}

Device::Device(int ordinal) {
  const Driver& d = driver();
  check(d.DeviceGet(&handle_, ordinal), "opening the device");
  char name[256] = {};
  check(d.DeviceGetName(name, sizeof name, handle_), "asking for the device's name");
  name_ = name;
  const auto attribute = [&](int which) {
    int value = 0;
    check(d.DeviceGetAttribute(&value, which, handle_), "asking for the device's properties");
    return value;
  };
  architecture_ = 10 * attribute(major_version) + attribute(minor_version);
  multiprocessors_ = attribute(multiprocessor_count);
  shared_bytes_ = static_cast<std::size_t>(attribute(most_shared_bytes));
  check(d.DevicePrimaryCtxRetain(&context_, handle_), "starting the device");
}

std::size_t Device::free_bytes() const {
  Use use(*this);
  std::size_t free = 0, all = 0;
  check(driver().MemGetInfo(&free, &all), "asking for free memory");
  return free;
}

Module Device::module_of(const KernelProgram& program) {
  Module& module = modules_[program.name];
  if (module != nullptr) return module;
  for (const KernelProgram& other : kernel_programs())
    if (std::string_view(other.group) == program.group && !binaries_.contains(other.name) &&
        (&other == &program || !modules_.contains(other.name)))
      binaries_[other.name] = std::async(kept_or_compiled, std::cref(other), architecture_);
  std::future<std::vector<char>> binary = std::move(binaries_[program.name]);
  binaries_.erase(program.name);
  check(driver().ModuleLoadData(&module, binary.get().data()), "loading the kernels");
  return module;
}

Function Device::kernel(const char* name, std::size_t shared_bytes) {
  std::lock_guard lock(mutex_);
  Kernel& kernel = kernels_[name];
  if (kernel.function == nullptr) {
    const Module module = module_of(program_of(name));
    check(driver().ModuleGetFunction(&kernel.function, module, name), "finding a kernel");
  }
  if (shared_bytes > kernel.shared_bytes) {  // never less: other fits use the kernel, too
    check(driver().FuncSetAttribute(kernel.function, shared_bytes_of_kernel,
                                    static_cast<int>(shared_bytes)),
          "reserving shared memory");
    kernel.shared_bytes = shared_bytes;
  }
  return kernel.function;
}

Device::Use::Use(const Device& device) {
  check(driver().CtxPushCurrent(device.context_), "using the device");
}

Device::Use::~Use() {
  Context ignored;
  release([&](const Driver& d) { d.CtxPopCurrent(&ignored); });
}

Address take_memory(std::size_t bytes) {
  Address address = 0;
  const Result result = driver().MemAlloc(&address, bytes);
  constexpr Result out_of_memory = 2;
  if (result == out_of_memory) {
    std::size_t free = 0, all = 0;
    driver().MemGetInfo(&free, &all);
    throw DeviceError("the CUDA device is out of memory: " + std::to_string(bytes >> 20) +
                      " MiB were asked for, and " + std::to_string(free >> 20) + " of " +
                      std::to_string(all >> 20) +
                      " MiB are free. Use fewer rows or features, another device, or "
                      "device=\"cpu\".");
  }
  check(result, "reserving memory");
  return address;
}

void give_memory_back(Address address) {
  release([=](const Driver& d) { d.MemFree(address); });
}

std::byte* PinnedBytes::buffer(std::size_t bytes) {
  if (bytes > size_) {
    if (data_ != nullptr) driver().MemFreeHost(data_);
    data_ = nullptr;
    size_ = 0;
    check(driver().MemHostAlloc(&data_, bytes, 0), "reserving host memory");
    size_ = bytes;
  }
  return static_cast<std::byte*>(data_);
}

PinnedBytes::~PinnedBytes() {
  if (data_ != nullptr) release([this](const Driver& d) { d.MemFreeHost(data_); });
}

Queue::Queue() {
  constexpr unsigned beside_others = 1;
  check(driver().StreamCreate(&stream_, beside_others), "starting a queue");
}

Queue::~Queue() {
  if (stream_ != nullptr) release([this](const Driver& d) { d.StreamDestroy(stream_); });
}

void Queue::launch_with(Function kernel, Grid blocks, unsigned threads, std::size_t shared_bytes,
                        void** args) {
  if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0) return;  // of no rows
  check(driver().LaunchKernel(kernel, static_cast<unsigned>(blocks.x),
                              static_cast<unsigned>(blocks.y), static_cast<unsigned>(blocks.z),
                              threads, 1, 1, static_cast<unsigned>(shared_bytes), stream_, args,
                              nullptr),
        "a launch");
}

void Queue::copy_in(const void* from, std::size_t bytes, Address to) {
  if (bytes > 0) check(driver().MemcpyHtoDAsync(to, from, bytes, stream_), "a copy to the device");
}

void Queue::copy_out(Address from, std::size_t bytes, void* to) {
  if (bytes > 0)
    check(driver().MemcpyDtoHAsync(to, from, bytes, stream_), "a copy from the device");
}

void Queue::fill(Address at, std::size_t bytes, unsigned char value) {
  if (bytes > 0) check(driver().MemsetD8Async(at, value, bytes, stream_), "filling memory");
}

void Queue::wait() {
  check(driver().StreamSynchronize(stream_), "work");
}

Answer Queue::ask() {
  std::byte* flag_bytes = flag_.buffer(sizeof ticket_);
  auto* flag = reinterpret_cast<std::uint32_t*>(flag_bytes);
  if (ticket_ == 0) *flag = 0;
  return {flag, ++ticket_};
}

void Queue::await(const Answer& answer) {
  const std::atomic_ref<std::uint32_t> flag(*answer.flag);
  const auto is_given = [&] {
    const std::uint32_t seen = flag.load(std::memory_order_acquire);
    return static_cast<std::int32_t>(seen - answer.ticket) >= 0;
  };
  constexpr int looks = 1 << 12;
  constexpr Result not_ready = 600;
  for (Result state = not_ready; state == not_ready; state = driver().StreamQuery(stream_)) {
    for (int i = 0; i < looks; ++i)
      if (is_given()) return;
  }
  wait();  // a kernel has failed, or has answered by now
  if (!is_given()) throw DeviceError("a kernel of the CUDA device gave no answer");
}

void wait_for(std::uint64_t stream) {
  check(driver().StreamSynchronize(reinterpret_cast<Stream>(stream)), "work of another package");
}

int device_of(Address address) {
  constexpr int device_ordinal = 9;
  int ordinal = 0;
  check(driver().PointerGetAttribute(&ordinal, device_ordinal, address),
        "asking for the device of an array");
  return ordinal;
}

}  // namespace arboost::cuda
