// Bindings of CUDA devices, and of arrays in their memory.
#include "bindings/common.h"
#include "cuda/device.h"
#include "cuda/kernel_sources.h"
#include "cuda/staging.h"

namespace arboost::bindings {
namespace {

// An array that another package exports by DLPack, alive as long as this object.
class DlpackArray {
 public:
  explicit DlpackArray(nb::handle capsule)
      : array_(nb::cast<nb::ndarray<nb::ro>>(capsule, false)) {}

  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(array_.data()); }
  std::vector<std::int64_t> shape() const {
    return {array_.shape_ptr(), array_.shape_ptr() + array_.ndim()};
  }
  // In bytes.
  std::vector<std::int64_t> strides() const {
    std::vector<std::int64_t> strides;
    for (std::size_t i = 0; i < array_.ndim(); ++i)
      strides.push_back(array_.stride(i) * static_cast<std::int64_t>(array_.itemsize()));
    return strides;
  }
  // Kind and bytes, as NumPy has them: "f4"; kind V for types that it has no number for.
  std::string dtype() const { return kind_of(array_.dtype()) + std::to_string(array_.itemsize()); }
  int device_type() const { return array_.device_type(); }
  int device() const { return array_.device_id(); }

 private:
  nb::ndarray<nb::ro> array_;
};

nb::dlpack::dtype dlpack_type(char kind, std::size_t bytes) {
  nb::dlpack::dtype type{};
  using Code = nb::dlpack::dtype_code;
  type.code = static_cast<std::uint8_t>(kind == 'f'   ? Code::Float
                                        : kind == 'i' ? Code::Int
                                        : kind == 'u' ? Code::UInt
                                                      : Code::Bool);
  type.bits = static_cast<std::uint8_t>(8 * bytes);
  type.lanes = 1;
  return type;
}

nb::object dlpack_capsule(std::uintptr_t address, const std::vector<std::size_t>& shape,
                          const std::vector<std::int64_t>& strides, const std::string& kind,
                          std::size_t bytes, int device, nb::handle owner) {
  require(kind.size() == 1 && bytes > 0 && strides.size() == shape.size(),
          "a DLPack capsule of other arguments");
  std::vector<std::int64_t> steps;  // in elements
  for (const std::int64_t stride : strides)
    steps.push_back(stride / static_cast<std::int64_t>(bytes));
  nb::ndarray<> array(reinterpret_cast<void*>(address), shape.size(), shape.data(), owner,
                      steps.data(), dlpack_type(kind[0], bytes), nb::device::cuda::value, device);
  return array.cast();
}

void copy_from_cuda(
    std::uint64_t address, int device,
    const nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& out) {
  GilRelease release;
  cuda::Device& from = cuda::Device::number(device);
  cuda::Device::Use use(from);
  cuda::download_staged(from, address, out.size(), out.data());
}

void copy_to_cuda(const Vector<std::uint8_t>& bytes, std::uint64_t address, int device) {
  GilRelease release;
  cuda::Device& to = cuda::Device::number(device);
  cuda::Device::Use use(to);
  cuda::upload_staged(to, bytes.data(), bytes.size(), address);
}

void wait_for_cuda_stream(std::uint64_t stream, int device) {
  GilRelease release;
  cuda::Device::Use use(device);
  cuda::wait_for(stream);
}

}  // namespace

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

  nb::class_<cuda::OwnedBytes>(m, "CudaMemory", "Memory of a CUDA device, freed with the object.")
      .def(nb::init<std::size_t, int>(), "bytes"_a, "device"_a)
      .def_prop_ro("address", &cuda::OwnedBytes::address);
  nb::class_<DlpackArray>(m, "DlpackArray", "An array that a DLPack capsule holds.")
      .def(nb::init<nb::handle>(), "capsule"_a)
      .def_prop_ro("address", &DlpackArray::address)
      .def_prop_ro("shape", &DlpackArray::shape)
      .def_prop_ro("strides", &DlpackArray::strides, "In bytes.")
      .def_prop_ro("dtype", &DlpackArray::dtype, "Kind and bytes, such as \"f4\".")
      .def_prop_ro("device_type", &DlpackArray::device_type)
      .def_prop_ro("device", &DlpackArray::device);
  m.def("dlpack_capsule", &dlpack_capsule, "address"_a, "shape"_a, "strides"_a, "kind"_a, "bytes"_a,
        "device"_a, "owner"_a,
        "DLPack capsule of an array in device memory. `strides` are in bytes; `kind` and `bytes` "
        "are those of an element, as NumPy has them.");
  m.def("copy_from_cuda", &copy_from_cuda, "address"_a, "device"_a, "out"_a.noconvert(),
        "Copies device memory to the host.");
  m.def("copy_to_cuda", &copy_to_cuda, "bytes"_a.noconvert(), "address"_a, "device"_a,
        "Copies memory of the host to a device.");
  m.def("wait_for_cuda_stream", &wait_for_cuda_stream, "stream"_a, "device"_a,
        "Waits until the work of a stream is done: its handle; 1 for the default stream.");
  m.def("cuda_device_of", &cuda::device_of, "address"_a,
        "Number of the device that an address belongs to.");
}

}  // namespace arboost::bindings
