// CUDA's driver and run-time compiler, loaded when a device is first asked for: neither is needed
// to build or to import the core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace arboost::cuda {

// A device that cannot be used, or a call to it that failed; becomes arboost.DeviceError.
struct DeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The run-time compiler is not installed; becomes arboost.errors.MissingCompilerError.
struct MissingCompiler : DeviceError {
  MissingCompiler() : DeviceError("the run-time compiler of CUDA (NVRTC) is not installed") {}
};

// Handles of the driver.
using Result = int;
using Address = std::uint64_t;  // of device memory
using Context = struct ContextHandle*;
using Stream = struct StreamHandle*;
using Module = struct ModuleHandle*;
using Function = struct FunctionHandle*;
using Program = struct ProgramHandle*;

// Functions of the driver, by their names there without prefix and version.
struct Driver {
  Result (*Init)(unsigned);
  Result (*DriverGetVersion)(int*);
  Result (*GetErrorString)(Result, const char**);
  Result (*DeviceGetCount)(int*);
  Result (*DeviceGet)(int*, int);
  Result (*DeviceGetName)(char*, int, int);
  Result (*DeviceGetAttribute)(int*, int, int);
  Result (*DevicePrimaryCtxRetain)(Context*, int);
  Result (*CtxPushCurrent)(Context);
  Result (*CtxPopCurrent)(Context*);
  Result (*MemGetInfo)(std::size_t*, std::size_t*);
  Result (*PointerGetAttribute)(void*, int, Address);
  Result (*MemAlloc)(Address*, std::size_t);
  Result (*MemFree)(Address);
  Result (*MemHostAlloc)(void**, std::size_t, unsigned);
  Result (*MemFreeHost)(void*);
  Result (*MemcpyHtoDAsync)(Address, const void*, std::size_t, Stream);
  Result (*MemcpyDtoHAsync)(void*, Address, std::size_t, Stream);
  Result (*MemsetD8Async)(Address, unsigned char, std::size_t, Stream);
  Result (*StreamCreate)(Stream*, unsigned);
  Result (*StreamDestroy)(Stream);
  Result (*StreamSynchronize)(Stream);
  Result (*StreamQuery)(Stream);
  Result (*ModuleLoadData)(Module*, const void*);
  Result (*ModuleGetFunction)(Function*, Module, const char*);
  Result (*FuncSetAttribute)(Function, int, int);
  Result (*LaunchKernel)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned, Stream, void**, void**);
};

// The driver of this machine. Throws DeviceError where there is none, it is too old, or the process
// was forked since.
const Driver& driver();

long process_id();

// Throws DeviceError unless a call of the driver has succeeded; `what` says what it was for.
void check(Result result, const char* what);

// A header that kernels include by its name.
struct Header {
  const char* name;
  const char* text;
};

// Version of the run-time compiler, 1000 * major + 10 * minor. `compilers` are paths of NVRTC,
// tried in turn before the names that the system's loader finds.
int compiler_version(std::span<const std::string> compilers);

// Compiles a kernel source for an architecture such as 90; where the compiler is older than that,
// to instructions (PTX) that the driver translates. Throws DeviceError with the compiler's report
// where the source is wrong.
std::vector<char> compile(const char* source, std::span<const Header> headers,
                          std::span<const std::string> options, int architecture,
                          std::span<const std::string> compilers);

}  // namespace arboost::cuda
