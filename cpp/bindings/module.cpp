// The module arboost._core: one function for each stage.
#include <nanobind/nanobind.h>

#include "base/limits.h"
#include "base/parallel.h"
#include "isa/dispatch.h"

namespace arboost::bindings {

namespace nb = nanobind;

void bind_table(nb::module_& m);
void bind_arrow(nb::module_& m);
void bind_text(nb::module_& m);
void bind_device_columns(nb::module_& m);
void bind_storage_plan(nb::module_& m);
void bind_bin(nb::module_& m);
void bind_stored(nb::module_& m);
void bind_shared(nb::module_& m);
void bind_stream(nb::module_& m);
void bind_statistics(nb::module_& m);
void bind_sketch(nb::module_& m);
void bind_loss(nb::module_& m);
void bind_ranking(nb::module_& m);
void bind_sample(nb::module_& m);
void bind_grow(nb::module_& m);
void bind_prune(nb::module_& m);
void bind_reweight(nb::module_& m);
void bind_predict(nb::module_& m);
void bind_explain(nb::module_& m);
void bind_rows(nb::module_& m);
void bind_save(nb::module_& m);
void bind_random(nb::module_& m);
void bind_kernels(nb::module_& m);
void bind_partial_dependence(nb::module_& m);
void bind_cuda(nb::module_& m);
void bind_cuda_arrays(nb::module_& m);
void bind_cuda_predict(nb::module_& m);

}  // namespace arboost::bindings

NB_MODULE(_core, m) {
  nanobind::set_leak_warnings(false);  // objects that caches keep until exit are not leaks
  arboost::variant();  // a wrong ARBOOST_ISA is an error of the import, not of a later fit
  m.doc() = "The core of arboost: arrays in, arrays out. Use the package arboost instead.";
  m.attr("most_rows") = arboost::most_rows;
  m.def("version", [] { return ARBOOST_VERSION; }, "Version of the package.");
  m.def("available_threads", &arboost::available_threads,
        "Number of CPUs that this process may use, container limits included.");
  m.def("prepare_exceptions", &arboost::prepare_exceptions,
        "Allocates memory for exceptions of the calling thread; False where there is none.");
  m.def(
      "instruction_set", [] { return arboost::variant().name; },
      "Variant of the kernels on this CPU: baseline, avx2 or avx512.");
  arboost::bindings::bind_text(m);
  arboost::bindings::bind_table(m);
  arboost::bindings::bind_arrow(m);
  arboost::bindings::bind_device_columns(m);
  arboost::bindings::bind_storage_plan(m);
  arboost::bindings::bind_bin(m);
  arboost::bindings::bind_stored(m);
  arboost::bindings::bind_shared(m);
  arboost::bindings::bind_stream(m);
  arboost::bindings::bind_statistics(m);
  arboost::bindings::bind_sketch(m);
  arboost::bindings::bind_loss(m);
  arboost::bindings::bind_ranking(m);
  arboost::bindings::bind_sample(m);
  arboost::bindings::bind_grow(m);
  arboost::bindings::bind_prune(m);
  arboost::bindings::bind_reweight(m);
  arboost::bindings::bind_predict(m);
  arboost::bindings::bind_explain(m);
  arboost::bindings::bind_rows(m);
  arboost::bindings::bind_save(m);
  arboost::bindings::bind_random(m);
  arboost::bindings::bind_kernels(m);
  arboost::bindings::bind_partial_dependence(m);
  arboost::bindings::bind_cuda(m);
  arboost::bindings::bind_cuda_arrays(m);
  arboost::bindings::bind_cuda_predict(m);
}
