// Sums and inner products of rows of a table, each of a length of its own, in double precision.

#pragma once

#include "pushdown.h"

namespace seqstruct::LEVEL {
namespace {

constexpr int PANEL = 8;  // rows that are added at once

// A row of some table, as far as it has been filled and as there are zeros behind that, and the numbers that it is
// multiplied by for each result.
struct Row {
  const Real *data, *factors;
  Index columns, readable;
};

// to[r] += sum over rows of factors[r] data, for columns from `begin` to `end`.
template <int N, int R>
inline void add_panel(Index begin, Index end, const Row* rows, Real* const* to) {
  const Real* from[N];
  Real* into[R];
  Vector<Real> factors[N][R];
  for (int r = 0; r < R; ++r) into[r] = to[r];
  for (int i = 0; i < N; ++i) {
    from[i] = rows[i].data;
    for (int r = 0; r < R; ++r) factors[i][r] = Vector<Real>{} + rows[i].factors[r];
  }
  for (Index j = begin; j < end; j += LANES) {
    Vector<Real> total[R];
    for (int r = 0; r < R; ++r) total[r] = load(into[r] + j);
    for (int i = 0; i < N; ++i) {
      const Vector<Real> x = load(from[i] + j);
      for (int r = 0; r < R; ++r) total[r] += factors[i][r] * x;
    }
    for (int r = 0; r < R; ++r) store(into[r] + j, total[r]);
  }
}

// As above for any number of rows, none shorter than the one before, from column `begin` on.
template <int R>
void add_rows_to(Index begin, const std::vector<Row>& rows, Real* const* to) {
  std::size_t i = 0;
  for (; i + PANEL <= rows.size(); i += PANEL) {
    const Index common = std::min(rows[i].readable, rows[i + PANEL - 1].columns);
    add_panel<PANEL, R>(begin, common, &rows[i], to);
    for (int n = 1; n < PANEL; ++n)
      if (rows[i + n].columns > common) add_panel<1, R>(common, rows[i + n].columns, &rows[i + n], to);
  }
  for (; i < rows.size(); ++i) add_panel<1, R>(begin, rows[i].columns, &rows[i], to);
}

void add_rows_to(Index begin, std::vector<Row>& rows, Index results, Real* const* to) {
  for (Index r = 0; r < results;) {
    const Index some = std::min<Index>(results - r, 3);
    if (some == 3) add_rows_to<3>(begin, rows, to + r);
    else if (some == 2) add_rows_to<2>(begin, rows, to + r);
    else add_rows_to<1>(begin, rows, to + r);
    for (Row& row : rows) row.factors += some;
    r += some;
  }
}

// Inner products of N rows with R others, over whole vectors.
template <int N, int R>
inline void inner(Index columns, const Real* const* a, const Real* const* b, Real* to) {
  Vector<Real> total[N][R] = {};
  for (Index j = 0; j < columns; j += LANES) {
    Vector<Real> x[N];
    for (int i = 0; i < N; ++i) x[i] = load(a[i] + j);
    for (int r = 0; r < R; ++r) {
      const Vector<Real> y = load(b[r] + j);
      for (int i = 0; i < N; ++i) total[i][r] += x[i] * y;
    }
  }
  for (int i = 0; i < N; ++i)
    for (int r = 0; r < R; ++r) to[i * R + r] = sum<Real>(total[i][r]);
}

// to[i * results + r] for all pairs of rows.
void inner_all(Index columns, Index rows, const Real* const* a, Index results, const Real* const* b, Real* to) {
  Real part[4];
  for (Index i = 0; i < rows; i += 2)
    for (Index r = 0; r < results; r += 2) {
      const bool two = i + 1 < rows, both = r + 1 < results;
      if (two && both) inner<2, 2>(columns, a + i, b + r, part);
      else if (two) inner<2, 1>(columns, a + i, b + r, part);
      else if (both) inner<1, 2>(columns, a + i, b + r, part);
      else inner<1, 1>(columns, a + i, b + r, part);
      const Index wide = both ? 2 : 1;
      for (Index m = 0; m < (two ? 2 : 1); ++m)
        for (Index n = 0; n < wide; ++n) to[(i + m) * results + r + n] = part[m * wide + n];
    }
}

}  // namespace
}  // namespace seqstruct::LEVEL
