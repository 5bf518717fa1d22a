// The vector pushdown automaton within a recurrent network, one step forward or back, for one sequence after another.
//
// The recurrences of seqstruct/ops/pushdown_tape.py.  For each symbol the table holds, for every time, as many rows as
// there are states, each padded with zeros to a cache line; float64 alone.

#include "pushdown.h"

namespace seqstruct {
namespace {

constexpr int PANEL = 8;           // rows that are added at once
constexpr Index SHARED = 1 << 15;  // numbers of a step's part of the table from which several threads are worth it
constexpr Real LARGEST_EXPONENT = 600;  // as in pushdown_layout.py

struct Tape {
  Index batch, states, symbols, size, steps;
  std::vector<Index> offsets;  // of times within a symbol's table

  Tape(Index batch, Index states, Index symbols, Index size, Index steps)
      : batch(batch), states(states), symbols(symbols), size(size), steps(steps), offsets(steps + 2) {
    for (Index t = 0; t <= steps; ++t) offsets[t + 1] = offsets[t] + states * stride(t);
  }
  Index top() const { return states * symbols; }
  Index kept() const { return top() + states; }  // transitions that replace or pop
  Index count() const { return (kept() + top()) * top(); }
  Index narrow() const { return 1 + size; }
  Index width(Index t) const { return narrow() + t * top(); }
  Index stride(Index t) const { return lined(width(t)); }
  Index room() const { return offsets[steps + 1]; }
  Index gates() const { return steps * (steps - 1) / 2 * states * states; }
  // those of row (time, state) that later times have, from time + 2 on, each with states x states numbers
  Index later(Index t) const { return (t * (steps - 1) - t * (t - 1) / 2) * states * states; }
  bool shared(Index now) const { return batch * top() * now * width(now) / 2 >= SHARED; }
  Real* row(Real* table, Index b, Index y, Index t) const { return table + (b * symbols + y) * room() + offsets[t]; }
  Real* link(Real* links, Index b, Index y, Index t) const { return links + (b * symbols + y) * gates() + later(t); }
};

// A row of some table, as far as it has been filled, and the numbers that it is multiplied by for each result.
struct Row {
  const Real *data, *factors;
  Index columns;
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

// As above for any number of rows, none shorter than the one before.
template <int R>
void add_rows_to(const std::vector<Row>& rows, Real* const* to) {
  std::size_t i = 0;
  for (; i + PANEL <= rows.size(); i += PANEL) {
    add_panel<PANEL, R>(0, rows[i].columns, &rows[i], to);
    for (int n = 1; n < PANEL; ++n) add_panel<1, R>(rows[i].columns, rows[i + n].columns, &rows[i + n], to);
  }
  for (; i < rows.size(); ++i) add_panel<1, R>(0, rows[i].columns, &rows[i], to);
}

void add_rows_to(std::vector<Row>& rows, Index results, Real* const* to) {
  for (Index r = 0; r < results;) {
    const Index some = std::min<Index>(results - r, 3);
    if (some == 3) add_rows_to<3>(rows, to + r);
    else if (some == 2) add_rows_to<2>(rows, to + r);
    else add_rows_to<1>(rows, to + r);
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

// Weights of one step, which sum to 1 / total, and the pushed vector.
void weigh(const Tape& s, const Real* controls, Real total, bool sigmoid, Real* weights, Real* pushed) {
  const Index count = s.count();
  const Real largest = *std::max_element(controls, controls + count);
  Real all = 0;
  for (Index i = 0; i < count; ++i) all += weights[i] = std::exp(controls[i] - largest);
  for (Index i = 0; i < count; ++i) weights[i] /= all * total;
  for (Index j = 0; j < s.size; ++j)
    pushed[j] = sigmoid ? 1 / (1 + std::exp(-controls[count + j])) : std::exp(std::min(controls[count + j], LARGEST_EXPONENT));
}

void advance(const Tape& s, Index b, Index now, const Real* weights, const Real* pushed, Real* table, Real* links,
             Real* landed, Real* total, Real* reading) {
  const Index Q = s.states, top = s.top(), narrow = s.narrow(), wide = s.stride(now);
  const Real* push = weights + s.kept() * top;
  Buffer<Real> moved_rows(s.kept() * wide), factors(top * s.kept()), gate_rows(now * Q * Q);
  std::vector<Real*> moved(s.kept());
  std::vector<Row> rows;
  for (Index i = 0; i < s.kept(); ++i) {
    moved[i] = moved_rows.get() + i * wide;
    for (Index k = 0; k < top; ++k) factors.get()[k * s.kept() + i] = weights[i * top + k];
  }
  for (Index k = 0; k < top; ++k)
    rows.push_back({s.row(table, b, k / Q, now) + k % Q * wide, factors.get() + k * s.kept(), wide});
  add_rows_to(rows, s.kept(), moved.data());
  for (Index y = 0; y < s.symbols; ++y) {
    rows.clear();
    for (Index k = 0; k < now; ++k) {
      Real* link = s.link(links, b, y, k) + (now - 1 - k) * Q * Q;  // [r][q]
      for (Index q = 0; q < Q; ++q) {
        for (Index r = 0; r < Q; ++r)
          gate_rows.get()[(k * Q + q) * Q + r] = link[r * Q + q] = moved[top + r][narrow + k * top + y * Q + q];
        rows.push_back({s.row(table, b, y, k) + q * s.stride(k), gate_rows.get() + (k * Q + q) * Q, s.stride(k)});
      }
    }
    add_rows_to(rows, Q, moved.data() + y * Q);
  }
  *total = 0;
  for (Index i = 0; i < top; ++i) {
    landed[i] = 0;
    for (Index k = 0; k < top; ++k) landed[i] += push[i * top + k] * s.row(table, b, k / Q, now)[k % Q * wide];
    Real* row = moved[i];
    row[0] += landed[i];
    for (Index j = 0; j < s.size; ++j) row[1 + j] += landed[i] * pushed[j];
    *total += row[0];
    Real* to = s.row(table, b, i / Q, now + 1) + i % Q * s.stride(now + 1);
    std::copy_n(row, s.width(now), to);
    std::copy_n(push + i * top, top, to + s.width(now));
  }
  for (Index i = 0; i < top; ++i)
    for (Index j = 0; j < s.size; ++j) reading[i * s.size + j] = moved[i][1 + j] / *total;
}

// adjoint: SQ rows as wide as time `steps`, of the column after the step; becomes that of the column before it.
void retreat(const Tape& s, Index b, Index now, const Real* grad, const Real* weights, const Real* pushed, bool sigmoid,
             Real* table, Real* links, const Real* landed, Real total, const Real* reading, Real* adjoint,
             Real* d_controls) {
  const Index Q = s.states, top = s.top(), kept = s.kept(), narrow = s.narrow(), width = s.width(now);
  const Index wide = s.stride(now), across = s.stride(s.steps);
  const Real* push = weights + kept * top;
  Real *d_push = d_controls + kept * top, *d_pushed = d_push + top * top, lost = 0;
  for (Index i = 0; i < top * s.size; ++i) lost += grad[i] / total * reading[i];
  std::fill_n(d_pushed, s.size, Real(0));
  Buffer<Real> moved_rows(kept * wide), into(top), products(std::max(Q * Q, kept * top));
  std::vector<const Real*> moved(kept), before(top), mine(Q), theirs(Q);
  for (Index i = 0; i < top; ++i) {
    Real *row = adjoint + i * across, *to = moved_rows.get() + i * wide;
    row[0] -= lost;
    for (Index j = 0; j < s.size; ++j) row[1 + j] += grad[i * s.size + j] / total;
    std::copy_n(row, s.width(now + 1), s.row(table, b, i / Q, now + 1) + i % Q * s.stride(now + 1));
    std::copy_n(row, width, to);
    into.get()[i] = row[0];
    for (Index j = 0; j < s.size; ++j) {
      into.get()[i] += row[1 + j] * pushed[j];
      d_pushed[j] += landed[i] * row[1 + j];
    }
    before[i] = s.row(table, b, i / Q, now) + i % Q * wide;
  }
  for (Index j = 0; j < s.size; ++j) d_pushed[j] *= sigmoid ? pushed[j] * (1 - pushed[j]) : pushed[j];
  for (Index i = 0; i < kept; ++i) moved[i] = moved_rows.get() + i * wide;
  for (Index y = 0; y < s.symbols; ++y) {
    for (Index r = 0; r < Q; ++r) mine[r] = adjoint + (y * Q + r) * across;
    for (Index k = 0; k < now; ++k) {
      for (Index q = 0; q < Q; ++q) theirs[q] = s.row(table, b, y, k) + q * s.stride(k);
      inner_all(s.stride(k), Q, mine.data(), Q, theirs.data(), products.get());
      for (Index r = 0; r < Q; ++r)
        std::copy_n(products.get() + r * Q, Q, moved_rows.get() + (top + r) * wide + narrow + k * top + y * Q);
    }
  }
  inner_all(wide, kept, moved.data(), top, before.data(), products.get());
  for (Index i = 0; i < kept * top; ++i) d_controls[i] = products.get()[i] * weights[i];
  for (Index i = 0; i < top; ++i)
    for (Index k = 0; k < top; ++k)
      d_push[i * top + k] = (adjoint[i * across + width + k] + into.get()[i] * before[k][0]) * push[i * top + k];
  std::fill_n(adjoint, top * across, Real(0));
  std::vector<Real*> to(top);
  std::vector<Row> rows;
  for (Index i = 0; i < top; ++i) to[i] = adjoint + i * across;
  for (Index i = 0; i < kept; ++i) rows.push_back({moved[i], weights + i * top, wide});
  add_rows_to(rows, top, to.data());
  for (Index i = 0; i < top; ++i)
    for (Index k = 0; k < top; ++k) adjoint[k * across] += push[i * top + k] * into.get()[i];
  for (Index y = 0; y < s.symbols; ++y) {
    rows.clear();
    const Real* link = s.link(links, b, y, now);
    for (Index t = now + 2; t <= s.steps; ++t)
      for (Index r = 0; r < Q; ++r, link += Q)
        rows.push_back({s.row(table, b, y, t) + r * s.stride(t), link, wide});
    add_rows_to(rows, Q, to.data() + y * Q);
  }
  // what stands beyond the column's end came from rows that are wider
  for (Index i = 0; i < top; ++i) std::fill(to[i] + width, to[i] + wide, Real(0));
}

}  // namespace
}  // namespace seqstruct

using seqstruct::Index;
using seqstruct::Tape;

// Numbers of a symbol's part of the table and of its links, and of an adjoint.
extern "C" void pushdown_tape_sizes_f64(Index, Index states, Index symbols, Index size, Index steps, double* sizes) {
  const Tape s(1, states, symbols, size, steps);
  sizes[0] = s.room(), sizes[1] = s.gates(), sizes[2] = s.top() * s.stride(steps);
}

// controls: A+m for each sequence, or null, and then weights and pushed hold those of the step.
extern "C" void pushdown_tape_step_f64(Index threads, Index batch, Index states, Index symbols, Index size, Index steps,
                                       Index now, Index sigmoid, double* table, const double* controls, double* links,
                                       double* weights, double* pushed, double* landed, const double* totals,
                                       double* new_totals, double* readings) {
  const Tape s(batch, states, symbols, size, steps);
#pragma omp parallel for num_threads(threads) if (s.shared(now))
  for (Index b = 0; b < batch; ++b) {
    double *w = weights + b * s.count(), *v = pushed + b * size;
    if (controls) seqstruct::weigh(s, controls + b * (s.count() + size), totals[b], sigmoid, w, v);
    seqstruct::advance(s, b, now, w, v, table, links, landed + b * s.top(), new_totals + b,
                       readings + b * s.top() * size);
  }
}

extern "C" void pushdown_tape_step_back_f64(Index threads, Index batch, Index states, Index symbols, Index size,
                                            Index steps, Index now, Index sigmoid, double* table, const double* grad,
                                            double* links, const double* weights, const double* pushed,
                                            const double* landed, const double* totals, const double* readings,
                                            double* adjoint, double* d_controls) {
  const Tape s(batch, states, symbols, size, steps);
  const Index across = s.top() * s.stride(steps), vectors = s.top() * size;
#pragma omp parallel for num_threads(threads) if (s.shared(steps))
  for (Index b = 0; b < batch; ++b)
    seqstruct::retreat(s, b, now, grad + b * vectors, weights + b * s.count(), pushed + b * size, sigmoid, table, links,
                       landed + b * s.top(), totals[b], readings + b * vectors, adjoint + b * across,
                       d_controls + b * (s.count() + size));
}
