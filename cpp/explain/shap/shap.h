// Trees and a table -> SHAP values, the contribution of each feature to the scores of a row
// (Lundberg and others 2020, "From local explanations to global understanding with explainable AI
// for trees").
//
// Path-dependent: unknown features are averaged over the training rows of each node, by cover. Cost
// for eight rows: about 10 vector operations for each split and two features on a path. Parallel
// over blocks of rows; sums over trees are in the order of the trees, so results depend neither on
// the team nor on the blocks.
#pragma once

#include <cstddef>

#include "base/parallel.h"
#include "explain/shap/shap_program.h"
#include "table/columns.h"

namespace arboost {

// Expected scores: expected[output] += means of the trees' leaves by cover.
void shap_expected(const ShapForest& forest, double* expected);

// values[row][feature][output] = the SHAP value of the feature for the row's score.
void shap_values(const Columns& table, const ShapForest& forest, Team& team, double* values);

// Interventional SHAP values: unknown features take the values of the background rows, all with
// equal probability; at least one row.
void shap_against(const Columns& table, const Columns& background, const ShapForest& forest,
                  Team& team, double* values);

// interactions[row][a][b][output] = half of the SHAP interaction of the features a and b; for a = b
// the main effect, so that the entries of a sum to its SHAP value.
void shap_interactions(const Columns& table, const ShapForest& forest, Team& team,
                       double* interactions);

// Number of steps a row, to choose the number of threads.
std::size_t shap_cells(const ShapForest& forest);

}  // namespace arboost
