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
  // most: positions of the longest sentence, the root among them.
  Trees(Index most, bool tangent, bool single_root)
      : Charts(most, tangent), single_root_(single_root), sums_(stride_) {}

  // Numbers of what is kept of a sentence.
  static Index count(Index positions) { return Charts::count(positions) + 1; }

  void keep(Real* to) {
    *to++ = inverse_;
    Charts::keep(to);
  }

  void take(const Real* from) {
    inverse_ = *from++;
    Charts::take(from);
  }

  // Arcs from log potentials [head, dependent] with a stride, and the logarithm of what that divides all trees by;
  // those of `changes` are a direction, centred by the marginals.
  template <class T>
  Real set_arcs(const T* scores, Index stride);
  template <class T>
  void set_direction(const T* direction, const T* marginals, Index stride);

  // Inside and outside; the log-partition, NaN where it is not exact.
  Real pass(Real scale);
  void pass_tangent();

  // Of the first pass, or of its derivative, to [head, dependent].
  template <class T>
  void put_marginals(T* to, Index stride);

 private:
  enum { RIGHT_ARC, LEFT_ARC, OPEN_RIGHT, OPEN_LEFT, RIGHT, LEFT, D_OPEN_RIGHT, D_OPEN_LEFT, D_RIGHT, D_LEFT, THROUGH };

  void inside(Index width);
  void outside(Index width, Real top);
  Real multiply_arcs(Index width);

  bool single_root_;
  Buffer<Real> sums_;
  Real inverse_ = 0;
};

template <class T>
Real Trees::set_arcs(const T* scores, Index stride) {
  const HeadShares heads(N_, scores, stride, single_root_);
  for (Index h = 0; h < N_; ++h)
    for (Index m = 1; m < N_; ++m) {
      if (h < m) row(RIGHT_ARC, m - h)[h] = heads.of(h)[m];
      else if (h > m) row(LEFT_ARC, h - m)[m] = heads.of(h)[m];
    }
  return heads.scale;
}

template <class T>
void Trees::set_direction(const T* direction, const T* marginals, Index stride) {
  const std::vector<Real> centred = centred_by_word(N_, direction, marginals, stride);
  for (Index h = 0; h < N_; ++h)
    for (Index m = 1; m < N_; ++m) {
      if (h < m) change(RIGHT_ARC, m - h)[h] = centred[h * N_ + m];
      else if (h > m) change(LEFT_ARC, h - m)[m] = centred[h * N_ + m];
    }
}

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

Real Trees::pass(Real scale) {
  const Index last = N_ - 1;
  Real partition = 1, factor = 0;
  for (int i : {RIGHT, LEFT}) std::fill_n(row(i, 0), N_, Real(1));
  for (Index w = 1; w <= last; ++w) {
    inside(w);
    if (w == last) partition = row(RIGHT, w)[0];
    if (single_root_) row(RIGHT, w)[0] = 0;
    if (w >= NARROWEST && w < last && (w & (w - 1)) == 0) factor += multiply_arcs(w);
  }
  if (!(partition >= RANGE[0] && partition <= RANGE[1])) return std::numeric_limits<Real>::quiet_NaN();
  inverse_ = 1 / partition;
  for (Index w = last; w >= 1; --w) outside(w, inverse_);
  if (factor != 0 && !(greatest(size_, room_.get()) <= RANGE[1])) return std::numeric_limits<Real>::quiet_NaN();
  return std::log(partition) + scale - last * factor;
}

void Trees::pass_tangent() {
  const Index last = N_ - 1;
  Real d_partition = 0;
  for (Index w = 1; w <= last; ++w) {
    inside(w);
    if (w == last) d_partition = change(RIGHT, w)[0];
    if (single_root_) change(RIGHT, w)[0] = 0;
  }
  for (Index w = last; w >= 1; --w) outside(w, -d_partition * inverse_ * inverse_);
}

template <class T>
void Trees::put_marginals(T* to, Index stride) {
  const auto found = [&](int open, int adjoint, Index w, Index i) {
    if (!tangent_) return row(open, w)[i] * row(adjoint, w)[i];
    return change(open, w)[i] * row(adjoint, w)[i] + row(open, w)[i] * change(adjoint, w)[i];
  };
  for (Index w = 1; w < N_; ++w)
    for (Index i = 0; i < N_ - w; ++i) {
      to[i * stride + i + w] = T(found(OPEN_RIGHT, D_OPEN_RIGHT, w, i));
      if (i) to[(i + w) * stride + i] = T(found(OPEN_LEFT, D_OPEN_LEFT, w, i));
    }
}

using Results = std::tuple<Tensor, Tensor, Tensor, Tensor>;

Results marginals(const Tensor& all_arcs, const Maybe& all_lengths, bool single_root, bool recorded) {
  const Index N = positions_of(all_arcs, all_lengths), B = all_arcs.size(0), room = Trees::count(N);
  const Tensor arcs = whole(all_arcs), found = zeros(arcs, arcs.sizes());
  const Maybe lengths = whole(all_lengths);
  const Tensor total = fresh(arcs, {B}, ScalarType::Double), exact = fresh(arcs, {B}, ScalarType::Bool);
  const Tensor kept = fresh(arcs, {recorded ? B : 0, room}, ScalarType::Double);
  by_type(arcs, [&](auto zero) {
    using T = decltype(zero);
    const T* from = numbers<T>(arcs);
    T* to = numbers<T>(found);
    Real *totals = numbers<Real>(total), *all = numbers<Real>(kept);
    bool* good = numbers<bool>(exact);
    share(B, [&](Index thread, Index threads) {
      Trees trees(N, false, single_root);
      for (Index b = thread; b < B; b += threads) {
        trees.begin(length_of(lengths, b, N - 1) + 1);
        totals[b] = trees.pass(trees.set_arcs(from + b * N * N, N));
        good[b] = std::isfinite(totals[b]);
        if (recorded) std::fill_n(all + b * room, room, Real(0));
        if (!good[b]) continue;
        trees.put_marginals(to + b * N * N, N);
        if (recorded) trees.keep(all + b * room);
      }
    }, B * N >= WORTH);
  });
  return {found, total, exact, kept};
}

Tensor marginals_backward(const Tensor& all_marginals, const Maybe& all_lengths, const Tensor& exact,
                          const Tensor& kept, const Tensor& all_directions, bool single_root) {
  const Index N = positions_of(all_marginals, all_lengths), B = all_marginals.size(0), room = Trees::count(N);
  expect("exact", exact, {B});
  expect("kept", kept, {B, room});
  expect("d_marginals", all_directions, {B, N, N});
  const Tensor known = whole(all_marginals), direction = whole(all_directions), found = zeros(known, known.sizes());
  const Maybe lengths = whole(all_lengths);
  by_type(known, [&](auto zero) {
    using T = decltype(zero);
    const T *given = numbers<T>(known), *along = numbers<T>(direction);
    T* to = numbers<T>(found);
    const Real* all = numbers<Real>(kept);
    const bool* good = numbers<bool>(exact);
    share(B, [&](Index thread, Index threads) {
      Trees trees(N, true, single_root);
      for (Index b = thread; b < B; b += threads) {
        if (!good[b]) continue;
        trees.begin(length_of(lengths, b, N - 1) + 1);
        trees.take(all + b * room);
        trees.set_direction(along + b * N * N, given + b * N * N, N);
        trees.pass_tangent();
        trees.put_marginals(to + b * N * N, N);
      }
    }, B * N >= WORTH);
  });
  return found;
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
