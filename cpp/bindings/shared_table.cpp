// Bindings of tables whose rows are divided among workers.
#include "bindings/shared_table.h"

#include <nanobind/stl/optional.h>

#include <cstring>
#include <limits>

#include "bin/codes/take.h"
#include "bin/stream/parts.h"

namespace arboost::bindings {
namespace {

nb::list gather(PythonWorkers& self, const nb::bytes& message) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(message.c_str());
  const std::vector<Collective::Bytes> all = without_gil(
      [&] { return std::vector(self.exchange(Collective::View(bytes, message.size()))); });
  nb::list messages;
  for (std::size_t r = 0; r < all.size(); ++r)
    messages.append(r == self.rank() ? message : nb::bytes(all[r].data(), all[r].size()));
  return messages;
}

// Some rows of the table, ascending, as a table of their own, which the same workers share.
nb::object take(const SharedTable& self, const Vector<RowId>& rows, int n_threads) {
  const std::span<const RowId> ids(rows.data(), rows.shape(0));
  for (std::size_t i = 0; i < ids.size(); ++i)
    require(ids[i] < self.codes.n_rows && (i == 0 || ids[i - 1] < ids[i]),
            "rows must ascend and lie inside the table");
  const SharedCodes::Range local_range = self.codes.own_of(ids);
  Codes taken;
  {
    GilRelease release;
    const std::vector<RowId> local =
        self.codes.local(ids.subspan(local_range.begin, local_range.size()));
    Team team = team_for(local.size() * self.codes.local_codes.n_features, n_threads);
    taken = take_rows(self.codes.local_codes, {local.size(), nullptr, local.data()}, team);
  }
  return nb::cast(SharedTable(nb::cast(std::move(taken)), local_range.begin, ids.size(),
                              self.workers, self.codes.n_votes));
}

}  // namespace

PythonWorkers::PythonWorkers(nb::object transport, std::size_t rank, std::size_t size)
    : transport_(std::move(transport)), rank_(rank), size_(size), received_(size) {
  require(rank < size, "the rank of a worker must be below their number");
}

const std::vector<Collective::Bytes>& PythonWorkers::exchange(std::span<const View> messages) {
  if (size_ == 1) return received_;
  GilAcquire gil;
  const nb::object send = transport_.attr("send"), receive = transport_.attr("receive");
  const auto call = [](const nb::object& method, const nb::tuple& args) {
    PyObject* result = nullptr;
    call_or_sleep([&] { result = PyObject_CallObject(method.ptr(), args.ptr()); });
    if (result == nullptr) throw nb::python_error();
    return nb::steal<nb::object>(result);
  };
  // The next worker first, so that not all send to one.
  for (std::size_t i = 1; i < size_; ++i) {
    const std::size_t to = (rank_ + i) % size_;
    const nb::bytes message(messages[to].data(), messages[to].size());
    call(send, nb::make_tuple(to, message));
  }
  for (std::size_t i = 1; i < size_; ++i) {
    const std::size_t from = (rank_ + size_ - i) % size_;
    const nb::object message = call(receive, nb::make_tuple(from));
    Py_buffer view;
    if (PyObject_GetBuffer(message.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
    const auto* bytes = static_cast<const std::uint8_t*>(view.buf);
    received_[from].assign(bytes, bytes + view.len);
    PyBuffer_Release(&view);
  }
  return received_;
}

SharedTable::SharedTable(nb::object own_codes_, std::size_t first_row, std::size_t n_rows,
                         nb::object workers_, std::size_t n_votes)
    : own_codes(std::move(own_codes_)),
      workers(std::move(workers_)),
      codes{nb::cast<const Codes&>(own_codes), first_row, n_rows, nb::cast<PythonWorkers&>(workers),
            n_votes} {
  require(codes.local_codes.width <= 2 && !codes.local_codes.distant,
          "shared codes must be bins in host memory");
  require(first_row <= n_rows && codes.local_codes.n_rows <= n_rows - first_row &&
              n_rows <= std::numeric_limits<RowId>::max(),
          "the rows of this worker must lie inside the table");
}

void bind_shared(nb::module_& m) {
  nb::class_<PythonWorkers>(m, "Workers", "Workers that reduce numbers by messages.")
      .def(nb::init<nb::object, std::size_t, std::size_t>(), "transport"_a, "rank"_a, "size"_a,
           "`transport` has the methods send(rank, bytes) and receive(rank).")
      .def(
          "sum",
          [](PythonWorkers& self,
             const nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& numbers) {
            GilRelease release;
            self.sum(Collective::Numbers(numbers.data(), numbers.size()));
          },
          "numbers"_a.noconvert(), "Replaces the numbers by their sums over the workers.")
      .def_prop_ro("rank", &PythonWorkers::rank)
      .def_prop_ro("size", &PythonWorkers::size)
      .def("gather", &gather, "message"_a,
           nb::sig("def gather(self, message: bytes) -> list[bytes]"),
           "The messages of all workers, by rank.")
      .def(
          "first",
          [](PythonWorkers& self, double number) {
            const auto* bytes = reinterpret_cast<const std::uint8_t*>(&number);
            GilRelease release;
            const std::vector<Collective::Bytes>& all =
                self.exchange(Collective::View(bytes, sizeof number));
            if (self.rank() > 0) std::memcpy(&number, all[0].data(), sizeof number);
            return number;
          },
          "number"_a, "The number of the first worker.");
  nb::class_<SharedTable>(m, "SharedCodes",
                          "A binned table whose rows are divided among the workers of a fit.")
      .def(nb::init<nb::object, std::size_t, std::size_t, nb::object, std::size_t>(), "own"_a,
           "first_row"_a, "n_rows"_a, "workers"_a, "n_votes"_a = 0,
           nb::sig("def __init__(self, own: Codes, first_row: int, n_rows: int, workers: Workers, "
                   "n_votes: int = 0) -> None"),
           "`n_votes`: features that each worker proposes for a node; 0: all are searched.")
      .def_prop_ro(
          "own", [](const SharedTable& self) { return self.own_codes; },
          nb::sig("def own(self) -> Codes"), "Codes of this worker's rows.")
      .def_prop_ro(
          "workers", [](const SharedTable& self) { return self.workers; },
          nb::sig("def workers(self) -> Workers"))
      .def_prop_ro("first_row", [](const SharedTable& self) { return self.codes.first_row; })
      .def_prop_ro(
          "n_rows", [](const SharedTable& self) { return self.codes.n_rows; }, "Of all workers.")
      .def_prop_ro("n_features",
                   [](const SharedTable& self) { return self.codes.local_codes.n_features; })
      .def_prop_ro("width", [](const SharedTable& self) { return self.codes.local_codes.width; })
      .def_prop_ro(
          "is_category",
          [](const SharedTable& self) { return to_numpy(self.codes.local_codes.is_category); },
          nb::rv_policy::move)
      .def_prop_ro(
          "is_stored",
          [](const SharedTable& self) { return self.codes.local_codes.stored_rows != nullptr; },
          "Whether the codes of this worker are in a file.")
      .def("take", &take, "rows"_a.noconvert(), "n_threads"_a,
           nb::sig("def take(self, rows: numpy.typing.NDArray[numpy.uint32], n_threads: int) -> "
                   "SharedCodes"),
           "Copy of some rows of the table, ascending.")
      .def(
          "gather",
          [](const SharedTable& self, int n_threads) {
            CallTeam team(self.codes.n_rows * self.codes.local_codes.n_features, n_threads);
            return gather_rows(self.codes, team);
          },
          "n_threads"_a, "Copy of all rows, in the memory of each worker.")
      .def(
          "checksum",
          [](const SharedTable& self, int n_threads) {
            GilRelease release;
            const Codes& local = self.codes.local_codes;
            Team team = team_for(local.n_rows * local.n_features, n_threads);
            return checksum(self.codes, team);
          },
          "n_threads"_a = 1, "A number that depends on all codes, and not on the workers.")
      .def_prop_ro("has_sparse", [](const SharedTable& self) {
        return self.codes.local_codes.sparse.size() > 0;
      });
}

}  // namespace arboost::bindings
