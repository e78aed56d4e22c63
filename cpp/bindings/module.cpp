// The module arboost._core: one function for each stage.
#include <nanobind/nanobind.h>

#include "base/parallel.h"
#include "base/require.h"
#include "isa/dispatch.h"

namespace arboost::bindings {

namespace nb = nanobind;

using Bind = void(nb::module_&);
Bind bind_table, bind_text, bind_bin, bind_shared, bind_stream, bind_statistics, bind_loss,
    bind_ranking, bind_sample, bind_grow, bind_reweight, bind_predict, bind_explain, bind_rows,
    bind_save, bind_kernels, bind_cuda, bind_cuda_predict;

// Base classes come before those that derive from them.
constexpr Bind* all_bindings[] = {
    bind_text,    bind_table,   bind_bin,    bind_shared,  bind_stream,   bind_statistics,
    bind_loss,    bind_ranking, bind_sample, bind_grow,    bind_reweight, bind_predict,
    bind_explain, bind_rows,    bind_save,   bind_kernels, bind_cuda,     bind_cuda_predict};

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
  for (arboost::bindings::Bind* bind : arboost::bindings::all_bindings) bind(m);
}
