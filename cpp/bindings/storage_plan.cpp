// Bindings of storage plans, which workers send to each other.
#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <new>
#include <tuple>
#include <utility>
#include <vector>

#include "bin/codes/plan.h"
#include "bindings/common.h"

namespace arboost::bindings {
namespace {

// (feature, usual code, number of codes) of each share of each digit; sparse features, rows, rate.
using ShareState = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
using PlanState = std::tuple<std::vector<std::vector<ShareState>>, std::vector<std::uint32_t>,
                             std::size_t, double>;

PlanState plan_state(const StoragePlan& plan) {
  std::vector<std::vector<ShareState>> digits;
  for (const DigitPlan& digit : plan.digits) {
    digits.emplace_back();
    for (const Share& share : digit.shares)
      digits.back().emplace_back(share.feature, share.usual, share.n_codes);
  }
  return {std::move(digits), plan.sparse, plan.n_rows, plan.max_conflict_rate};
}

// Part by part: the casters of tuples are noexcept.
void set_plan_state(StoragePlan& plan, const nb::tuple& state) {
  StoragePlan restored{{},
                       nb::cast<std::vector<std::uint32_t>>(state[1]),
                       nb::cast<std::size_t>(state[2]),
                       nb::cast<double>(state[3])};
  for (const auto& digit : nb::cast<std::vector<std::vector<ShareState>>>(state[0])) {
    DigitPlan& digit_plan = restored.digits.emplace_back();
    for (const auto& [feature, usual, n_codes] : digit)
      digit_plan.shares.push_back({feature, usual, n_codes});
  }
  new (&plan) StoragePlan(std::move(restored));
}

}  // namespace

void bind_storage_plan(nb::module_& m) {
  nb::class_<StoragePlan>(m, "StoragePlan", "Features that share stored columns.")
      .def(nb::init<>(), "A plan that gives every feature a stored column of its own.")
      .def_prop_ro(
          "digits",
          [](const StoragePlan& plan) {
            std::vector<std::vector<std::uint32_t>> digits;
            for (const DigitPlan& digit : plan.digits) {
              digits.emplace_back();
              for (const Share& share : digit.shares) digits.back().push_back(share.feature);
            }
            return digits;
          },
          "Features that are one digit each; several of them are a bundle.")
      .def_prop_ro("sparse", [](const StoragePlan& plan) { return plan.sparse; })
      .def("__getstate__", &plan_state)
      .def("__setstate__", &set_plan_state);
}

}  // namespace arboost::bindings
