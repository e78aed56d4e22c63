// Nodes, values, tests of unusual nodes and the list of trees are parts of one piece of memory.
#include "grow/device/table/added_trees.h"

#include <bit>      // bit_ceil
#include <cstring>  // memcpy
#include <vector>

#include "grow/device/table/walked_tree.h"

namespace arboost::cuda {

void TreeAdder::add(Device& device, Queue& queue, const DeviceTable& table, const Codes& codes,
                    const GrownTrees& forest, std::span<const AddedTree> trees,
                    const ScoredRows& rows) {
  if (trees.empty()) return;
  const std::size_t width = forest.width;
  std::vector<RoundTree> places;
  std::vector<WalkNode> nodes;
  std::vector<NodeTest> tests;
  std::vector<double> values;
  bool has_unusual = false;
  for (const AddedTree& added : trees) {
    const WalkedTree tree = walked_tree(forest, added.tree, codes);
    places.push_back({added.factor, static_cast<std::uint32_t>(nodes.size()),
                      static_cast<std::uint32_t>(added.output)});
    nodes.insert(nodes.end(), tree.nodes.begin(), tree.nodes.end());
    tests.insert(tests.end(), tree.tests.begin(), tree.tests.end());
    const double* of_tree = forest.values(added.tree);
    values.insert(values.end(), of_tree, of_tree + tree.nodes.size() * width);
    has_unusual |= tree.has_unusual;
  }
  if (!has_unusual) tests.clear();
  std::size_t size = 0;
  const auto reserve = [&size]<class T>(const std::vector<T>& array) {
    const std::size_t at = size;
    size += (array.size() * sizeof(T) + 15) / 16 * 16;
    return at;
  };
  const std::size_t nodes_at = reserve(nodes), values_at = reserve(values),
                    places_at = reserve(places), tests_at = reserve(tests);
  queue.wait();                                      // for the copy of the last call
  const std::size_t capacity = std::bit_ceil(size);  // later trees may be larger
  std::byte* staged = sent_.buffer(capacity);
  const auto put = [staged]<class T>(std::size_t at, const std::vector<T>& array) {
    if (!array.empty()) std::memcpy(staged + at, array.data(), array.size() * sizeof(T));
  };
  put(nodes_at, nodes);
  put(values_at, values);
  put(places_at, places);
  put(tests_at, tests);
  make_room(trees_, capacity);
  queue.copy_in(staged, size, trees_.address());
  const std::byte* there = trees_.data();
  constexpr unsigned threads = 128;
  queue.launch(device.kernel("add_trees"), {in_blocks(rows.n, threads)}, threads, 0, table.codes(),
               reinterpret_cast<const WalkNode*>(there + nodes_at),
               reinterpret_cast<const NodeTest*>(there + tests_at),
               reinterpret_cast<const double*>(there + values_at),
               reinterpret_cast<const RoundTree*>(there + places_at),
               static_cast<std::uint32_t>(trees.size()), rows.rows, rows.n,
               static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(rows.outputs),
               rows.scores);
}

}  // namespace arboost::cuda
