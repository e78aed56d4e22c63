// What the kernels of SHAP values take: a tree as steps, and a block of rows.
//
// For one leaf of value v, let each feature j on its path have the share r_j of the training rows
// that its splits let through (the product of theirs where there are several), and q_j = 1 where
// the row meets them all, else 0. Then, by the integral form of Shapley's weights,
//
//   phi_i    = v (q_i - r_i) Integral over t from 0 to 1 of Prod over j != i of f_j(t)
//   phi_ik   = half of v (q_i - r_i) (q_k - r_k) Integral of Prod over j != i, k of f_j(t)
//   f_j(t)   = r_j + t (q_j - r_j)
//
// These are polynomials, so a few points t with weights give the integrals without an error
// (explain/shap/shap_quadrature.h). At a point, all leaves below an edge share the product of the
// factors above them. So one walk over the tree will do: down, each edge multiplies the product by
// its factor f; up, sums of v times the products come back, and an edge of feature i adds the sum
// below it, times e = (q_i - r_i) / f_i, to phi_i. Where an edge above has the same feature, with
// share a, its factor takes the place of that edge's, and so does its e:
//
//   row meets       factor                  difference of the e
//   both            f(r) / f(a)             (a - r) / (f(r) f(a))      f(r) = r (1 - t) + t
//   that above      r (1 - t) / f(a)        -1 / (f(a) (1 - t))
//   not that above  r / a                   0
//
// With a = 1 the first two are those of an edge of a new feature. None divides by 0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tree/rule.h"  // CodeSet

namespace arboost {

constexpr std::size_t shap_lanes = 8;  // rows that walk together
constexpr std::size_t no_numbers = ~std::size_t{0};

// Numbers of an edge on the way down, each for all points: factors for the three cases, and the e
// of a row that meets the edge and of one that does not, for the pairs.
enum class DownPart { factor_in, factor_out, factor_apart, whole_in, whole_out, size };
// Numbers of an edge on the way up: differences for the first two cases, times the points' weights.
enum class UpPart { in, out, size };
// Numbers of the leaves among a node's children: what they add to the sum, and to phi, for rows
// that go left, that go right, and that do not meet the split above.
enum class LeafPart { sum_left, sum_right, sum_apart, left, right, size };

// Enters a node through its edge from above, or leaves it. Nodes are splits; leaves belong to them.
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

// An edge above a node, by the depth it leads to, that is the last one of a feature other than the
// node's own; and the place of the two features among all pairs.
struct ShapPartner {
  std::size_t depth, pair;
};

// Some steps of a tree. The numbers of all would take a large tree far more memory than its nodes,
// so they come in parts, and what is known of the rows on the way is kept from part to part.
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

// Numbers of scratch for rows that walk together.
constexpr std::size_t shap_scratch(std::size_t depth, std::size_t points, bool with_pairs) {
  return (depth + 1) * shap_lanes * ((with_pairs ? 4 : 2) * points + 2);
}

// The inner loop of SHAP values, which isa/ fills for each instruction set. All variants give the
// same bits.
struct ShapKernels {
  // Adds to the results of a block of rows what a tree says of their features.
  void (*shap)(const ShapRun& run);
};

const ShapKernels& shap_kernels();

}  // namespace arboost
