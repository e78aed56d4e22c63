// Steps of a tree and rows -> their SHAP values, eight rows at a time; see explain/shap/shap_run.h.
//
// Cost: about 10 vector operations a point for an edge between two splits, and 5 for the leaves of
// a split; with interactions, 2 more a point for each split and feature above it. Single-threaded;
// callers split the rows.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#include "explain/shap/shap_lanes.h"
#include "explain/shap/shap_run.h"

namespace arboost::ARBOOST_ISA {
namespace {

// P points, or as many as the run says where P is 0.
template <std::size_t P, bool with_pairs>
class ShapWalk {
 public:
  static constexpr std::size_t lanes = shap_lanes;

  // For the rows that walk together from this one on.
  ShapWalk(const ShapRun& run, std::size_t first_row)
      : run_(run),
        product_(run.scratch + first_row / lanes * run.scratch_stride),
        sum_(product_ + stack_size()),
        effect_(with_pairs ? sum_ + stack_size() : sum_),
        whole_(with_pairs ? effect_ + stack_size() : sum_),
        left_(reinterpret_cast<LaneMask*>(whole_ + stack_size())),
        right_(left_ + run.depth + 1),
        values_(run.values + first_row),
        phi_(run.phi + first_row),
        pairs_(with_pairs ? run.pairs + first_row : nullptr) {}

  void walk() {
    if (run_.is_start)
      for (std::size_t p = 0; p < points(); ++p) store(product_ + p * lanes, fill(1));
    for (std::size_t i = 0; i < run_.n_steps; ++i) {
      const ShapStep& step = run_.steps[i];
      if (!step.is_end)
        enter(step);
      else if (!step.again_above)
        leave<false>(step);
      else
        leave<true>(step);
    }
  }

 private:
  std::size_t points() const { return P == 0 ? run_.points : P; }
  std::size_t stack_size() const { return (run_.depth + 1) * points() * lanes; }
  double* at(double* stack, std::size_t depth) const { return stack + depth * points() * lanes; }
  template <class Part>
  const double* part(std::size_t first, Part which) const {
    return run_.numbers + first + static_cast<std::size_t>(which) * points();
  }
  ARBOOST_INLINE LaneMask
  taken(const ShapStep& step) const {  // rows that meet the edge to the node
    return copy((step.is_left ? left_ : right_)[step.depth - 1]);
  }
  ARBOOST_INLINE LaneMask passed(const ShapStep& step) const {  // rows that go the other way
    return copy((step.is_left ? right_ : left_)[step.depth - 1]);
  }

  // Numbers for rows of the first mask, of the second, and of those that are apart from both.
  template <bool is_apart>
  ARBOOST_INLINE static Lanes pick(const LaneMask& first, const LaneMask& second, double if_first,
                                   double if_second, double otherwise) {
    if constexpr (!is_apart)
      return choose(first, if_first, if_second);
    else
      return choose(first, if_first, choose(second, if_second, otherwise));
  }

  void enter(const ShapStep& step) {
    if (step.edge != no_numbers) {
      if (!step.again_above)
        go_down<false>(step);
      else
        go_down<true>(step);
    }
    split(step);
    if (step.leaves != no_numbers) {
      if (!step.again)
        add_leaves<false>(step);
      else
        add_leaves<true>(step);
    }
    if constexpr (with_pairs)
      if (step.closes) close(step, step.depth);
  }

  template <bool is_apart>
  ARBOOST_INLINE void go_down(const ShapStep& step) {
    const double* from = at(product_, step.depth - 1);
    double* to = at(product_, step.depth);
    const double* in = part(step.edge, DownPart::factor_in);
    const double* out = part(step.edge, DownPart::factor_out);
    const double* apart = part(step.edge, DownPart::factor_apart);
    const LaneMask met = taken(step), missed = passed(step);
    for (std::size_t p = 0; p < points(); ++p)
      store(to + p * lanes,
            load(from + p * lanes) * pick<is_apart>(met, missed, in[p], out[p], apart[p]));
    if constexpr (with_pairs) {
      double* whole = at(whole_, step.depth);
      const double* whole_in = part(step.edge, DownPart::whole_in);
      const double* whole_out = part(step.edge, DownPart::whole_out);
      for (std::size_t p = 0; p < points(); ++p)
        store(whole + p * lanes, choose(met, whole_in[p], whole_out[p]));
    }
  }

  // The rows that go left and right, of those that meet the splits above by the same feature.
  ARBOOST_INLINE void split(const ShapStep& step) {
    const double* x = values_ + step.column * run_.stride;
    LaneMask goes_left{};
    if (step.set != no_level_set) {
      const CodeSet& set_of_levels = run_.sets[step.set];
      bool is_in[lanes];
      for (std::size_t l = 0; l < lanes; ++l)
        is_in[l] = holds(set_of_levels, static_cast<std::uint32_t>(x[l]));
      goes_left = mask_of_lanes(is_in);
    } else if (step.missing_left) {
      goes_left = not_above(load(x), step.threshold);
    } else {
      goes_left = at_most(load(x), step.threshold);
    }
    if (!step.again) {
      store(left_[step.depth], goes_left);
      store(right_[step.depth], opposite(goes_left));
    } else {
      const LaneMask met = copy((step.above_left ? left_ : right_)[step.above]);
      store(left_[step.depth], both(met, goes_left));
      store(right_[step.depth], both(met, opposite(goes_left)));
    }
  }

  template <bool is_apart>
  ARBOOST_INLINE void add_leaves(const ShapStep& step) {
    const double* product = at(product_, step.depth);
    double* sum = at(sum_, step.depth);
    [[maybe_unused]] double* effect = at(effect_, step.depth);
    const double* sums = part(step.leaves, LeafPart::sum_left);
    const double* effects = part(step.leaves, LeafPart::left);
    const std::size_t n = points();
    const LaneMask left = copy(left_[step.depth]), right = copy(right_[step.depth]);
    Lanes total = fill(0);
    for (std::size_t p = 0; p < n; ++p) {
      const Lanes above = load(product + p * lanes);
      store(sum + p * lanes,
            above * pick<is_apart>(left, right, sums[p], sums[n + p], sums[2 * n + p]));
      const Lanes here = above * pick<is_apart>(left, right, effects[p], effects[n + p], 0.0);
      if constexpr (with_pairs)
        store(effect + p * lanes, here);
      else
        total = total + here;
    }
    if constexpr (!with_pairs) add(phi_ + step.column * run_.stride, total);
  }

  template <bool is_apart>
  ARBOOST_INLINE void leave(const ShapStep& step) {
    const double* from = at(sum_, step.depth);
    double* to = at(sum_, step.depth - 1);
    [[maybe_unused]] double* effect = at(effect_, step.depth - 1);
    const double* in = part(step.edge, UpPart::in);
    const double* out = part(step.edge, UpPart::out);
    const LaneMask met = taken(step), missed = passed(step);
    Lanes total = fill(0);
    for (std::size_t p = 0; p < points(); ++p) {
      const Lanes below = load(from + p * lanes);
      const Lanes here = below * pick<is_apart>(met, missed, in[p], out[p], 0.0);
      if (step.adds)
        add(to + p * lanes, below);
      else
        store(to + p * lanes, below);
      if constexpr (!with_pairs)
        total = total + here;
      else if (step.adds)
        add(effect + p * lanes, here);
      else
        store(effect + p * lanes, here);
    }
    if constexpr (!with_pairs) add(phi_ + step.column * run_.stride, total);
    if constexpr (with_pairs)
      if (step.closes) close(step, step.depth - 1);
  }

  // All sums below a split are complete: adds its interactions with the features above.
  void close(const ShapStep& step, std::size_t depth) {
    const double* effect = at(effect_, depth);
    Lanes total = fill(0);
    for (std::size_t p = 0; p < points(); ++p) total = total + load(effect + p * lanes);
    add(phi_ + step.column * run_.stride, total);
    for (std::size_t i = 0; i < step.n_partners; ++i) {
      const ShapPartner partner = run_.partners[step.partners + i];
      const double* whole = at(whole_, partner.depth);
      Lanes joint = fill(0);
      for (std::size_t p = 0; p < points(); ++p)
        joint = joint + load(effect + p * lanes) * load(whole + p * lanes);
      add(pairs_ + partner.pair * run_.stride, joint);
    }
  }

  ARBOOST_INLINE static void add(double* to, const Lanes& what) { store(to, load(to) + what); }

  const ShapRun& run_;
  double *product_, *sum_;   // [depth][point][lane]
  double *effect_, *whole_;  // the same, where pairs are wanted
  LaneMask *left_, *right_;  // [depth]
  const double* values_;
  double *phi_, *pairs_;
};

template <std::size_t P>
void shap_points(const ShapRun& run) {
  for (std::size_t row = 0; row < run.n_rows; row += shap_lanes) {
    if (run.with_pairs)
      ShapWalk<P, true>(run, row).walk();
    else
      ShapWalk<P, false>(run, row).walk();
  }
}

void shap(const ShapRun& run) {
  constexpr decltype(&shap_points<0>) by_points[] = {shap_points<0>, shap_points<1>, shap_points<2>,
                                                     shap_points<3>, shap_points<4>, shap_points<0>,
                                                     shap_points<6>};
  by_points[run.points < 7 ? run.points : 0](run);
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
