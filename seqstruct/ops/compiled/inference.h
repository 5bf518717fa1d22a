// What the kernels of structured inference share: double precision, log potentials, vectors of any length.

#pragma once

#include <vector>

#include "operators.h"

namespace seqstruct::LEVEL {
namespace {

using Real = double;

constexpr Real INFINITE = std::numeric_limits<Real>::infinity();
constexpr Real LEAST = -1e300;                   // as in log_potentials.py, where all is -inf
constexpr Real LARGEST_POTENTIAL = Index(1) << 20;  // as there

// The greatest of some numbers; a NaN among them may be passed over.
inline Real greatest(Index count, const Real* x) {
  Index i = 0;
  Real most = LEAST;
  if (count >= WIDTH<Real>) {
    Vector<Real> all = load(x), now;
    for (i = WIDTH<Real>; i + WIDTH<Real> <= count; i += WIDTH<Real>) now = load(x + i), all = now > all ? now : all;
    for (int lane = 0; lane < WIDTH<Real>; ++lane) most = std::max(most, all[lane]);
  }
  for (; i < count; ++i) most = std::max(most, x[i]);
  return most;
}

// y = x, and y += factor x.
template <class T, class U>
inline void convert(Index count, const T* __restrict x, U* __restrict y) {
  for (Index i = 0; i < count; ++i) y[i] = U(x[i]);
}

inline void add_times(Index count, Real factor, const Real* __restrict x, Real* __restrict y) {
  for (Index i = 0; i < count; ++i) y[i] += factor * x[i];
}

// The logarithm of a product of many factors, none of which is far from 1.
class LogOfProduct {
 public:
  void times(Real factor) {
    product_ *= factor;
    if (!(product_ > 1e-150 && product_ < 1e150)) log_ += std::log(product_), product_ = 1;
  }
  void plus(Real x) { log_ += x; }
  Real value() const { return log_ + std::log(product_); }

 private:
  Real product_ = 1, log_ = 0;
};

// The real positions of row b, of so many.
inline Index length_of(const Maybe& lengths, Index b, Index all) { return lengths ? numbers<Index>(lengths)[b] : all; }

inline void expect_lengths(const Maybe& lengths, Index batch, Index most) {
  expect("lengths", lengths, {batch});
  expect_below("lengths", whole(lengths), most + 1);
}

// Of arcs B N N, position 0 the root, with lengths in words.
inline Index positions_of(const Tensor& arcs, const Maybe& lengths) {
  expect("arcs", arcs, {ANY, ANY, ANY});
  const Index N = arcs.size(1);
  expect("arcs", arcs, {arcs.size(0), N, N});
  expect(N > 0, "the root, or more positions");
  expect_lengths(lengths, arcs.size(0), N - 1);
  return N;
}

// The shares of the heads of each word, of log potentials [head, dependent] with a stride; 0 where there are none.
class HeadShares {
 public:
  Real scale = 0;  // the logarithm of what that divides all trees by

  template <class T>
  HeadShares(Index positions, const T* scores, Index stride, bool single_root)
      : N_(positions), wide_((positions + WIDTH<Real> - 1) / WIDTH<Real> * WIDTH<Real>),
        shares_(positions * wide_, -INFINITE) {
    std::vector<Real> total(N_), highest(N_, LEAST);
    for (Index h = 0; h < N_; ++h) {
      Real* arcs = row(h);
      convert(N_, scores + h * stride, arcs);
      arcs[0] = arcs[h] = -INFINITE;
      if (single_root && h == 0) level_root(arcs);
      for (Index m = 0; m < N_; ++m) highest[m] = arcs[m] > highest[m] ? arcs[m] : highest[m];
    }
    for (Index h = 0; h < N_; ++h)
      for (Index m = 0; m < N_; ++m) row(h)[m] -= highest[m];
    exponentials(N_ * wide_, shares_.data());
    for (Index h = 0; h < N_; ++h)
      for (Index m = 0; m < N_; ++m) total[m] += row(h)[m];
    LogOfProduct all;
    for (Index m = 1; m < N_; ++m) {
      if (total[m] == 0) total[m] = 1, possible = false;
      else all.times(total[m]), scale += highest[m];
    }
    total[0] = 1;
    for (Index h = 0; h < N_; ++h)
      for (Index m = 0; m < N_; ++m) row(h)[m] /= total[m];
    scale += all.value();
  }

  const Real* of(Index head) const { return shares_.data() + head * wide_; }
  bool possible = true;  // whether every word has a head

 private:
  Real* row(Index head) { return shares_.data() + head * wide_; }

  // As in layout.py: the arcs of the root less their maximum if that is great, and none of them loses digits.
  void level_root(Real* arcs) {
    const Real most = greatest(N_, arcs);
    if (!(std::fabs(most) > LARGEST_POTENTIAL && most > LEAST && most < INFINITE)) return;
    for (Index m = 1; m < N_; ++m) {
      const Real less = arcs[m] - most, part = less - arcs[m];
      if (less != -INFINITE && (arcs[m] - (less - part)) + (-most - part) != 0) return;
    }
    for (Index m = 1; m < N_; ++m) arcs[m] -= most;
    scale = most;
  }

  Index N_, wide_;
  std::vector<Real> shares_;
};

// A direction of arcs N N, less its mean over the heads of each word under the marginals.
template <class T>
inline std::vector<Real> centred_by_word(Index N, const T* direction, const T* marginals, Index stride) {
  std::vector<Real> mean(N), centred(N * N);
  for (Index h = 0; h < N; ++h)
    for (Index m = 0; m < N; ++m) mean[m] += Real(direction[h * stride + m]) * Real(marginals[h * stride + m]);
  for (Index h = 0; h < N; ++h)
    for (Index m = 0; m < N; ++m) centred[h * N + m] = Real(direction[h * stride + m]) - mean[m];
  return centred;
}

// The two passes over all sentences, in PyTorch's threads.  S has the trees of a sentence after another, none of more
// words than `most`: begin(words), pass(scores), which gives the log-partition, NaN where it is not exact,
// put_marginals(to) and keep(to), of `count` numbers, what take(from) and put_tangent(direction, marginals, to) need.
using TreeResults = std::tuple<Tensor, Tensor, Tensor, Tensor>;

template <class S, class... Options>
TreeResults first_pass(const Tensor& all_scores, const Maybe& all_lengths, Index most, bool worth, bool recorded,
                       Options... options) {
  const Tensor scores = whole(all_scores), found = zeros(scores, scores.sizes());
  const Maybe lengths = whole(all_lengths);
  const Index B = scores.size(0), size = scores.numel() / std::max<Index>(B, 1), room = S::count(most);
  const Tensor total = fresh(scores, {B}, ScalarType::Double), exact = fresh(scores, {B}, ScalarType::Bool);
  const Tensor kept = fresh(scores, {recorded ? B : 0, room}, ScalarType::Double);
  by_type(scores, [&](auto zero) {
    using T = decltype(zero);
    const T* from = numbers<T>(scores);
    T* to = numbers<T>(found);
    Real *totals = numbers<Real>(total), *all = numbers<Real>(kept);
    bool* good = numbers<bool>(exact);
    share(B, [&](Index thread, Index threads) {
      S trees(most, false, options...);
      for (Index b = thread; b < B; b += threads) {
        trees.begin(length_of(lengths, b, most));
        totals[b] = trees.pass(from + b * size);
        good[b] = std::isfinite(totals[b]);
        if (recorded) std::fill_n(all + b * room, room, Real(0));
        if (!good[b]) continue;
        trees.put_marginals(to + b * size);
        if (recorded) trees.keep(all + b * room);
      }
    }, worth);
  });
  return {found, total, exact, kept};
}

template <class S, class... Options>
Tensor second_pass(const Tensor& all_marginals, const Maybe& all_lengths, const Tensor& exact, const Tensor& kept,
                   const Tensor& all_directions, Index most, bool worth, Options... options) {
  const Tensor known = whole(all_marginals), direction = whole(all_directions), found = zeros(known, known.sizes());
  const Maybe lengths = whole(all_lengths);
  const Index B = known.size(0), size = known.numel() / std::max<Index>(B, 1), room = S::count(most);
  expect("exact", exact, {B});
  expect("kept", kept, {B, room});
  by_type(known, [&](auto zero) {
    using T = decltype(zero);
    const T *given = numbers<T>(known), *along = numbers<T>(direction);
    T* to = numbers<T>(found);
    const Real* all = numbers<Real>(kept);
    const bool* good = numbers<bool>(exact);
    share(B, [&](Index thread, Index threads) {
      S trees(most, true, options...);
      for (Index b = thread; b < B; b += threads) {
        if (!good[b]) continue;
        trees.begin(length_of(lengths, b, most));
        trees.take(all + b * room);
        trees.put_tangent(along + b * size, given + b * size, to + b * size);
      }
    }, worth);
  });
  return found;
}

}  // namespace
}  // namespace seqstruct::LEVEL
