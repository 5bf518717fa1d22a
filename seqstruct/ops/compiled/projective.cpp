// Marginals of projective trees by inside and outside in scaled probability space, and their derivative along a
// direction, one sentence after another.
//
// As in seqstruct/ops/trees/scaled.py.

#include "charts.h"

namespace seqstruct::LEVEL {
namespace {

constexpr Real RANGE[2] = {1e-285, 1e285};  // as in scaled.py, down to NARROWEST
constexpr Real MODERATE = 230;
constexpr Real LARGEST = 600;
constexpr Index NARROWEST = 32;
constexpr Index WORTH = 1 << 7;  // batch times positions from which several threads are worth it

// Sentences, one after another: arcs by width, to the right and to the left, the items of the chart and their adjoints;
// THROUGH are the adjoints of halves without an arc.
class Trees : public Charts<11, 3> {
 public:
  // most: words of the longest sentence; rows of arcs have one number more, of the root.
  Trees(Index most, bool tangent, bool single_root)
      : Charts(most + 1, tangent), across_(most + 1), single_root_(single_root), sums_(stride_) {}

  void begin(Index words) { Charts::begin(words + 1); }

  // Numbers of what is kept of a sentence.
  static Index count(Index words) { return Charts::count(words + 1) + 1; }

  void keep(Real* to) {
    *to++ = inverse_;
    Charts::keep(to);
  }

  void take(const Real* from) {
    inverse_ = *from++;
    Charts::take(from);
  }

  // Inside and outside, from log potentials [head, dependent]; the log-partition, NaN where it is not exact.
  template <class T>
  Real pass(const T* scores);

  // Of the first pass, or of its derivative, to [head, dependent].
  template <class T>
  void put_marginals(T* to);
  template <class T>
  void put_tangent(const T* direction, const T* marginals, T* to);

 private:
  enum { RIGHT_ARC, LEFT_ARC, OPEN_RIGHT, OPEN_LEFT, RIGHT, LEFT, D_OPEN_RIGHT, D_OPEN_LEFT, D_RIGHT, D_LEFT, THROUGH };

  // A number for each arc, from number(head, dependent).
  template <class F>
  void set_arcs(Chart* charts, const F& number) {
    for (Index h = 0; h < N_; ++h)
      for (Index m = 1; m < N_; ++m) {
        if (h < m) charts[RIGHT_ARC].row(m - h)[h] = number(h, m);
        else if (h > m) charts[LEFT_ARC].row(h - m)[m] = number(h, m);
      }
  }
  void inside(Index width);
  void outside(Index width, Real top);
  Real multiply_arcs(Index width);

  Index across_;
  bool single_root_;
  Buffer<Real> sums_;
  Real inverse_ = 0;
};

// Items of one width, from those of smaller ones; in the second pass their derivatives.
void Trees::inside(Index w) {
  const Index count = N_ - w;
  Real* halves = sums_.get();
  std::fill_n(halves, stride_, Real(0));
  add(count, w, {RIGHT, WIDER, 0, 0}, {LEFT, NARROWER, w - 1, 1}, halves);
  for (const auto& [of_arc, of_open] : {std::pair(RIGHT_ARC, OPEN_RIGHT), std::pair(LEFT_ARC, OPEN_LEFT)}) {
    const Real *arc = row(of_arc, w), *value = row(of_open, w), *direction = tangent_ ? change(of_arc, w) : nullptr;
    Real* open = result(of_open, w);
    for (Index i = 0; i < count; ++i) open[i] = arc[i] * halves[i];
    for (Index i = 0; i < count && direction; ++i) open[i] += value[i] * direction[i];
  }
  add(count, w, {OPEN_RIGHT, WIDER, 1, 0}, {RIGHT, NARROWER, w - 1, 1}, begin_sum(RIGHT, w));
  add(count, w, {LEFT, WIDER, 0, 0}, {OPEN_LEFT, NARROWER, w, 0}, begin_sum(LEFT, w));
  end_sum(RIGHT, w), end_sum(LEFT, w);
}

// Adjoints of the items of one width, from those of greater ones; top: that of the whole tree.
void Trees::outside(Index w, Real top) {
  const Index count = N_ - w, more = N_ - 1 - w;
  Real *right = begin_sum(D_RIGHT, w), *left = begin_sum(D_LEFT, w), *open_right = begin_sum(D_OPEN_RIGHT, w),
       *open_left = begin_sum(D_OPEN_LEFT, w), *here = result(THROUGH, w);
  add(count, more, {THROUGH, WIDER, w + 1, 0}, {LEFT, WIDER, 0, w + 1}, right);
  if (single_root_) right[0] = 0;
  add(count, more, {D_RIGHT, WIDER_LEFT, w + 1, -1}, {OPEN_RIGHT, WIDER_LEFT, 1, -1}, right);
  if (!more) right[0] = top;
  add(count, more, {THROUGH, WIDER_LEFT, w + 1, -1}, {RIGHT, WIDER_LEFT, 0, -1}, left);
  add(count, more, {D_LEFT, WIDER, w + 1, 0}, {OPEN_LEFT, WIDER, 1, w}, left);
  end_sum(D_RIGHT, w), end_sum(D_LEFT, w);
  add(count, more + 1, {D_RIGHT, WIDER, w, 0}, {RIGHT, WIDER, 0, w}, open_right);
  add(count, more + 1, {D_LEFT, WIDER_LEFT, w, 0}, {LEFT, WIDER_LEFT, 0, 0}, open_left);
  const Real *ar = row(RIGHT_ARC, w), *al = row(LEFT_ARC, w);
  for (Index i = 0; i < count; ++i) here[i] = open_right[i] * ar[i] + open_left[i] * al[i];
  if (!tangent_) return;
  const Real *dr = change(RIGHT_ARC, w), *dl = change(LEFT_ARC, w), *known_right = row(D_OPEN_RIGHT, w),
             *known_left = row(D_OPEN_LEFT, w);
  for (Index i = 0; i < count; ++i) here[i] += known_right[i] * ar[i] * dr[i] + known_left[i] * al[i] * dl[i];
}

// Every arc times a factor that brings the greatest item of that width to 1, and all items so far by its powers; its
// logarithm, 0 where the items are moderate.
Real Trees::multiply_arcs(Index w) {
  const Real most = std::max(greatest(N_ - w, row(RIGHT, w)), greatest(N_ - w, row(LEFT, w))), log = std::log(most);
  if (!std::isfinite(log) || std::fabs(log) <= MODERATE) return 0;
  const Real factor = -std::min(std::max(log, -LARGEST), LARGEST) / w;
  for (Index u = 1; u < N_; ++u) {
    for (int i : {RIGHT_ARC, LEFT_ARC}) scale(stride_, std::exp(factor), row(i, u));
    for (int i : {OPEN_RIGHT, OPEN_LEFT, RIGHT, LEFT}) scale(stride_, std::exp(std::min(u, w) * factor), row(i, u));
  }
  return factor;
}

template <class T>
Real Trees::pass(const T* scores) {
  const HeadShares heads(N_, scores, across_, single_root_);
  set_arcs(charts_, [&](Index h, Index m) { return heads.of(h)[m]; });
  const Index last = N_ - 1;
  Real partition = 1, factor = 0, raised = 0;
  for (int i : {RIGHT, LEFT}) std::fill_n(row(i, 0), N_, Real(1));
  for (Index w = 1; w <= last; ++w) {
    inside(w);
    if (w == last) partition = row(RIGHT, w)[0];
    if (single_root_) row(RIGHT, w)[0] = 0;
    if (w < NARROWEST || w == last || (w & (w - 1)) != 0) continue;
    const Real more = multiply_arcs(w);
    factor += more, raised += std::max(more * w, Real(0));
  }
  if (!(partition >= RANGE[0] && partition <= RANGE[1])) return std::numeric_limits<Real>::quiet_NaN();
  inverse_ = 1 / partition;
  for (Index w = last; w >= 1; --w) outside(w, inverse_);
  const Real* adjoints = row(D_OPEN_RIGHT, 0);
  const Index values = adjoints - room_.get();
  const bool exact = greatest(values, room_.get()) <= RANGE[1] &&
                     greatest(size_ - values, adjoints) <= RANGE[1] * std::exp(-raised);
  if ((factor != 0 || raised != 0) && !exact) return std::numeric_limits<Real>::quiet_NaN();
  return std::log(partition) + heads.scale - last * factor;
}

template <class T>
void Trees::put_tangent(const T* direction, const T* marginals, T* to) {
  const std::vector<Real> centred = centred_by_word(N_, direction, marginals, across_);
  set_arcs(changes_, [&](Index h, Index m) { return centred[h * N_ + m]; });
  const Index last = N_ - 1;
  Real d_partition = 0;
  for (Index w = 1; w <= last; ++w) {
    inside(w);
    if (w == last) d_partition = change(RIGHT, w)[0];
    if (single_root_) change(RIGHT, w)[0] = 0;
  }
  for (Index w = last; w >= 1; --w) outside(w, -d_partition * inverse_ * inverse_);
  put_marginals(to);
}

template <class T>
void Trees::put_marginals(T* to) {
  const auto found = [&](int open, int adjoint, Index w, Index i) {
    if (!tangent_) return row(open, w)[i] * row(adjoint, w)[i];
    return change(open, w)[i] * row(adjoint, w)[i] + row(open, w)[i] * change(adjoint, w)[i];
  };
  for (Index w = 1; w < N_; ++w)
    for (Index i = 0; i < N_ - w; ++i) {
      to[i * across_ + i + w] = T(found(OPEN_RIGHT, D_OPEN_RIGHT, w, i));
      if (i) to[(i + w) * across_ + i] = T(found(OPEN_LEFT, D_OPEN_LEFT, w, i));
    }
}

TreeResults marginals(const Tensor& arcs, const Maybe& lengths, bool single_root, bool recorded) {
  const Index N = positions_of(arcs, lengths);
  return first_pass<Trees>(arcs, lengths, N - 1, arcs.size(0) * N >= WORTH, recorded, single_root);
}

Tensor marginals_backward(const Tensor& known, const Maybe& lengths, const Tensor& exact, const Tensor& kept,
                          const Tensor& direction, bool single_root) {
  const Index N = positions_of(known, lengths), B = known.size(0);
  expect("d_marginals", direction, {B, N, N});
  return second_pass<Trees>(known, lengths, exact, kept, direction, N - 1, B * N >= WORTH, single_root);
}

}  // namespace

OPERATORS(projective){
    {"projective_marginals(Tensor arcs, Tensor? lengths, bool single_root, bool recorded) -> "
     "(Tensor, Tensor, Tensor, Tensor)",
     TORCH_BOX(&marginals)},
    {"projective_marginals_backward(Tensor marginals, Tensor? lengths, Tensor exact, Tensor kept, "
     "Tensor d_marginals, bool single_root) -> Tensor",
     TORCH_BOX(&marginals_backward)},
    {}};

}  // namespace seqstruct::LEVEL
