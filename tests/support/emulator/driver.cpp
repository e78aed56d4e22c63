// The functions of CUDA's driver and run-time compiler that the core calls, on the processor.
//
// Memory is the host's: new memory holds garbage, and the bytes around an allocation are checked
// when it is freed. Work is done when it is asked for.
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>  // prev
#include <map>
#include <mutex>
#include <string>

#include "kernel_words.h"
// All kernels.
#include "cuda/programs/all.cu"
#include "races.cu"

namespace {

using Call = void (*)(void**);

template <auto kernel>
struct Arguments;
template <class... Args, void (*kernel)(Args...)>
struct Arguments<kernel> {
  static void call(void** args) { unpack(args, std::index_sequence_for<Args...>{}); }
  template <std::size_t... i>
  static void unpack(void** args, std::index_sequence<i...>) {
    kernel(*static_cast<Args*>(args[i])...);
  }
};

const std::map<std::string, Call> kernels = {
#define KERNEL(name) {#name, Arguments<&name>::call},
#include "kernels.inc"
};

constexpr int ok = 0, out_of_memory = 2, no_device = 100, invalid_image = 200, not_found = 500,
              launch_failed = 719;
constexpr std::size_t margin = 256;
constexpr unsigned char margin_byte = 0xe5, garbage = 0xcd;

std::mutex mutex;
std::map<std::uint64_t, std::size_t> allocations;
std::size_t used = 0, limit = std::size_t{4} << 30;
long calls_left = -1;  // until the device is lost; negative: never
std::atomic<int> compilations = 0;
std::atomic<std::size_t> sent = 0, fetched = 0;  // bytes

int number_of(const char* setting, int usual) {
  const char* given = std::getenv(setting);
  return given == nullptr ? usual : std::atoi(given);
}

bool is_lost() {
  std::lock_guard lock(mutex);
  if (calls_left > 0) --calls_left;
  return calls_left == 0;
}

void check_margin(const unsigned char* bytes) {
  for (std::size_t i = 0; i < margin; ++i)
    if (bytes[i] != margin_byte) {
      std::fprintf(stderr, "emulator: a kernel wrote outside of an array\n");
      std::abort();
    }
}

}  // namespace

extern "C" {

// For tests.
void emulator_set_memory(std::size_t bytes) {
  limit = bytes;
}
std::size_t emulator_used_memory() {
  return used;
}
void emulator_lose_device_after(long n_calls) {
  calls_left = n_calls;
}
void emulator_shuffle(unsigned seed) {
  emulator::shuffle(seed);
}

std::size_t emulator_sent_bytes() {
  return sent;
}
std::size_t emulator_fetched_bytes() {
  return fetched;
}

int cuInit(unsigned) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible != nullptr && *visible == 0 ? no_device : ok;
}
int cuDriverGetVersion(int* version) {
  return *version = number_of("EMULATOR_DRIVER", 12080), ok;
}
int cuGetErrorString(int error, const char** text) {
  *text = error == out_of_memory   ? "out of memory"
          : error == no_device     ? "no CUDA-capable device is detected"
          : error == launch_failed ? "unspecified launch failure"
                                   : "unknown error";
  return ok;
}
int cuDeviceGetCount(int* n) {
  return *n = number_of("EMULATOR_DEVICES", 2), ok;
}
int cuDeviceGet(int* device, int number) {
  return *device = number, ok;
}
int cuDeviceGetName(char* name, int size, int) {
  return std::snprintf(name, static_cast<std::size_t>(size), "emulated device"), ok;
}
int cuDeviceGetAttribute(int* value, int which, int) {
  *value = which == 16 ? 2 : which == 75 ? 9 : which == 76 ? 0 : which == 97 ? 232448 : 0;
  return ok;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  return *context = reinterpret_cast<void*>(std::uintptr_t{1} + device), ok;
}
int cuCtxPushCurrent_v2(void*) {
  return ok;
}
int cuCtxPopCurrent_v2(void**) {
  return ok;
}
int cuMemGetInfo_v2(std::size_t* free, std::size_t* all) {
  std::lock_guard lock(mutex);
  *free = limit > used ? limit - used : 0;
  *all = limit;
  return ok;
}
int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
  if (is_lost()) return launch_failed;
  std::lock_guard lock(mutex);
  if (used + bytes > limit) return out_of_memory;
  auto* memory = static_cast<unsigned char*>(
      std::aligned_alloc(margin, (bytes + 3 * margin - 1) / margin * margin));
  if (memory == nullptr) return out_of_memory;
  std::memset(memory, margin_byte, margin);
  std::memset(memory + margin, garbage, bytes);
  std::memset(memory + margin + bytes, margin_byte, margin);
  *address = reinterpret_cast<std::uint64_t>(memory + margin);
  allocations[*address] = bytes;
  used += bytes;
  return ok;
}
int cuMemFree_v2(std::uint64_t address) {
  std::lock_guard lock(mutex);
  const auto found = allocations.find(address);
  if (found == allocations.end()) return 1;
  auto* memory = reinterpret_cast<unsigned char*>(address);
  check_margin(memory - margin);
  check_margin(memory + found->second);
  used -= found->second;
  allocations.erase(found);
  std::free(memory - margin);
  return ok;
}
int cuPointerGetAttribute(void* value, int which, std::uint64_t address) {
  constexpr int device_ordinal = 9;
  std::lock_guard lock(mutex);
  const auto after = allocations.upper_bound(address);
  if (which != device_ordinal || after == allocations.begin()) return 1;
  const auto& [begin, bytes] = *std::prev(after);
  return *static_cast<int*>(value) = 0, address < begin + bytes ? ok : 1;
}
int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  *memory = std::malloc(bytes);
  return *memory == nullptr ? out_of_memory : ok;
}
int cuMemFreeHost(void* memory) {
  return std::free(memory), ok;
}
int cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, std::size_t bytes, void*) {
  if (is_lost()) return launch_failed;
  sent += bytes;
  return std::memcpy(reinterpret_cast<void*>(to), from, bytes), ok;
}
int cuMemcpyDtoHAsync_v2(void* to, std::uint64_t from, std::size_t bytes, void*) {
  if (is_lost()) return launch_failed;
  fetched += bytes;
  return std::memcpy(to, reinterpret_cast<const void*>(from), bytes), ok;
}
int cuMemcpyDtoDAsync_v2(std::uint64_t to, std::uint64_t from, std::size_t bytes, void*) {
  if (is_lost()) return launch_failed;
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return ok;
}
int cuMemsetD8Async(std::uint64_t at, unsigned char value, std::size_t bytes, void*) {
  return std::memset(reinterpret_cast<void*>(at), value, bytes), ok;
}
int cuStreamCreate(void** stream, unsigned) {
  return *stream = &mutex, ok;
}
int cuStreamDestroy_v2(void*) {
  return ok;
}
int cuStreamSynchronize(void*) {
  return is_lost() ? launch_failed : ok;
}
int cuStreamQuery(void*) {
  return is_lost() ? launch_failed : ok;
}
int cuModuleLoadData(void** module, const void* image) {
  const std::string code = static_cast<const char*>(image);
  if (code != "code for sm_90" && !code.starts_with("code for compute_")) return invalid_image;
  return *module = &mutex, ok;
}
int cuModuleGetFunction(const void** function, void*, const char* name) {
  const auto found = kernels.find(name);
  if (found == kernels.end()) return not_found;
  return *function = reinterpret_cast<const void*>(found->second), ok;
}
int cuFuncSetAttribute(void*, int, int) {
  return ok;
}
int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   void*, void** args, void**) {
  if (is_lost()) return launch_failed;
  if (grid_x == 0 || grid_y == 0 || grid_z == 0 || grid_y > 65535 || grid_z > 65535 ||
      block_x * block_y * block_z > 1024 || block_x * block_y * block_z == 0)
    return 1;
  const auto call = reinterpret_cast<Call>(function);
  const bool ended = emulator::run({grid_x, grid_y, grid_z}, {block_x, block_y, block_z},
                                   shared_bytes, [&] { call(args); });
  return ended ? ok : launch_failed;
}

int nvrtcVersion(int* major, int* minor) {
  const int version = number_of("EMULATOR_COMPILER", 13000);
  return *major = version / 1000, *minor = version % 1000 / 10, 0;
}
int nvrtcGetNumSupportedArchs(int* n) {
  return *n = 2, 0;
}
int nvrtcGetSupportedArchs(int* architectures) {
  architectures[0] = 75;
  return architectures[1] = number_of("EMULATOR_ARCHITECTURE", 90), 0;
}
int nvrtcCreateProgram(void** program, const char*, const char*, int, const char* const*,
                       const char* const*) {
  return *program = new std::string, 0;
}
int nvrtcCompileProgram(void* program, int n, const char* const* options) {
  ++compilations;
  const std::string option = "--gpu-architecture=";
  for (int i = 0; i < n; ++i)
    if (std::string(options[i]).starts_with(option))
      *static_cast<std::string*>(program) = "code for " + std::string(options[i] + option.size());
  return 0;
}
int nvrtcGetCUBINSize(void* program, std::size_t* size) {
  return *size = static_cast<std::string*>(program)->size() + 1, 0;
}
int nvrtcGetCUBIN(void* program, char* binary) {
  return std::strcpy(binary, static_cast<std::string*>(program)->c_str()), 0;
}
int nvrtcGetPTXSize(void* program, std::size_t* size) {
  return nvrtcGetCUBINSize(program, size);
}
int nvrtcGetPTX(void* program, char* text) {
  return nvrtcGetCUBIN(program, text);
}
int emulator_compilations() {
  return compilations;
}
int nvrtcGetProgramLogSize(void*, std::size_t* size) {
  return *size = 0, 0;
}
int nvrtcGetProgramLog(void*, char*) {
  return 0;
}
int nvrtcDestroyProgram(void** program) {
  return delete static_cast<std::string*>(*program), 0;
}
}
