// Bindings of pruning.
#include "grow/trees/prune.h"

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bindings/common.h"

namespace arboost::bindings {
namespace {

using Order = std::tuple<Owned<std::int32_t>, Owned<double>, Owned<double>>;

Order order_of(const Vector<std::int32_t>& left, const Vector<double>& decrease) {
  PruneOrder order = without_gil([&] { return prune_order(span_of(left), span_of(decrease)); });
  return {to_numpy(std::move(order.node)), to_numpy(std::move(order.alpha)),
          to_numpy(std::move(order.kept))};
}

}  // namespace

void bind_prune(nb::module_& m) {
  m.def("prune_order", &order_of, "left"_a, "decrease"_a,
        "Nodes of a tree in the order in which they become leaves, the alpha of each, and the sum "
        "of the decreases of all splits before each step and after the last.");
}

}  // namespace arboost::bindings
