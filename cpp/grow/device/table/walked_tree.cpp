// Some 20 ns a node.
#include "grow/device/table/walked_tree.h"

#include "grow/device/table/device_table.h"  // test_of

namespace arboost::cuda {

WalkedTree walked_tree(const GrownTrees& forest, std::size_t tree, const Codes& codes) {
  WalkedTree walked;
  const std::size_t first = forest.first(tree), n = forest.n_nodes(tree);
  walked.nodes.resize(n);
  walked.tests.resize(n);
  for (std::size_t id = 0; id < n; ++id) {
    const std::size_t at = first + id;
    NodeTest& test = walked.tests[id];
    if (forest.left[at] != 0)
      test = test_of(
          codes, static_cast<std::size_t>(forest.feature[at]),
          {.bin = static_cast<std::uint32_t>(forest.bin[at]),
           .missing_left = forest.default_left[at] != 0,
           .levels = forest.set[at] < 0 ? nullptr
                                        : &forest.sets[static_cast<std::size_t>(forest.set[at])]});
    test.left = static_cast<std::uint32_t>(forest.left[at]);
    const bool usual = codes.width == 1 && !test.sparse && !test.rule.by_set;
    walked.nodes[id] = {test.left, test.store | (usual ? 0 : is_unusual), test.rule.bin,
                        test.rule.missing_left};
    walked.has_unusual |= !usual && test.left != 0;
  }
  return walked;
}

}  // namespace arboost::cuda
