// Products of small matrices in double precision, rows of which may lie anywhere.

#pragma once

#include "operators.h"

#include <vector>

namespace seqstruct::LEVEL {
namespace {

using Real = double;

constexpr Index LANES = WIDTH<Real>;
constexpr Index ALIGNED = 8;  // columns of a cache line

constexpr Index lined(Index n) { return (n + ALIGNED - 1) / ALIGNED * ALIGNED; }

// Left operands: element (i, k) of a matrix whose rows have a stride, and of the transpose of one whose rows do not.
struct Plain {
  const Real* data;
  Index stride;
  Real at(Index i, Index k) const { return data[i * stride + k]; }
  Plain from(Index i) const { return {data + i * stride, stride}; }
};

struct Turned {
  const Real* data;
  const Index* rows;
  Real at(Index i, Index k) const { return data[rows[k] + i]; }
  Turned from(Index i) const { return {data + i, rows}; }
};

// Right operand: row k begins at data + rows[k].
struct Rows {
  const Real* data;
  const Index* rows;
};

template <int R, int N, class L>
void cells(Index depth, L a, Rows b, Real* c, Index stride, bool add) {
  Vector<Real> acc[R][N] = {};
  for (Index k = 0; k < depth; ++k) {
    Vector<Real> right[N];
    for (int j = 0; j < N; ++j) right[j] = load(b.data + b.rows[k] + j * LANES);
    for (int i = 0; i < R; ++i) {
      const Real left = a.at(i, k);
      for (int j = 0; j < N; ++j) acc[i][j] += left * right[j];
    }
  }
  for (int i = 0; i < R; ++i)
    for (int j = 0; j < N; ++j) {
      Real* to = c + i * stride + j * LANES;
      store(to, add ? load(to) + acc[i][j] : acc[i][j]);
    }
}

constexpr int fewer(int rows) { return rows > 6 ? 6 : rows > 4 ? 4 : rows - 1; }

template <int R, int N, class L>
void panel(Index rows, Index depth, L a, Rows b, Real* c, Index stride, bool add) {
  for (; rows >= R; rows -= R, a = a.from(R), c += R * stride) cells<R, N>(depth, a, b, c, stride, add);
  if constexpr (R > 1)
    if (rows) panel<fewer(R), N>(rows, depth, a, b, c, stride, add);
}

// c = a b or c += a b; columns a multiple of LANES.
template <class L>
void product(Index rows, Index columns, Index depth, L a, Rows b, Real* c, Index stride, bool add) {
  if (depth <= 0 && add) return;
  for (Index j = 0; j < columns;) {
    const Index left = (columns - j) / LANES;
    const Rows part{b.data + j, b.rows};
    if (left == 3 || left > 4) panel<ROWS, 3>(rows, depth, a, part, c + j, stride, add), j += 3 * LANES;
    else if (left > 1) panel<ROWS, 2>(rows, depth, a, part, c + j, stride, add), j += 2 * LANES;
    else panel<ROWS, 1>(rows, depth, a, part, c + j, stride, add), j += LANES;
  }
}

// to[i * stride + j] += the inner product of row i of a and row j of b, over whole vectors.
inline void add_inner(Index count, const std::vector<const Real*>& a, const std::vector<const Real*>& b, Real* to) {
  constexpr Index M = 4, N = 3;
  const Index rows = a.size(), columns = b.size();
  for (Index i = 0; i < rows; i += M)
    for (Index j = 0; j < columns; j += N) {
      const Real *left[M], *right[N];
      for (Index m = 0; m < M; ++m) left[m] = a[std::min(i + m, rows - 1)];
      for (Index n = 0; n < N; ++n) right[n] = b[std::min(j + n, columns - 1)];
      Vector<Real> acc[M][N] = {};
      for (Index k = 0; k < count; k += LANES) {
        Vector<Real> y[N];
        for (Index n = 0; n < N; ++n) y[n] = load(right[n] + k);
        for (Index m = 0; m < M; ++m) {
          const Vector<Real> x = load(left[m] + k);
          for (Index n = 0; n < N; ++n) acc[m][n] += x * y[n];
        }
      }
      for (Index m = 0; m < std::min(M, rows - i); ++m)
        for (Index n = 0; n < std::min(N, columns - j); ++n) to[(i + m) * columns + j + n] += sum<Real>(acc[m][n]);
    }
}

inline void add_rows(Index count, const Real* x, Real* y) {
  for (Index j = 0; j < count; j += LANES) store(y + j, load(y + j) + load(x + j));
}

}  // namespace
}  // namespace seqstruct::LEVEL
