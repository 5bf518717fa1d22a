// Charts of spans for dynamic programs over trees: sums over the places at which spans are parted.
//
// A chart has one row for each width w of spans, the span i to i+w at i: so all spans of one width are added up at
// once, and each sum goes along two charts in steps of their own (`add_products`).  Positions of a row behind its last
// span hold 0; so do those before the first of some charts, to which sums over wider spans reach.

#pragma once

#include "inference.h"

namespace seqstruct::LEVEL {
namespace {

constexpr Index LONGEST = 8;  // numbers of a vector at any level

// Rows of `stride` numbers, one for each width, each with room for a whole vector behind its last.
struct Chart {
  Real* first;
  Index stride;
  Real* row(Index width) const { return first + width * stride; }
};

// Where a sum goes along a chart: from here on, by so many numbers for each term.
struct Along {
  const Real* from;
  Index step;
};

// From the item of some width at some position to wider ones at the same left end, to wider ones at the same right end,
// or to narrower ones at the same right end.
enum Way { WIDER, WIDER_LEFT, NARROWER };
struct Walk {
  int item;
  Way way;
  Index width, at;
};

// Of N vectors of sums; few of them are added up in several parts, so that none waits for the one before.
template <int N, int P>
inline void add_block(Index terms, const Along* a, const Along* b, Index at, Real* to) {
  constexpr int PARTS = N < 4 ? 4 / N : 1;
  Vector<Real> sums[PARTS][N] = {};
  const Real *left[P], *right[P];
  for (int p = 0; p < P; ++p) left[p] = a[p].from + at, right[p] = b[p].from + at;
  for (int n = 0; n < N; ++n) sums[0][n] = load(to + at + n * WIDTH<Real>);
  const auto add = [&](int part) {
    for (int p = 0; p < P; left[p] += a[p].step, right[p] += b[p].step, ++p)
      for (int n = 0; n < N; ++n) sums[part][n] += load(left[p] + n * WIDTH<Real>) * load(right[p] + n * WIDTH<Real>);
  };
  Index k = 0;
  for (; k + PARTS <= terms; k += PARTS)
    for (int part = 0; part < PARTS; ++part) add(part);
  for (; k < terms; ++k) add(0);
  for (int n = 0; n < N; ++n) {
    for (int part = 1; part < PARTS; ++part) sums[0][n] += sums[part][n];
    store(to + at + n * WIDTH<Real>, sums[0][n]);
  }
}

// to[i] += the sum over terms k, and over P pairs, of a[k step_a + i] b[k step_b + i], up to a vector behind `count`.
template <int P>
inline void add_products(Index count, Index terms, const Along* a, const Along* b, Real* to) {
  Index i = 0;
  for (; i + 3 * WIDTH<Real> < count; i += 4 * WIDTH<Real>) add_block<4, P>(terms, a, b, i, to);
  for (; i + WIDTH<Real> < count; i += 2 * WIDTH<Real>) add_block<2, P>(terms, a, b, i, to);
  for (; i < count; i += WIDTH<Real>) add_block<1, P>(terms, a, b, i, to);
}

// The charts of one sentence after another, and in the second pass those of their derivatives beside them.  Of ITEMS
// charts the last LATE have room before each row; the first KEPT are what the second pass needs.
template <int ITEMS, int LATE, int KEPT = ITEMS>
class Charts {
 public:
  // A sentence of so many positions; what one of another length left behind is cleared.
  void begin(Index positions) {
    if (positions == N_) return;
    N_ = positions;
    std::fill_n(room_.get(), (1 + tangent_) * size_, Real(0));
  }

  // Numbers of what is kept of a sentence.
  static Index count(Index positions) { return KEPT * positions * (positions + 1) / 2; }

  void keep(Real* to) {
    for (int i = 0; i < KEPT; ++i)
      for (Index w = 0; w < N_; to += N_ - w, ++w) std::copy_n(row(i, w), N_ - w, to);
  }

  void take(const Real* from) {
    for (int i = 0; i < KEPT; ++i)
      for (Index w = 0; w < N_; from += N_ - w, ++w) std::copy_n(from, N_ - w, row(i, w));
  }

 protected:
  // most: positions of the longest sentence.
  Charts(Index most, bool tangent)
      : tangent_(tangent), stride_((most + LONGEST - 1) / LONGEST * LONGEST + LONGEST),
        size_(((ITEMS + LATE) * (most + 1) + 1) * stride_), room_((1 + tangent) * size_) {
    Real* at = room_.get() + stride_;
    for (Chart* charts : {charts_, changes_}) {
      if (charts == changes_ && !tangent) break;
      for (int i = 0; i < ITEMS; ++i) {
        const Index before = i >= ITEMS - LATE ? stride_ : 0;
        charts[i] = {at + before, stride_ + before};
        at += (most + 1) * charts[i].stride;
      }
    }
  }

  Real* row(int item, Index width) { return charts_[item].row(width); }
  Real* change(int item, Index width) { return changes_[item].row(width); }
  Real* result(int item, Index width) { return (tangent_ ? changes_ : charts_)[item].row(width); }

  Along along(const Chart* charts, const Walk& x) {
    const Chart& chart = charts[x.item];
    const Index step = x.way == WIDER ? chart.stride : x.way == WIDER_LEFT ? chart.stride - 1 : 1 - chart.stride;
    return {chart.row(x.width) + x.at, step};
  }

  // What a sum begins with, at all spans of a width; and zeros again behind them, where sums of whole vectors reach.
  Real* begin_sum(int item, Index width, Real value = 0) {
    std::fill_n(result(item, width), N_ - width, value);
    return result(item, width);
  }
  void end_sum(int item, Index width) { std::fill_n(result(item, width) + N_ - width, LONGEST, Real(0)); }

  // Adds products of two items, and in the second pass the derivatives of these.
  void add(Index count, Index terms, const Walk& a, const Walk& b, Real* to) {
    const Along left[2] = {along(charts_, a), along(tangent_ ? changes_ : charts_, a)};
    const Along right[2] = {along(tangent_ ? changes_ : charts_, b), along(charts_, b)};
    if (tangent_) add_products<2>(count, terms, left, right, to);
    else add_products<1>(count, terms, left, right, to);
  }

  Index N_ = 0;
  bool tangent_;
  Index stride_, size_;
  Buffer<Real> room_;
  Chart charts_[ITEMS], changes_[ITEMS];
};

}  // namespace
}  // namespace seqstruct::LEVEL
