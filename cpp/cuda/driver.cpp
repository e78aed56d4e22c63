// Loads both libraries by name at first use. Nothing here runs on a device.
#include "cuda/driver.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>

#if defined(_WIN32)
#include <process.h>
#include <windows.h>
#else
#include <dlfcn.h>
#include <unistd.h>
#endif

namespace arboost::cuda {
namespace {

constexpr int oldest_driver = 12000;  // 1000 * major + 10 * minor

void* open_library(const char* name) {
#if defined(_WIN32)
  return reinterpret_cast<void*>(LoadLibraryA(name));
#else
  return dlopen(name, RTLD_NOW | RTLD_LOCAL);
#endif
}

void* symbol(void* library, const char* name) {
#if defined(_WIN32)
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(library), name));
#else
  return dlsym(library, name);
#endif
}

// Sets a pointer to the function of a library; false if it has none of that name.
template <class Pointer>
bool find(void* library, const char* name, Pointer& to) {
  void* const address = symbol(library, name);
  std::memcpy(&to, &address, sizeof address);
  return address != nullptr;
}

#if defined(_WIN32)
constexpr const char* driver_name = "nvcuda.dll";
#else
constexpr const char* driver_name = "libcuda.so.1";
#endif

Driver load_driver() {
  void* const library = open_library(driver_name);
  if (library == nullptr)
    throw DeviceError(std::string("there is no CUDA driver here (") + driver_name +
                      " was not found). Install NVIDIA's driver, or use device=\"cpu\".");
  Driver d{};
  const auto take = [&](const char* name, auto& pointer) {
    if (!find(library, name, pointer))
      throw DeviceError(std::string("the CUDA driver is too old: it has no ") + name +
                        ". Install a driver for CUDA 12 or later, or use device=\"cpu\".");
  };
  take("cuInit", d.Init);
  take("cuDriverGetVersion", d.DriverGetVersion);
  take("cuGetErrorString", d.GetErrorString);
  take("cuDeviceGetCount", d.DeviceGetCount);
  take("cuDeviceGet", d.DeviceGet);
  take("cuDeviceGetName", d.DeviceGetName);
  take("cuDeviceGetAttribute", d.DeviceGetAttribute);
  take("cuDevicePrimaryCtxRetain", d.DevicePrimaryCtxRetain);
  take("cuCtxPushCurrent_v2", d.CtxPushCurrent);
  take("cuCtxPopCurrent_v2", d.CtxPopCurrent);
  take("cuMemGetInfo_v2", d.MemGetInfo);
  take("cuPointerGetAttribute", d.PointerGetAttribute);
  take("cuMemAlloc_v2", d.MemAlloc);
  take("cuMemFree_v2", d.MemFree);
  take("cuMemHostAlloc", d.MemHostAlloc);
  take("cuMemFreeHost", d.MemFreeHost);
  take("cuMemcpyHtoDAsync_v2", d.MemcpyHtoDAsync);
  take("cuMemcpyDtoHAsync_v2", d.MemcpyDtoHAsync);
  take("cuMemsetD8Async", d.MemsetD8Async);
  take("cuStreamCreate", d.StreamCreate);
  take("cuStreamDestroy_v2", d.StreamDestroy);
  take("cuStreamSynchronize", d.StreamSynchronize);
  take("cuStreamQuery", d.StreamQuery);
  take("cuModuleLoadData", d.ModuleLoadData);
  take("cuModuleGetFunction", d.ModuleGetFunction);
  take("cuFuncSetAttribute", d.FuncSetAttribute);
  take("cuLaunchKernel", d.LaunchKernel);
  const Result started = d.Init(0);
  const char* reason = nullptr;
  if (started != 0) d.GetErrorString(started, &reason);
  if (started != 0)
    throw DeviceError(std::string("the CUDA driver does not start: ") +
                      (reason == nullptr ? "unknown error" : reason) +
                      ". Look at nvidia-smi and CUDA_VISIBLE_DEVICES, or use device=\"cpu\".");
  int version = 0;
  d.DriverGetVersion(&version);
  if (version < oldest_driver)
    throw DeviceError("the CUDA driver is for CUDA " + std::to_string(version / 1000) + "." +
                      std::to_string(version % 1000 / 10) +
                      ", but 12.0 or later is needed. Install a newer driver, or use "
                      "device=\"cpu\".");
  return d;
}

struct Compiler {
  int (*Version)(int*, int*);
  int (*GetNumSupportedArchs)(int*);
  int (*GetSupportedArchs)(int*);
  int (*CreateProgram)(Program*, const char*, const char*, int, const char* const*,
                       const char* const*);
  int (*CompileProgram)(Program, int, const char* const*);
  int (*GetCUBINSize)(Program, std::size_t*);
  int (*GetCUBIN)(Program, char*);
  int (*GetPTXSize)(Program, std::size_t*);
  int (*GetPTX)(Program, char*);
  int (*GetProgramLogSize)(Program, std::size_t*);
  int (*GetProgramLog)(Program, char*);
  int (*DestroyProgram)(Program*);
};

#if defined(_WIN32)
constexpr const char* compiler_names[] = {"nvrtc64_130_0.dll", "nvrtc64_120_0.dll"};
#else
constexpr const char* compiler_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
#endif

Compiler load_compiler(std::span<const std::string> paths) {
  void* library = nullptr;
  for (const std::string& path : paths)
    if (library == nullptr) library = open_library(path.c_str());
  for (const char* name : compiler_names)
    if (library == nullptr) library = open_library(name);
  if (library == nullptr) throw MissingCompiler();
  Compiler c{};
  if (!find(library, "nvrtcVersion", c.Version) ||
      !find(library, "nvrtcGetNumSupportedArchs", c.GetNumSupportedArchs) ||
      !find(library, "nvrtcGetSupportedArchs", c.GetSupportedArchs) ||
      !find(library, "nvrtcCreateProgram", c.CreateProgram) ||
      !find(library, "nvrtcCompileProgram", c.CompileProgram) ||
      !find(library, "nvrtcGetCUBINSize", c.GetCUBINSize) ||
      !find(library, "nvrtcGetCUBIN", c.GetCUBIN) ||
      !find(library, "nvrtcGetPTXSize", c.GetPTXSize) || !find(library, "nvrtcGetPTX", c.GetPTX) ||
      !find(library, "nvrtcGetProgramLogSize", c.GetProgramLogSize) ||
      !find(library, "nvrtcGetProgramLog", c.GetProgramLog) ||
      !find(library, "nvrtcDestroyProgram", c.DestroyProgram))
    throw DeviceError("the CUDA run-time compiler (NVRTC) is too old: install that of CUDA 12");
  return c;
}

// The newest architecture up to this one that the compiler knows; 0: none.
int newest_known(const Compiler& c, int architecture) {
  int n = 0, newest = 0;
  if (c.GetNumSupportedArchs(&n) != 0) return 0;
  std::vector<int> known(static_cast<std::size_t>(n));
  if (c.GetSupportedArchs(known.data()) != 0) return 0;
  for (const int k : known)
    if (k <= architecture) newest = std::max(newest, k);
  return newest;
}

}  // namespace

const Driver& driver() {
  static std::mutex mutex;
  static std::optional<Driver> loaded;  // only once it works: a driver may be installed later
  static long process = 0;
  std::lock_guard lock(mutex);
  if (!loaded) {
    loaded = load_driver();
    process = process_id();
  }
  if (process != process_id())
    throw DeviceError(
        "CUDA was used before this process was forked, and does not survive that. Start worker "
        "processes with \"spawn\" or \"forkserver\", or use device=\"cpu\" in them.");
  return *loaded;
}

long process_id() {
#if defined(_WIN32)
  return _getpid();
#else
  return getpid();
#endif
}

void check(Result result, const char* what) {
  if (result == 0) return;
  const char* reason = nullptr;
  driver().GetErrorString(result, &reason);
  throw DeviceError(std::string(what) + " failed on the CUDA device: " +
                    (reason == nullptr ? "error " + std::to_string(result) : reason));
}

int compiler_version(std::span<const std::string> compilers) {
  int major = 0, minor = 0;
  load_compiler(compilers).Version(&major, &minor);
  return 1000 * major + 10 * minor;
}

std::vector<char> compile(const char* source, std::span<const Header> headers,
                          std::span<const std::string> options, int architecture,
                          std::span<const std::string> compilers) {
  const Compiler c = load_compiler(compilers);

  std::vector<const char*> names, texts, flags;
  for (const Header& header : headers) {
    names.push_back(header.name);
    texts.push_back(header.text);
  }
  std::vector<std::string> all(options.begin(), options.end());
  const int newest = newest_known(c, architecture);
  const bool translates = newest != 0 && newest != architecture;
  all.push_back("--gpu-architecture=" + (translates ? "compute_" + std::to_string(newest)
                                                    : "sm_" + std::to_string(architecture)));
  for (const std::string& option : all) flags.push_back(option.c_str());

  Program program = nullptr;
  if (c.CreateProgram(&program, source, "arboost.cu", static_cast<int>(headers.size()),
                      texts.data(), names.data()) != 0)
    throw DeviceError("the CUDA run-time compiler does not start");
  const int result = c.CompileProgram(program, static_cast<int>(flags.size()), flags.data());
  std::vector<char> binary;
  std::size_t size = 0;
  std::string report;
  if (result != 0 && c.GetProgramLogSize(program, &size) == 0 && size > 0) {
    report.resize(size);
    c.GetProgramLog(program, report.data());
  }
  if (result == 0 && (translates ? c.GetPTXSize : c.GetCUBINSize)(program, &size) == 0) {
    binary.resize(size);
    (translates ? c.GetPTX : c.GetCUBIN)(program, binary.data());
  }
  c.DestroyProgram(&program);
  if (result != 0) throw DeviceError("the kernels do not compile:\n" + report);
  return binary;
}

}  // namespace arboost::cuda
