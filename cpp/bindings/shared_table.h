// Python's table of shared rows, and its workers.
#pragma once

#include "bindings/common.h"
#include "table/shared_codes.h"

namespace arboost::bindings {

// Workers that exchange messages through methods of a Python object, `send` and `receive`.
class PythonWorkers final : public Collective {
 public:
  PythonWorkers(nb::object transport, std::size_t rank, std::size_t size);

  std::size_t size() const override { return size_; }
  std::size_t rank() const override { return rank_; }
  using Collective::exchange;
  const std::vector<Bytes>& exchange(std::span<const View> messages) override;

 private:
  nb::object transport_;
  std::size_t rank_, size_;
  std::vector<Bytes> received_;
};

// Shared codes with the Python objects that they refer to.
struct SharedTable {
  SharedTable(nb::object own_codes_, std::size_t first_row, std::size_t n_rows, nb::object workers_,
              std::size_t n_votes);

  nb::object own_codes, workers;
  SharedCodes codes;
};

void bind_shared(nb::module_& m);

}  // namespace arboost::bindings
