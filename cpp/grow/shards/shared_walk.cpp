// One walk over a worker's rows and one message to each other worker.
#include "grow/shards/shared_walk.h"

#include <algorithm>  // copy
#include <cstring>

namespace arboost {
namespace {

template <class Id>
std::vector<std::uint32_t> gather_as(std::span<const std::uint32_t> local_leaves,
                                     Collective& workers) {
  Collective::Bytes message(local_leaves.size() * sizeof(Id));
  for (std::size_t i = 0; i < local_leaves.size(); ++i) {
    const auto id = static_cast<Id>(local_leaves[i]);
    std::memcpy(message.data() + i * sizeof(Id), &id, sizeof(Id));
  }
  const std::vector<Collective::Bytes>& received = workers.exchange(Collective::View(message));
  std::vector<std::uint32_t> all;
  for (std::size_t r = 0; r < received.size(); ++r) {
    const Collective::Bytes& bytes = r == workers.rank() ? message : received[r];
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(Id)) {
      Id id;
      std::memcpy(&id, bytes.data() + at, sizeof(Id));
      all.push_back(id);
    }
  }
  return all;
}

}  // namespace

std::vector<std::uint32_t> gather_leaves(std::span<const std::uint32_t> local_leaves,
                                         std::size_t n_nodes, Collective& workers) {
  if (n_nodes <= 1u << 8) return gather_as<std::uint8_t>(local_leaves, workers);
  if (n_nodes <= 1u << 16) return gather_as<std::uint16_t>(local_leaves, workers);
  return gather_as<std::uint32_t>(local_leaves, workers);
}

std::vector<std::uint32_t> shared_leaves(const GrownTrees& trees, std::size_t tree,
                                         const SharedCodes& codes, std::span<const RowId> rows,
                                         Team& team) {
  const SharedCodes::Range range = rows.empty() ? codes.own_of_all() : codes.own_of(rows);
  std::vector<std::uint32_t> local_leaves(range.size());
  std::vector<RowId> local;
  if (!rows.empty()) local = codes.local(rows.subspan(range.begin, range.size()));
  if (range.size() > 0)
    trees.walk(tree, codes.local_codes,
               {range.size(), nullptr, rows.empty() ? nullptr : local.data()}, team,
               [&](std::size_t begin, std::size_t end, const std::uint32_t* leaves) {
                 std::copy(leaves, leaves + (end - begin), local_leaves.data() + begin);
               });
  return gather_leaves(local_leaves, trees.n_nodes(tree), codes.workers);
}

void gather_scores(std::size_t begin, std::size_t end, std::size_t outputs, double* scores,
                   Collective& workers) {
  const std::size_t bytes = (end - begin) * outputs * sizeof(double);
  const auto* local_scores = reinterpret_cast<const std::uint8_t*>(scores + begin * outputs);
  const std::vector<Collective::Bytes>& received =
      workers.exchange(Collective::View(local_scores, bytes));
  auto* to = reinterpret_cast<std::uint8_t*>(scores);
  for (std::size_t r = 0; r < received.size(); ++r) {
    if (r != workers.rank()) std::memcpy(to, received[r].data(), received[r].size());
    to += r == workers.rank() ? bytes : received[r].size();
  }
}

}  // namespace arboost
