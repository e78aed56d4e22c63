// Input of the SHAP kernels: a tree as steps, and a block of rows.
//
// For one leaf of value v, let r_j be the share of the training rows that satisfy the splits of
// feature j on its path (the product over its splits), and q_j = 1 if the row satisfies them all,
// else 0. Then, by the integral form of the Shapley weights,
//
//   phi_i    = v (q_i - r_i) Integral over t from 0 to 1 of Prod over j != i of f_j(t)
//   phi_ik   = half of v (q_i - r_i) (q_k - r_k) Integral of Prod over j != i, k of f_j(t)
//   f_j(t)   = r_j + t (q_j - r_j)
//
// The integrands are polynomials, so Gauss-Legendre quadrature is exact
// (explain/shap/shap_program.h). At a point t, all leaves below an edge share the product of the
// factors above them. So one traversal of the tree suffices: on the way down, each edge multiplies
// the product by its factor f; on the way up, sums of v times the products are returned, and an
// edge of feature i adds the sum below it, times e = (q_i - r_i) / f_i, to phi_i. If an edge above
// has the same feature, with share a, the new edge's factor and e replace those of that edge:
//
//   row meets       factor                  difference of the e
//   both            f(r) / f(a)             (a - r) / (f(r) f(a))      f(r) = r (1 - t) + t
//   that above      r (1 - t) / f(a)        -1 / (f(a) (1 - t))
//   not that above  r / a                   0
//
// With a = 1 the first two rows are those of an edge of a new feature. No denominator is 0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tree/rule.h"  // CodeSet

namespace arboost {

constexpr std::size_t shap_lanes = 8;  // rows that walk together
constexpr std::size_t no_numbers = ~std::size_t{0};

// Numbers of an edge on the way down, each for all points: factors for the three cases and, for
// interactions, the e of a row that satisfies the edge and of a row that does not.
enum class DownPart { factor_in, factor_out, factor_apart, whole_in, whole_out, size };
// Numbers of an edge on the way up: differences for the first two cases, times the points' weights.
enum class UpPart { in, out, size };
// Numbers of the leaves among a node's children: contributions to the sum and to phi, for rows that
// go left, that go right, and that do not satisfy the split above.
enum class LeafPart { sum_left, sum_right, sum_apart, left, right, size };

// Entry to a node through its edge from above, or exit from it. Nodes are splits; leaves belong to
// their parents.
struct ShapStep {
  double threshold;
  std::size_t edge, leaves;  // where their numbers begin, or no_numbers
  std::size_t partners;      // of this node; when leaving, of the one above
  std::uint32_t n_partners;
  std::uint32_t set;     // of levels that go left; no_set: by threshold
  std::uint32_t depth;   // of this node
  std::uint32_t column;  // of the split; when leaving, of the one above
  std::uint32_t above;   // depth of the last split above by the same feature, if again
  bool is_end;           // leaves the node
  bool is_left;          // child of the one above
  bool missing_left;
  bool again, above_left;  // a split above has the same feature, and the path goes left there
  bool again_above;        // the same of the split above this one
  bool adds;               // leaving: to sums that are there already
  bool closes;             // entering: has no child with splits; leaving: the last such child
};
constexpr std::uint32_t no_level_set = ~std::uint32_t{0};

// For interactions: the last edge of another feature above a node, by its depth, and the index of
// the pair of features.
struct ShapPartner {
  std::size_t depth, pair;
};

// Some steps of a tree. The numbers of all steps of a large tree would take far more memory than
// its nodes, so they come in parts; the state of the rows is kept from part to part.
struct ShapRun {
  const ShapStep* steps;
  std::size_t n_steps;
  const double* numbers;
  const ShapPartner* partners;
  const CodeSet* sets;  // with a bit for the missing code
  std::size_t points, depth;
  bool is_start;  // of the tree
  bool with_pairs;
  // Rows by column: that of row i in column c is at c * stride + i, and so are the results. There
  // is room for a multiple of shap_lanes rows. Where splits are by sets, values are codes.
  const double* values;
  std::size_t stride, n_rows;
  double* phi;      // [columns][stride], added to
  double* pairs;    // [pairs][stride], added to
  double* scratch;  // of the first rows that walk together, and how far it is to that of the next
  std::size_t scratch_stride;
};

// Scratch numbers for shap_lanes rows.
constexpr std::size_t shap_scratch(std::size_t depth, std::size_t points, bool with_pairs) {
  return (depth + 1) * shap_lanes * ((with_pairs ? 4 : 2) * points + 2);
}

// Kernel of SHAP values, which isa/ fills for each instruction set. All variants give the same
// bits.
struct ShapKernels {
  // Adds a tree's contributions to the results of a block of rows.
  void (*shap)(const ShapRun& run);
};

const ShapKernels& shap_kernels();

}  // namespace arboost
