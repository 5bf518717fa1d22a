// Marginals of linear chains in scaled probability space, and their derivative along a direction, row after row.
//
// As in seqstruct/ops/chains/scaled.py, but that forward and backward vectors are each divided at every step, by their
// sum and by their greatest number.  What underflows at some place is at most 1e-300 where all paths together, at the
// scale of that place, have the weight of the two vectors around it and the matrix between them: so a row is exact
// where that is above SMALLEST_TOTAL at every step.

#include "inference.h"

namespace seqstruct::LEVEL {
namespace {

constexpr Real SMALLEST_TOTAL = 1e-285;  // as in scan.py
constexpr Index WORTH = 1 << 13;         // numbers from which several threads are worth it

struct Sizes {
  Index batch, positions, states;
  Index steps() const { return std::max<Index>(positions - 1, 0); }
  Index square() const { return states * states; }
  bool worth() const { return batch * steps() * square() >= WORTH; }
};

// What the second pass needs of one row, and whether it is exact: matrices of steps, forward and backward vectors, and
// for each step the inverses of the sum of the next forward vector, of the greatest number of the backward vector, and
// of the weight of all paths around it.
struct Kept {
  Real *matrices, *alpha, *beta, *scales;

  static Index count(const Sizes& s) { return s.steps() * (s.square() + 3) + 2 * s.positions * s.states + PAD; }
  Kept(const Sizes& s, Real* from)
      : matrices(from), alpha(from + s.steps() * s.square() + PAD), beta(alpha + s.positions * s.states),
        scales(beta + s.positions * s.states) {}
  Real* scale(Index step) const { return scales + 3 * step; }
};

// An inner product; K: of so many, 0 for any.
template <int K>
inline Real product_of(Index count, const Real* x, const Real* y) {
  if constexpr (K == 0) return inner(count, x, y);
  Real total = 0;
  for (int i = 0; i < K; ++i) total += x[i] * y[i];
  return total;
}

// run(K) for a number of states that is known when it is compiled, as few are.
template <class F>
void by_states(Index states, const F& run) {
  if (states == 2) run(std::integral_constant<int, 2>());
  else if (states == 3) run(std::integral_constant<int, 3>());
  else run(std::integral_constant<int, 0>());
}

// v = matrix x, and its greatest number.
template <int K>
inline Real behind(Index C, const Real* matrix, const Real* x, Real* v) {
  Real most = 0;
  for (Index i = 0; i < C; ++i) {
    v[i] = product_of<K>(C, matrix + i * C, x);
    most = std::max(most, v[i]);
  }
  return most;
}

// One row of `length` real positions; its log-partition, and NaN where it is not exact.  K: states, 0 for any.
template <int K, class T>
Real forward_row(const Sizes& s, Index length, const T* unary, const T* edge, const Kept& kept, Real* room, T* node,
                 T* pair) {
  const Index C = K ? K : s.states, M = length - 1, square = C * C;
  if (length == 0) return 0;
  LogOfProduct total;
  bool exact = true;
  Real *states = room, *v = room + C, *alpha = kept.alpha, *matrices = kept.matrices;
  convert(C, unary, alpha);
  const Real first = greatest(C, alpha);
  for (Index i = 0; i < C; ++i) alpha[i] = std::exp(alpha[i] - first);
  convert(M * square, edge, matrices);
  Real added = first;
  for (Index t = 0; t < M; ++t) {
    Real* matrix = matrices + t * square;
    convert(C, unary + (t + 1) * C, states);
    const Real of_step = greatest(square, matrix), of_states = greatest(C, states);
    for (Index j = 0; j < C; ++j) states[j] -= of_states;
    for (Index i = 0; i < C; ++i)
      for (Index j = 0; j < C; ++j) matrix[i * C + j] = (matrix[i * C + j] - of_step) + states[j];
    const Real of_both = greatest(square, matrix);
    for (Index i = 0; i < square; ++i) matrix[i] -= of_both;
    exact = exact && of_both >= -LARGEST_POTENTIAL;
    added += of_step + of_states + of_both;
  }
  exponentials((M * square + WIDTH<Real> - 1) / WIDTH<Real> * WIDTH<Real>, matrices);
  for (Index t = 0;; ++t, alpha += C) {
    Real sum = 0;
    for (Index i = 0; i < C; ++i) sum += alpha[i];
    for (Index i = 0; i < C; ++i) alpha[i] /= sum;
    total.times(sum);
    exact = exact && sum > 0;
    if (t > 0) kept.scale(t - 1)[0] = 1 / sum;
    if (t == M) break;
    std::fill_n(alpha + C, C, Real(0));
    for (Index i = 0; i < C; ++i) add_times(C, alpha[i], matrices + t * square + i * C, alpha + C);
  }
  total.plus(added);
  Real* beta = kept.beta + M * C;
  std::fill_n(beta, C, Real(1));
  convert(C, alpha, node + M * C);
  for (Index t = M - 1; t >= 0; --t, beta -= C) {
    const Real* matrix = matrices + t * square;
    alpha -= C;
    const Real most = behind<K>(C, matrix, beta, v);
    Real around = 0;
    for (Index i = 0; i < C; ++i) around += alpha[i] * v[i];
    exact = exact && around >= SMALLEST_TOTAL;
    const Real inverse = 1 / around;
    kept.scale(t)[1] = 1 / most, kept.scale(t)[2] = inverse;
    for (Index i = 0; i < C; ++i) {
      const Real share = alpha[i] * inverse;
      T* __restrict to = pair + t * square + i * C;
      for (Index j = 0; j < C; ++j) to[j] = T(share * matrix[i * C + j] * beta[j]);
      node[t * C + i] = T(share * v[i]);
      beta[i - C] = v[i] / most;
    }
  }
  return exact ? total.value() : std::numeric_limits<Real>::quiet_NaN();
}

// The derivative of a row's marginals along a direction, null for 0.  room: steps * square + (positions + 2) * C.
template <int K, class T>
void tangent_row(const Sizes& s, Index length, const Kept& kept, const T* d_node, const T* d_pair, Real* room,
                 T* to_node, T* to_pair) {
  const Index C = K ? K : s.states, M = length - 1, square = C * C;
  Real *v = room, *w = room + C, *ahead = w + C, *changes = ahead + length * C;
  if (M == 0) {
    Real mean = 0;
    for (Index i = 0; i < C && d_node; ++i) mean += kept.alpha[i] * d_node[i];
    for (Index i = 0; i < C && d_node; ++i) to_node[i] = T(kept.alpha[i] * (d_node[i] - mean));
    return;
  }
  std::fill_n(ahead, C, Real(0));
  for (Index t = 0; t < M; ++t) {
    const Real *matrix = kept.matrices + t * square, *alpha = kept.alpha + t * C, *beta = kept.beta + (t + 1) * C,
               *scale = kept.scale(t);
    Real *change = changes + t * square, *next = ahead + (t + 1) * C, mean = 0;
    for (Index i = 0; i < C; ++i) {
      Real* row = change + i * C;
      const Real start = d_node && t == 0 ? Real(d_node[i]) : Real(0);
      for (Index j = 0; j < C; ++j)
        row[j] = start + (d_pair ? Real(d_pair[t * square + i * C + j]) : Real(0)) +
                 (d_node ? Real(d_node[(t + 1) * C + j]) : Real(0));
      for (Index j = 0; j < C; ++j) v[j] = matrix[i * C + j] * beta[j];
      mean += alpha[i] * product_of<K>(C, row, v);
    }
    mean *= scale[2];
    std::fill_n(next, C, Real(0));
    for (Index i = 0; i < C; ++i) {
      Real* row = change + i * C;
      for (Index j = 0; j < C; ++j) row[j] = matrix[i * C + j] * (row[j] - mean);
      add_times(C, ahead[t * C + i], matrix + i * C, next);
      add_times(C, alpha[i], row, next);
    }
    for (Index j = 0; j < C; ++j) next[j] *= scale[0];
  }
  Real *later = v, *earlier = w;  // the derivative of the vector behind the step
  std::fill_n(later, C, Real(0));
  for (Index t = M - 1; t >= 0; --t) {
    const Real *matrix = kept.matrices + t * square, *change = changes + t * square, *alpha = kept.alpha + t * C,
               *beta = kept.beta + (t + 1) * C, *scale = kept.scale(t);
    Real* last = ahead + (t + 1) * C;  // of marginals of states behind the last step
    if (t == M - 1) std::fill_n(last, C, Real(0));
    for (Index i = 0; i < C; ++i) {
      const Real here = ahead[t * C + i] * scale[2], share = alpha[i] * scale[2];
      T* __restrict to = to_pair + t * square + i * C;
      Real of_state = 0, of_vector = 0;
      for (Index j = 0; j < C; ++j) {
        const Real m = matrix[i * C + j], through = m * later[j] + change[i * C + j] * beta[j];
        const Real found = here * m * beta[j] + share * through;
        to[j] = T(found);
        if (t == M - 1) last[j] += found;
        of_state += found, of_vector += through;
      }
      to_node[t * C + i] = T(of_state);
      earlier[i] = of_vector * scale[1];
    }
    if (t == M - 1) convert(C, last, to_node + M * C);
    std::swap(earlier, later);
  }
}

Sizes sizes(const Tensor& unary, const Tensor& edge, const Maybe& lengths) {
  expect("unary", unary, {ANY, ANY, ANY});
  const Sizes s{unary.size(0), unary.size(1), unary.size(2)};
  expect(s.states > 0, "one state or more");
  expect("edge", edge, {s.batch, s.steps(), s.states, s.states});
  expect_lengths(lengths, s.batch, s.positions);
  return s;
}

using Results = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

Results marginals(const Tensor& all_unary, const Tensor& all_edge, const Maybe& all_lengths, bool recorded) {
  const Sizes s = sizes(all_unary, all_edge, all_lengths);
  const Tensor unary = whole(all_unary), edge = whole(all_edge);
  const Maybe lengths = whole(all_lengths);
  const Tensor node = zeros(unary, unary.sizes()), pair = zeros(edge, edge.sizes());
  const Tensor total = fresh(unary, {s.batch}, ScalarType::Double), exact = fresh(unary, {s.batch}, ScalarType::Bool);
  const Tensor kept = zeros(unary, {recorded ? s.batch : 0, Kept::count(s)}, ScalarType::Double);
  by_type(unary, [&](auto zero) {
    using T = decltype(zero);
    const T *from = numbers<T>(unary), *steps = numbers<T>(edge);
    T *to = numbers<T>(node), *to_pair = numbers<T>(pair);
    Real *totals = numbers<Real>(total), *all = recorded ? numbers<Real>(kept) : nullptr;
    bool* good = numbers<bool>(exact);
    const Index states = s.positions * s.states, matrices = s.steps() * s.square();
    share(s.batch, [&](Index thread, Index threads) {
      std::vector<Real> room(2 * s.states), own(recorded ? 0 : Kept::count(s));
      for (Index b = thread; b < s.batch; b += threads) {
        const Kept here(s, recorded ? all + b * Kept::count(s) : own.data());
        by_states(s.states, [&](auto K) {
          totals[b] = forward_row<K>(s, length_of(lengths, b, s.positions), from + b * states, steps + b * matrices,
                                     here, room.data(), to + b * states, to_pair + b * matrices);
        });
        good[b] = std::isfinite(totals[b]);
        if (good[b]) continue;
        std::fill_n(to + b * states, states, T(0));
        std::fill_n(to_pair + b * matrices, matrices, T(0));
      }
    }, s.worth());
  });
  return {node, pair, total, exact, kept};
}

std::tuple<Tensor, Tensor> marginals_backward(const Tensor& unary, const Tensor& edge, const Maybe& all_lengths,
                                              const Tensor& exact, const Tensor& kept, const Maybe& all_d_node,
                                              const Maybe& all_d_pair) {
  const Sizes s = sizes(unary, edge, all_lengths);
  expect("exact", exact, {s.batch});
  expect("kept", kept, {s.batch, Kept::count(s)});
  expect("d_node", all_d_node, {s.batch, s.positions, s.states});
  expect("d_edge", all_d_pair, {s.batch, s.steps(), s.states, s.states});
  const Maybe lengths = whole(all_lengths), d_node = whole(all_d_node), d_pair = whole(all_d_pair);
  const Tensor node = zeros(unary, unary.sizes()), pair = zeros(edge, edge.sizes());
  by_type(unary, [&](auto zero) {
    using T = decltype(zero);
    const T *nodes = numbers<T>(d_node), *pairs = numbers<T>(d_pair);
    T *to = numbers<T>(node), *to_pair = numbers<T>(pair);
    Real* all = numbers<Real>(kept);
    const bool* good = numbers<bool>(exact);
    const Index states = s.positions * s.states, matrices = s.steps() * s.square();
    share(s.batch, [&](Index thread, Index threads) {
      std::vector<Real> room(matrices + states + 2 * s.states);
      for (Index b = thread; b < s.batch; b += threads) {
        const Index length = length_of(lengths, b, s.positions);
        if (!good[b] || !length) continue;
        by_states(s.states, [&](auto K) {
          tangent_row<K>(s, length, Kept(s, all + b * Kept::count(s)), nodes ? nodes + b * states : nullptr,
                         pairs ? pairs + b * matrices : nullptr, room.data(), to + b * states, to_pair + b * matrices);
        });
      }
    }, s.worth());
  });
  return {node, pair};
}

}  // namespace

OPERATORS(chains){
    {"chain_marginals(Tensor unary, Tensor edge, Tensor? lengths, bool recorded) -> "
     "(Tensor, Tensor, Tensor, Tensor, Tensor)",
     TORCH_BOX(&marginals)},
    {"chain_marginals_backward(Tensor unary, Tensor edge, Tensor? lengths, Tensor exact, Tensor kept, "
     "Tensor? d_node, Tensor? d_edge) -> (Tensor, Tensor)",
     TORCH_BOX(&marginals_backward)},
    {}};

}  // namespace seqstruct::LEVEL
