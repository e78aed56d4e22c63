// Bindings of arrays in the memory of CUDA devices. No kernels.

#include <memory>

#include "bindings/common.h"
#include "cuda/device.h"
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

void bind_cuda_arrays(nb::module_& m) {
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
