// Marginals of all spanning trees by the inverse of the Laplacian, and their derivative along a direction.
//
// As in seqstruct/ops/trees/spanning.py, one sentence after another; with a single arc from the root its arcs take the
// place of the Laplacian's first row.

#include <numeric>

#include "inference.h"

namespace seqstruct::LEVEL {
namespace {

constexpr Real GREATEST_INVERSE = 200;  // as in spanning.py
constexpr Index WORTH = 1 << 15;        // batch times words cubed from which several threads are worth it

// A sentence of n words: weights of arcs [head, dependent], the root's first, and the inverse of the Laplacian, rows
// and columns filled up with zeros as `product` wants them.
class Words {
 public:
  // most: words of the longest sentence; rows of arcs have one number more, of the root.
  Words(Index most, bool, bool single_root)
      : across_(most + 1), single_root_(single_root), weights_(across_ * padded(most)),
        inverse_(padded(most) * padded(most)) {}

  void begin(Index words) {
    n_ = words, wide_ = padded(words);
    std::fill_n(weights_.get(), (n_ + 1) * wide_, Real(0));
    std::fill_n(inverse_.get(), wide_ * wide_, Real(0));
  }

  static Index count(Index words) { return words * (2 * words + 1); }

  void keep(Real* to) {
    put(n_ + 1, n_, weights_.get(), wide_, to, n_);
    put(n_, n_, inverse_.get(), wide_, to + (n_ + 1) * n_, n_);
  }
  void take(const Real* from) {
    LEVEL::take(n_ + 1, n_, from, n_, weights_.get(), wide_, n_ + 1);
    LEVEL::take(n_, n_, from + (n_ + 1) * n_, n_, inverse_.get(), wide_, n_);
  }

  // The log-partition, NaN where it is not exact.
  template <class T>
  Real pass(const T* scores) {
    const HeadShares heads(n_ + 1, scores, across_, single_root_);
    for (Index h = 0; h <= n_; ++h) std::copy_n(heads.of(h) + 1, n_, weights_.get() + h * wide_);
    laplacian(weights_.get(), inverse_.get());
    const Real log_determinant = invert();
    bool exact = heads.possible;
    for (Index i = 0; i < n_ * wide_; i += PAD) {
      Index within = 0;
      for (Index j = i; j < i + PAD; ++j) within += std::fabs(inverse_.get()[j]) <= GREATEST_INVERSE;
      exact &= within == PAD;
    }
    return exact ? log_determinant + heads.scale : std::numeric_limits<Real>::quiet_NaN();
  }

  template <class T>
  void put_marginals(T* to) {
    each([&](Index h, Index m, Real found) { to[h * across_ + m] = T(found); }, inverse_.get());
  }

  template <class T>
  void put_tangent(const T* direction, const T* marginals, T* to) {
    const std::vector<Real> along = centred_by_word(n_ + 1, direction, marginals, across_);
    Buffer<Real> changes((n_ + 1) * wide_), change(wide_ * wide_), half(wide_ * wide_);
    for (Index h = 0; h <= n_; ++h)
      for (Index m = 0; m < n_; ++m)
        changes.get()[h * wide_ + m] = -weights_.get()[h * wide_ + m] * along[h * (n_ + 1) + m + 1];
    laplacian(changes.get(), change.get());
    const Index rows = (n_ + ROWS - 1) / ROWS * ROWS, columns = (n_ + WIDTH<Real> - 1) / WIDTH<Real> * WIDTH<Real>;
    product(rows, columns, n_, plain(change.get(), wide_), inverse_.get(), wide_, half.get(), wide_, false);
    product(rows, columns, n_, plain(inverse_.get(), wide_), half.get(), wide_, change.get(), wide_, false);
    each([&](Index h, Index m, Real found) {
      to[h * across_ + m] = T(found + Real(marginals[h * across_ + m]) * along[h * (n_ + 1) + m]);
    }, change.get());
  }

 private:
  void laplacian(const Real* weights, Real* to) {
    const Real* words = weights + wide_;
    for (Index h = 0; h < n_; ++h)
      for (Index m = 0; m < n_; ++m) to[h * wide_ + m] = -words[h * wide_ + m];
    for (Index m = 0; m < n_; ++m) {
      Real total = single_root_ ? 0 : weights[m];
      for (Index h = 0; h < n_; ++h) total += words[h * wide_ + m];
      to[m * wide_ + m] += total;
    }
    if (single_root_ && n_) std::copy_n(weights, n_, to);
  }

  // In place, by Gauss and Jordan with pivots from rows, two of them for each time that all rows are read and written;
  // the logarithm of the determinant's size.
  Real invert() {
    LogOfProduct determinant;
    std::vector<Index> swapped(n_);
    std::vector<Real> first(n_), second(n_);  // how much of either pivot's row the others lose
    for (Index k = 0, l = 1; k < n_; k += 2, l += 2) {
      for (Index i = 0; i < n_; ++i) first[i] = at(i)[k];
      pivot(k, first, first, swapped);
      const Real upper = 1 / first[k];
      determinant.times(std::fabs(first[k]));
      first[k] = 0;
      scale(wide_, upper, at(k));
      if (l == n_) {
        std::fill(second.begin(), second.end(), 0);
        lose(first, second, k, k);
        for (Index i = 0; i < n_; ++i) at(i)[k] = -first[i] * upper;
        at(k)[k] = upper;
        break;
      }
      for (Index i = 0; i < n_; ++i) second[i] = at(i)[l] - first[i] * at(k)[l];
      pivot(l, second, first, swapped);
      const Real lower = 1 / second[l], mixed = -first[l] * upper * lower;
      determinant.times(std::fabs(second[l]));
      add_scaled(wide_, -first[l], at(k), at(l));
      scale(wide_, lower, at(l));
      first[l] = second[l] = 0;
      lose(first, second, k, l);
      for (Index i = 0; i < n_; ++i) at(i)[k] = -first[i] * upper - second[i] * mixed, at(i)[l] = -second[i] * lower;
      at(k)[k] += upper, at(l)[k] = mixed, at(l)[l] = lower;
    }
    for (Index k = n_ - 1; k >= 0; --k)
      for (Index i = 0; i < n_ && swapped[k] != k; ++i) std::swap(at(i)[k], at(i)[swapped[k]]);
    return determinant.value();
  }

  // The row below with the greatest number in a column comes to row k, and what goes with rows too.
  void pivot(Index k, std::vector<Real>& column, std::vector<Real>& other, std::vector<Index>& swapped) {
    Index best = k;
    for (Index i = k + 1; i < n_; ++i)
      if (std::fabs(column[i]) > std::fabs(column[best])) best = i;
    swapped[k] = best;
    if (best == k) return;
    std::swap_ranges(at(k), at(k) + wide_, at(best));
    std::swap(column[k], column[best]);
    if (&other != &column) std::swap(other[k], other[best]);
  }

  // Every row less so much of rows k and l as they are before.
  void lose(const std::vector<Real>& first, const std::vector<Real>& second, Index k, Index l) {
    constexpr int WIDE = PAD / WIDTH<Real>;
    for (Index column = 0; column < wide_; column += PAD) {
      Vector<Real> upper[WIDE], lower[WIDE];
      for (int v = 0; v < WIDE; ++v) {
        upper[v] = load(at(k) + column + v * WIDTH<Real>);
        lower[v] = load(at(l) + column + v * WIDTH<Real>);
      }
      for (Index i = 0; i < n_; ++i)
        for (int v = 0; v < WIDE; ++v) {
          Real* to = at(i) + column + v * WIDTH<Real>;
          store(to, load(to) - first[i] * upper[v] - second[i] * lower[v]);
        }
    }
  }

  Real* at(Index row) { return inverse_.get() + row * wide_; }

  // visit(head, dependent, weight times the derivative of the log-determinant by it), from an inverse or its change.
  template <class F>
  void each(const F& visit, const Real* inverse) {
    for (Index m = 0; m < n_; ++m) {
      const Real *row = inverse + m * wide_, own = single_root_ && m == 0 ? 0 : row[m];
      visit(0, m + 1, weights_.get()[m] * row[single_root_ ? 0 : m]);
      for (Index h = 0; h < n_; ++h)
        if (h != m)
          visit(h + 1, m + 1, weights_.get()[(h + 1) * wide_ + m] * (own - (single_root_ && h == 0 ? 0 : row[h])));
    }
  }

  Index across_, n_ = 0, wide_ = 0;
  bool single_root_;
  Buffer<Real> weights_, inverse_;
};

TreeResults marginals(const Tensor& arcs, const Maybe& lengths, bool single_root, bool recorded) {
  const Index N = positions_of(arcs, lengths);
  return first_pass<Words>(arcs, lengths, N - 1, arcs.size(0) * N * N * N >= WORTH, recorded, single_root);
}

Tensor marginals_backward(const Tensor& known, const Maybe& lengths, const Tensor& exact, const Tensor& kept,
                          const Tensor& direction, bool single_root) {
  const Index N = positions_of(known, lengths), B = known.size(0);
  expect("d_marginals", direction, {B, N, N});
  return second_pass<Words>(known, lengths, exact, kept, direction, N - 1, B * N * N * N >= WORTH, single_root);
}

}  // namespace

OPERATORS(spanning){
    {"spanning_marginals(Tensor arcs, Tensor? lengths, bool single_root, bool recorded) -> "
     "(Tensor, Tensor, Tensor, Tensor)",
     TORCH_BOX(&marginals)},
    {"spanning_marginals_backward(Tensor marginals, Tensor? lengths, Tensor exact, Tensor kept, "
     "Tensor d_marginals, bool single_root) -> Tensor",
     TORCH_BOX(&marginals_backward)},
    {}};

}  // namespace seqstruct::LEVEL
