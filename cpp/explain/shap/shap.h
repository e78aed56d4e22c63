// Trees and a table -> SHAP values: what each feature adds to the scores of a row (Lundberg and
// others 2020, "From local explanations to global understanding with explainable AI for trees").
//
// Values of features that are not known are averaged over the training rows of each node, by its
// cover. Cost for eight rows: some 10 operations of vectors for each split and two features on a
// path. Blocks of rows run in parallel; sums over trees are in their order, so results depend
// neither on the team nor on which rows are together.
#pragma once

#include <cstddef>

#include "base/parallel.h"
#include "explain/shap/shap_program.h"
#include "table/columns.h"

namespace arboost {

// What the trees say where nothing is known of a row: expected[output] += means by cover.
void shap_expected(const ShapForest& forest, double* expected);

// values[row][feature][output] = what the feature adds to the row's score.
void shap_values(const Columns& table, const ShapForest& forest, Team& team, double* values);

// The same, but values that are not known are those of the background rows, each as likely as the
// others; there must be at least one.
void shap_against(const Columns& table, const Columns& background, const ShapForest& forest,
                  Team& team, double* values);

// interactions[row][a][b][output] = what the features a and b add together, half of it for each
// order of the two; where a = b, what a adds by itself, so that each row of a sums to its value.
void shap_interactions(const Columns& table, const ShapForest& forest, Team& team,
                       double* interactions);

// Steps that a thread takes for a row, to judge how many threads are worth it.
std::size_t shap_cells(const ShapForest& forest);

}  // namespace arboost
