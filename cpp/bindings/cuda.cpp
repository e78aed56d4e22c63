// Bindings of CUDA devices.

#include "bindings/common.h"
#include "cuda/device.h"
#include "cuda/kernel_sources.h"

namespace arboost::bindings {

constexpr const char* compiler_package = "nvidia-cuda-nvrtc-cu12";  // of the extra "cuda"

void bind_cuda(nb::module_& m) {
  nb::register_exception_translator(
      [](const std::exception_ptr& error, void*) {
        try {
          std::rethrow_exception(error);
        } catch (const cuda::MissingCompiler&) {
          const nb::object type =
              nb::module_::import_("arboost.errors").attr("MissingCompilerError");
          PyErr_SetObject(type.ptr(), type("device=\"cuda\"", compiler_package, "cuda").ptr());
        } catch (const cuda::DeviceError& device_error) {
          PyErr_SetString(nb::module_::import_("arboost.errors").attr("DeviceError").ptr(),
                          device_error.what());
        }
      },
      nullptr);
  m.def(
      "set_cuda_places",
      [](std::vector<std::string> compilers, std::string cache) {
        cuda::set_places({std::move(compilers), std::move(cache)});
      },
      "compilers"_a, "cache"_a,
      "Sets the paths of the run-time compiler, tried in turn, and the folder of compiled "
      "kernels.");
  m.def(
      "cuda_devices",
      [] {
        std::vector<std::string> names;
        for (int ordinal = 0; ordinal < cuda::Device::count(); ++ordinal)
          names.push_back(cuda::Device::number(ordinal).name());
        return names;
      },
      "Names of the CUDA devices; raises DeviceError where there is no driver.");
  m.def(
      "cuda_programs",
      [] {
        nb::dict programs;
        for (const cuda::KernelProgram& program : cuda::kernel_programs()) {
          nb::list kernels;
          for (const char* kernel : program.kernels) kernels.append(kernel);
          programs[program.name] = kernels;
        }
        return programs;
      },
      "Names of the programs of kernels, and of the kernels of each.");
  m.def(
      "compile_cuda_program",
      [](const std::string& program, int architecture) {
        const std::vector<char> binary = cuda::compiled_program(program, architecture);
        return nb::bytes(binary.data(), binary.size());
      },
      "program"_a, "architecture"_a,
      "Machine code of a program's kernels for an architecture such as 90; needs no device. Raises "
      "DeviceError where there is no run-time compiler, or a kernel does not compile.");
}

}  // namespace arboost::bindings
