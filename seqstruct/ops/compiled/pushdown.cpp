// Sums over all runs of a vector pushdown automaton, one batch row after another.
//
// The recurrences of seqstruct/ops/pushdown_scaled.py, whose docstring defines X, g and F; letters as there, double
// precision alone.  X and g are tables by symbol: a row for each (time k, state) and a column for each (time j, state).
// Rows are filled a few times together, from the last ones up, and columns in blocks from the left: all products with
// rows below those times and columns left of the block are then one product of matrices.  The backward pass goes the
// other way and needs adjoint tables of one batch row alone.

#include "tile.h"

#include <numeric>
#include <vector>

namespace seqstruct {
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
  Vector<Real> acc[R][N];
  for (int i = 0; i < R; ++i)
    for (int j = 0; j < N; ++j) acc[i][j] = add ? load(c + i * stride + j * LANES) : Vector<Real>{};
  for (Index k = 0; k < depth; ++k) {
    Vector<Real> right[N];
    for (int j = 0; j < N; ++j) right[j] = load(b.data + b.rows[k] + j * LANES);
    for (int i = 0; i < R; ++i) {
      const Real left = a.at(i, k);
      for (int j = 0; j < N; ++j) acc[i][j] += left * right[j];
    }
  }
  for (int i = 0; i < R; ++i)
    for (int j = 0; j < N; ++j) store(c + i * stride + j * LANES, acc[i][j]);
}

constexpr int fewer(int rows) { return rows > 6 ? 6 : rows > 4 ? 4 : rows - 1; }

template <int R, int N, class L>
void strip(Index rows, Index depth, L a, Rows b, Real* c, Index stride, bool add) {
  for (; rows >= R; rows -= R, a = a.from(R), c += R * stride) cells<R, N>(depth, a, b, c, stride, add);
  if constexpr (R > 1)
    if (rows) strip<fewer(R), N>(rows, depth, a, b, c, stride, add);
}

// c = a b or c += a b; columns a multiple of LANES.
template <class L>
void product(Index rows, Index columns, Index depth, L a, Rows b, Real* c, Index stride, bool add) {
  if (depth <= 0 && add) return;
  for (Index j = 0; j < columns;) {
    const Index left = (columns - j) / LANES;
    const Rows part{b.data + j, b.rows};
    if (left == 3 || left > 4) strip<ROWS, 3>(rows, depth, a, part, c + j, stride, add), j += 3 * LANES;
    else if (left > 1) strip<ROWS, 2>(rows, depth, a, part, c + j, stride, add), j += 2 * LANES;
    else strip<ROWS, 1>(rows, depth, a, part, c + j, stride, add), j += LANES;
  }
}

// to[i * stride + j] += the inner product of row i of a and row j of b, over whole vectors.
void add_inner(Index count, const std::vector<const Real*>& a, const std::vector<const Real*>& b, Real* to) {
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

void add_rows(Index count, const Real* x, Real* y) {
  for (Index j = 0; j < count; j += LANES) store(y + j, load(y + j) + load(x + j));
}

// Where things lie in the tables of a batch row.
struct Layout {
  Index batch, steps, symbols, states, width;
  Index top, block, group, side, end;
  Index size, turned_size;
  // of X and g by (time, state); of X transposed; of matrices whose rows have side, end, W or SQ columns
  std::vector<Index> rows, turned, by_side, by_end, by_width, by_top;

  Layout(Index batch, Index steps, Index symbols, Index states, Index size_of_vectors)
      : batch(batch), steps(steps), symbols(symbols), states(states), width(size_of_vectors + 1),
        top(symbols * states), block(ALIGNED / std::gcd(ALIGNED, states)), size(0), turned_size(0) {
    while (block * states < 2 * ALIGNED) block *= 2;
    group = std::max<Index>(1, block / 2);
    side = block * states;
    end = lined((steps + 1) * states);
    for (Index k = 0; k < steps; k += group)
      for (Index i = 0; i < std::min(group, steps - k) * states; ++i, size += stride(k)) rows.push_back(size - start(k));
    for (Index j = 0; j <= steps; ++j)
      for (Index r = 0; r < states; ++r, turned_size += std::min(start(j) + side, end)) turned.push_back(turned_size);
    for (Index i = 0; i < std::max((steps + 1) * states, std::max(2 * top, width)); ++i) {
      by_side.push_back(i * side);
      by_end.push_back(i * end);
      by_width.push_back(i * W());
      by_top.push_back(i * top);
    }
  }

  Index W() const { return lined(width); }
  Index start(Index time) const { return time / block * side; }       // first column of the block
  Index stride(Index time) const { return end - start(time); }        // of X and g
  Index columns(Index at) const { return std::min(side, end - at); }  // in the block that begins there
  // of the first row of a time and a column of it
  Index row(Index time, Index column = 0) const { return rows[time * states] + column; }
};

// The weights of a batch row's steps, and their gradients.
template <class T>
struct Weights {
  T *moves, *pops;  // T B 2SQ SQ, T B S Q Q
  const Layout& s;
  T* move(Index step, Index b) const { return moves + (step * s.batch + b) * 2 * s.top * s.top; }
  T* pop(Index step, Index b) const { return pops + (step * s.batch + b) * s.top * s.states; }
};

// Phase 1: x and g, S tables each.
void inside(const Layout& s, const Weights<const Real> weights, Index b, Real* x, Real* g) {
  const Index Q = s.states, T = s.steps, top = s.top;
  Buffer<Real> last_row(top * s.side), both(2 * top * s.side);
  Real *last = last_row.get(), *carried = both.get();
  for (Index first = (T - 1) / s.group * s.group; first >= 0; first -= s.group) {
    const Index beyond = std::min(first + s.group, T), stride = s.stride(first);
    for (Index at = s.start(first); at < s.end; at += s.side) {
      const Index columns = s.columns(at), J = at / Q, J_end = std::min(J + s.block - 1, T);
      for (Index z = 0; z < s.symbols; ++z) {
        Real *xz = x + z * s.size, *gz = g + z * s.size;
        product((beyond - first) * Q, columns, (J - beyond) * Q, Plain{gz + s.row(first, beyond * Q), stride},
                Rows{xz + at, s.rows.data() + beyond * Q}, xz + s.row(first, at), stride, false);
        for (Index q = 0; q < Q; ++q) {
          Real* to = last + (z * Q + q) * s.side;
          if (beyond < T && s.start(beyond) <= at) std::copy_n(xz + s.row(beyond, at) + q * s.stride(beyond), columns, to);
          else std::fill_n(to, columns, Real(0));
        }
      }
      for (Index k = beyond - 1; k >= first; --k) {
        product(2 * top, columns, top, Plain{weights.move(k, b), top}, Rows{last, s.by_side.data()}, carried, s.side,
                false);
        for (Index z = 0; z < s.symbols; ++z) {
          Real *xz = x + z * s.size, *gz = g + z * s.size, *x_row = xz + s.row(k, at), *g_row = gz + s.row(k, at);
          for (Index q = 0; q < Q; ++q) {
            std::copy_n(carried + (z * Q + q) * s.side, columns, g_row + q * stride);
            add_rows(columns, carried + (top + z * Q + q) * s.side, x_row + q * stride);
          }
          const auto add = [&](Index from, Index to) {  // what goes through times from .. to-1
            product(Q, columns, (to - from) * Q, Plain{gz + s.row(k, from * Q), stride},
                    Rows{xz + at, s.rows.data() + from * Q}, x_row, stride, true);
          };
          if (J > beyond) add(k + 2, beyond), add(J, J_end);
          else add(k + 2, J_end);
          for (Index q = 0; q < Q; ++q) {
            Real* row = x_row + q * stride;
            if (s.start(k + 1) == at)
              for (Index r = 0; r < Q; ++r) row[(k + 1 - J) * Q + r] += weights.pop(k, b)[(z * Q + q) * Q + r];
            std::copy_n(row, columns, last + (z * Q + q) * s.side);
          }
        }
      }
    }
  }
}

// Phase 2: F, S (T+1) Q 1+m.
void outside(const Layout& s, const Weights<const Real> weights, Index b, const Real* g, const Real* pushed,
             const Real* bottom, Real* ending) {
  const Index Q = s.states, top = s.top, width = s.width, W = s.W(), table = (s.steps + 1) * Q * width;
  Buffer<Real> turned(s.symbols * width * s.end), sums(s.symbols * width * s.side), before(top * W), after(top * W),
      across(top * top), vector(W);
  Real *last = before.get(), *now = after.get(), *v = vector.get();
  v[0] = 1;
  for (Index at = 0; at < s.end; at += s.side) {
    const Index columns = s.columns(at), J = at / Q, J_end = std::min(J + s.block, s.steps + 1);
    const auto add = [&](Index z, Index from, Index to, bool more) {
      product(width, columns, (to - from) * Q, Plain{turned.get() + z * width * s.end + from * Q, s.end},
              Rows{g + z * s.size + at, s.rows.data() + from * Q}, sums.get() + z * width * s.side, s.side, more);
    };
    for (Index z = 0; z < s.symbols; ++z) add(z, 0, J, false);
    for (Index j = J; j < J_end; ++j, std::swap(last, now)) {
      if (j == 0) {
        now[0] = 1;
        std::copy_n(bottom + b * (width - 1), width - 1, now + 1);
      } else {
        const Real* moves = weights.move(j - 1, b);
        std::copy_n(pushed + ((j - 1) * s.batch + b) * (width - 1), width - 1, v + 1);
        for (Index i = 0; i < top; ++i)
          for (Index k = 0; k < top; ++k) across.get()[k * top + i] = moves[(top + i) * top + k];
        product(top, W, top, Plain{across.get(), top}, Rows{last, s.by_width.data()}, now, W, false);
        for (Index y = 0; y < top; ++y) {
          Real landed = 0;
          for (Index i = 0; i < top; ++i) landed += last[i * W] * moves[i * top + y];
          add_scaled(W, landed, v, now + y * W);
        }
      }
      for (Index z = 0; z < s.symbols; ++z)
        for (Index r = 0; r < Q; ++r)
          for (Index c = 0; c < width; ++c) {
            Real& cell = now[(z * Q + r) * W + c];
            cell += sums.get()[(z * width + c) * s.side + (j - J) * Q + r];
            turned.get()[(z * width + c) * s.end + j * Q + r] = ending[z * table + (j * Q + r) * width + c] = cell;
          }
      if (j < s.steps && j + 2 < J_end)
        for (Index z = 0; z < s.symbols; ++z) add(z, j, j + 1, true);
    }
  }
}

// Adjoints of F, S (T+1) Q W, from upstream gradients, in place; gradients of the steps' weights and vectors.
void outside_adjoint(const Layout& s, const Weights<const Real> weights, Index b, const Real* g, const Real* pushed,
                     const Real* ending, Real* adjoint, const Weights<Real> d_weights, Real* d_pushed) {
  const Index Q = s.states, T = s.steps, top = s.top, width = s.width, W = s.W();
  const Index table = (T + 1) * Q * W, narrow = (T + 1) * Q * width, across = lined(top);
  Buffer<Real> vector(W), later_row(top * W), turned(width * across), former(top * width), back_row(top * W),
      outer(top * across), d_vector(W), into(across);
  std::vector<Index> by_across(width);
  for (Index c = 0; c < width; ++c) by_across[c] = c * across;
  Real *v = vector.get(), *later = later_row.get(), *back = back_row.get();
  v[0] = 1;
  for (Index first = (T - 1) / s.group * s.group; first >= 0; first -= s.group) {
    const Index beyond = std::min(first + s.group, T), stride = s.stride(first);
    const auto add = [&](Index k, Index times, Index z, Index from, Index to) {
      product(times * Q, W, (to - from) * Q, Plain{g + z * s.size + s.row(k, from * Q), stride},
              Rows{adjoint + z * table + from * Q * W, s.by_width.data()}, adjoint + z * table + k * Q * W, W, true);
    };
    for (Index z = 0; z < s.symbols; ++z) add(first, beyond - first, z, beyond, T + 1);
    for (Index k = beyond - 1; k >= first; --k) {
      const Real* moves = weights.move(k, b);
      std::copy_n(pushed + (k * s.batch + b) * (width - 1), width - 1, v + 1);
      for (Index z = 0; z < s.symbols; ++z) {
        add(k, 1, z, k + 2, beyond);
        std::copy_n(adjoint + z * table + (k + 1) * Q * W, Q * W, later + z * Q * W);
        std::copy_n(ending + z * narrow + k * Q * width, Q * width, former.get() + z * Q * width);
      }
      for (Index y = 0; y < top; ++y) {
        into.get()[y] = dot(W, later + y * W, v);
        for (Index c = 0; c < width; ++c) turned.get()[c * across + y] = later[y * W + c];
      }
      product(top, W, top, Plain{moves + top * top, top}, Rows{later, s.by_width.data()}, back, W, false);
      product(top, across, width, Plain{former.get(), width}, Rows{turned.get(), by_across.data()}, outer.get(), across,
              false);
      Real* d_moves = d_weights.move(k, b);
      std::fill_n(d_vector.get(), W, Real(0));
      for (Index y = 0; y < top; ++y) {
        Real landed = 0;
        for (Index i = 0; i < top; ++i) {
          landed += former.get()[i * width] * moves[i * top + y];
          back[i * W] += moves[i * top + y] * into.get()[y];
          d_moves[i * top + y] = former.get()[i * width] * into.get()[y];
          d_moves[(top + i) * top + y] = outer.get()[i * across + y];
        }
        add_scaled(W, landed, later + y * W, d_vector.get());
      }
      std::copy_n(d_vector.get() + 1, width - 1, d_pushed + (k * s.batch + b) * (width - 1));
      for (Index z = 0; z < s.symbols; ++z)
        add_rows(Q * W, back + z * Q * W, adjoint + z * table + k * Q * W);
    }
  }
}

// x transposed: rows (j, r), columns (i, t).
void turn(const Layout& s, const Real* x, Real* to) {
  const Index filled = s.steps * s.states, columns = (s.steps + 1) * s.states;
  for (Index i = 0; i < s.end; i += LANES)
    for (Index j = i / s.side * s.side; j < s.end; j += LANES) {
      Vector<Real> a[LANES], b[LANES];
      for (Index r = 0; r < LANES; ++r) a[r] = i + r < filled ? load(x + s.rows[i + r] + j) : Vector<Real>{};
      for (int round = 1; round < LANES; round *= 2) {
        for (int r = 0; r < LANES / 2; ++r)
          interleave<Real>(a[r], a[r + LANES / 2], b[2 * r], b[2 * r + 1], std::make_index_sequence<LANES>{});
        for (int r = 0; r < LANES; ++r) a[r] = b[r];
      }
      for (Index r = 0; r < LANES && j + r < columns; ++r) store(to + s.turned[j + r] + i, a[r]);
    }
}

// Phase 1 backwards: adds to the gradients of moves, sets those of pops.  dx and dg may hold anything where x and g are
// zero by their shape: only those zeros are multiplied by them.
void inside_adjoint(const Layout& s, const Weights<const Real> weights, Index b, const Real* x, const Real* g,
                    const Real* turned_x, const Real* ending, const Real* turned_adjoint, Real* dx, Real* dg,
                    const Weights<Real> d_weights) {
  const Index Q = s.states, T = s.steps, top = s.top;
  Buffer<Real> last_rows(2 * top * s.side), back(top * s.side);
  Real *last = last_rows.get();
  std::vector<const Real*> left(2 * top), right(top);
  const auto keep = [&](Index k, Index at, Index columns, Index z) {
    for (Index q = 0; q < Q; ++q) {
      const Index from = z * s.size + s.row(k, at) + q * s.stride(k);
      std::copy_n(dg + from, columns, last + (z * Q + q) * s.side);
      std::copy_n(dx + from, columns, last + (top + z * Q + q) * s.side);
    }
  };
  for (Index first = 0; first < T; first += s.group) {
    const Index beyond = std::min(first + s.group, T), stride = s.stride(first), rows = (beyond - first) * Q;
    for (Index at = (s.end - 1) / s.side * s.side; at >= s.start(first); at -= s.side) {
      const Index columns = s.columns(at), J = at / Q, J_end = std::min(J + s.block, T + 1);
      for (Index z = 0; z < s.symbols; ++z) {
        const Index table = z * s.size, here = table + s.row(first, at);
        product(rows, columns, first * Q, Turned{g + table + first * Q, s.rows.data()},
                Rows{dx + table + at, s.rows.data()}, dx + here, stride, false);
        product(rows, columns, s.width, Plain{ending + (z * (T + 1) + first) * Q * s.width, s.width},
                Rows{turned_adjoint + z * s.width * s.end + at, s.by_end.data()}, dg + here, stride, false);
        product(rows, columns, (T + 1 - J_end) * Q, Plain{dx + table + s.row(first, J_end * Q), stride},
                Rows{turned_x + z * s.turned_size + at, s.turned.data() + J_end * Q}, dg + here, stride, true);
        if (first) keep(first - 1, at, columns, z);
      }
      for (Index k = first; k < beyond; ++k) {
        if (k)
          product(top, columns, 2 * top, Turned{weights.move(k - 1, b), s.by_top.data()}, Rows{last, s.by_side.data()},
                  back.get(), s.side, false);
        for (Index z = 0; z < s.symbols; ++z) {
          const Index table = z * s.size, here = table + s.row(k, at);
          for (Index q = 0; q < Q && k; ++q) add_rows(columns, back.get() + (z * Q + q) * s.side, dx + here + q * stride);
          product(Q, columns, (k - 1 - first) * Q, Turned{g + table + k * Q, s.rows.data() + first * Q},
                  Rows{dx + table + at, s.rows.data() + first * Q}, dx + here, stride, true);
          const Index from = std::max(J + 1, k + 3);
          product(Q, columns, (J_end - from) * Q, Plain{dx + table + s.row(k, from * Q), stride},
                  Rows{turned_x + z * s.turned_size + at, s.turned.data() + from * Q}, dg + here, stride, true);
          keep(k, at, columns, z);
        }
      }
    }
    for (Index k = first; k < beyond; ++k) {
      const Index at = (k + 2) * Q / ALIGNED * ALIGNED;
      for (Index y = 0; y < top; ++y) {
        const Index z = y / Q, q = y % Q, here = z * s.size + s.row(k) + q * stride;
        for (Index r = 0; r < Q; ++r) d_weights.pop(k, b)[y * Q + r] = dx[here + (k + 1) * Q + r];
        if (k + 1 == T) continue;
        left[y] = dg + (here + at), left[top + y] = dx + (here + at);
        right[y] = x + (z * s.size + s.rows[(k + 1) * Q + q] + at);
      }
      if (k + 1 < T) add_inner(s.end - at, left, right, d_weights.move(k, b));
    }
  }
}

void backward(Index threads, const Layout& s, const Weights<const Real> weights, const Real* pushed, const Real* x,
              const Real* g, const Real* ending, const Real* grad, const Weights<Real> d_weights, Real* d_pushed,
              Real* d_bottom) {
  const Index S = s.symbols, W = s.W(), cells = (s.steps + 1) * s.states, F = S * cells * s.width;
#pragma omp parallel num_threads(threads)
  {
    Buffer<Real> adjoint(S * cells * W), turned_adjoint(S * s.width * s.end), turned_x(S * s.turned_size),
        dx(S * s.size), dg(S * s.size);
#pragma omp for schedule(dynamic)
    for (Index b = 0; b < s.batch; ++b) {
      const Real *xb = x + b * S * s.size, *gb = g + b * S * s.size, *ending_b = ending + b * F;
      for (Index i = 0; i < S * cells; ++i)
        std::copy_n(grad + b * F + i * s.width, s.width, adjoint.get() + i * W);
      outside_adjoint(s, weights, b, gb, pushed, ending_b, adjoint.get(), d_weights, d_pushed);
      std::copy_n(adjoint.get() + 1, s.width - 1, d_bottom + b * (s.width - 1));
      for (Index z = 0; z < S; ++z) {
        for (Index i = 0; i < cells; ++i)
          for (Index c = 0; c < s.width; ++c)
            turned_adjoint.get()[(z * s.width + c) * s.end + i] = adjoint.get()[(z * cells + i) * W + c];
        turn(s, xb + z * s.size, turned_x.get() + z * s.turned_size);
      }
      inside_adjoint(s, weights, b, xb, gb, turned_x.get(), ending_b, turned_adjoint.get(), dx.get(), dg.get(),
                     d_weights);
    }
  }
}

}  // namespace
}  // namespace seqstruct

using seqstruct::Index;
using seqstruct::Layout;

// Numbers in each of the tables x and g.
extern "C" void pushdown_size_f64(Index, Index batch, Index steps, Index symbols, Index states, double* size) {
  *size = batch * symbols * Layout(1, steps, symbols, states, 0).size;
}

extern "C" void pushdown_forward_f64(Index threads, Index batch, Index steps, Index symbols, Index states, Index size,
                                     const double* moves, const double* pops, const double* pushed,
                                     const double* bottom, double* x, double* g, double* ending) {
  const Layout s(batch, steps, symbols, states, size);
  const Index table = symbols * s.size, cells = symbols * (steps + 1) * states * s.width;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (Index b = 0; b < batch; ++b) {
    seqstruct::inside(s, {moves, pops, s}, b, x + b * table, g + b * table);
    seqstruct::outside(s, {moves, pops, s}, b, g + b * table, pushed, bottom, ending + b * cells);
  }
}

extern "C" void pushdown_backward_f64(Index threads, Index batch, Index steps, Index symbols, Index states, Index size,
                                      const double* moves, const double* pops, const double* pushed, const double* x,
                                      const double* g, const double* ending, const double* grad, double* d_moves,
                                      double* d_pops, double* d_pushed, double* d_bottom) {
  const Layout s(batch, steps, symbols, states, size);
  seqstruct::backward(threads, s, {moves, pops, s}, pushed, x, g, ending, grad, {d_moves, d_pops, s}, d_pushed,
                      d_bottom);
}
