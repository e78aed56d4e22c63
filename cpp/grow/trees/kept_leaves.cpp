// One walk a tree and set of rows; after that, one pass over the leaves of the rows.
#include "grow/trees/kept_leaves.h"

#include <algorithm>  // copy
#include <utility>    // move

namespace arboost {
namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 26;
constexpr std::size_t most_nodes = std::size_t{1} << 16;
constexpr std::size_t chunk_rows = 16384;

}  // namespace

void KeptLeaves::add(const GrownTrees& trees, std::size_t tree, const Codes& codes,
                     const TreeRows& rows, double factor, ScoreRows scores, Team& team) {
  if (!keeps(trees, tree, rows.n)) {
    trees.add(tree, codes, rows, factor, scores, team);
    return;
  }
  if (leaves_[tree].empty()) {
    std::vector<std::uint16_t> leaves(rows.n);
    trees.walk(tree, codes, rows, team,
               [&](std::size_t begin, std::size_t end, const std::uint32_t* of_rows) {
                 std::copy(of_rows, of_rows + (end - begin),
                           leaves.begin() + static_cast<std::ptrdiff_t>(begin));
               });
    keep(tree, std::move(leaves));  // complete, or an interrupted walk would be taken for one
  }
  add_kept(trees, tree, factor, scores, team);
}

void KeptLeaves::add(const GrownTrees& trees, std::size_t tree, std::size_t n_rows, Find find,
                     double factor, ScoreRows scores, Team& team) {
  if (!keeps(trees, tree, n_rows)) {
    trees.add_leaves(tree, find(), factor, scores, team);
    return;
  }
  if (leaves_[tree].empty()) {
    const std::vector<std::uint32_t> leaves = find();
    keep(tree, {leaves.begin(), leaves.end()});
  }
  add_kept(trees, tree, factor, scores, team);
}

void KeptLeaves::keep(std::size_t tree, std::vector<std::uint16_t> leaves) {
  bytes_ += leaves.size() * sizeof(std::uint16_t);
  leaves_[tree] = std::move(leaves);
}

void KeptLeaves::add_kept(const GrownTrees& trees, std::size_t tree, double factor,
                          ScoreRows scores, Team& team) const {
  const std::vector<std::uint16_t>& leaves = leaves_[tree];
  const std::size_t width = trees.width;
  const double* values = trees.values(tree);
  team.for_chunks(0, leaves.size(), chunk_rows, [&](std::size_t begin, std::size_t end, int) {
    const std::uint16_t* leaf = leaves.data();
    double* score = scores.scores + begin * scores.stride;
    if (width == 1) {  // most boosters
      for (std::size_t i = begin; i < end; ++i, score += scores.stride)
        *score += factor * values[leaf[i]];
      return;
    }
    for (std::size_t i = begin; i < end; ++i, score += scores.stride) {
      const double* v = values + leaf[i] * width;
      for (std::size_t k = 0; k < width; ++k) score[k] += factor * v[k];
    }
  });
}

bool KeptLeaves::keeps(const GrownTrees& trees, std::size_t tree, std::size_t n_rows) {
  if (trees.n_nodes(tree) > most_nodes) return false;
  if (leaves_.size() <= tree) leaves_.resize(trees.n_trees());
  if (!leaves_[tree].empty()) return true;
  return bytes_ + n_rows * sizeof(std::uint16_t) <= most_bytes;
}

}  // namespace arboost
