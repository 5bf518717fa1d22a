// One step of the vector pushdown automaton, written into the table of those before.
//
// The recurrence of seqstruct/ops/pushdown_recurrence.py, with the table of seqstruct/ops/pushdown_step.py.  Nearly all
// of the time goes into reading that table, row after row; float64 alone.

#include "tile.h"

namespace seqstruct {
namespace {

constexpr Index CHUNK = 32;        // times whose rows lie together
constexpr Index PIECE = 512;       // columns that a thread takes
constexpr Index SHARED = 1 << 17;  // numbers of the table from which a step is worth several threads
constexpr int PANEL = 8;           // rows that are added at once

struct Sizes {
  Index batch, states, symbols, size, done, room;  // done: steps before this one; room: numbers for each symbol

  Index top() const { return states * symbols; }
  Index narrow() const { return 1 + size; }
  Index kept() const { return top() + states; }  // transitions that replace or pop
  Index width(Index time) const { return narrow() + time * top(); }
  Index wide(Index place) const { return width((place + 1) * CHUNK - 1); }
  // where the rows of a time begin
  Index row(Index time) const {
    const Index n = time / CHUNK;
    return CHUNK * states * (n * narrow() + top() * (CHUNK * n * (n + 1) / 2 - n)) +
           time % CHUNK * states * wide(n);
  }
  Index stride() const { return padded(width(done)); }
  Index rows() const { return (kept() + ROWS - 1) / ROWS * ROWS; }
  bool shared() const { return batch * top() * done * width(done) / 2 >= SHARED; }
};

// What one sequence needs: weights [replace (y, r); pop r; push (y, r)] x (x, q), the last column, its product with the
// first two, and for each symbol gp (times q) x r.
struct Scratch {
  double *weights, *last, *moved, *gates;

  static Index count(const Sizes& s) {
    return padded((s.rows() + s.top()) * s.top()) + (s.top() + s.rows()) * s.stride() +
           padded(s.done * s.top() * s.states);
  }
  Scratch(const Sizes& s, double* from, Index sequence) {
    weights = from + sequence * count(s);
    last = weights + padded((s.rows() + s.top()) * s.top());
    moved = last + s.top() * s.stride();
    gates = moved + s.rows() * s.stride();
  }
  double* push(const Sizes& s) const { return weights + s.rows() * s.top(); }
};

// Weights that sum to 1 / total; rows are padded after those that replace and pop.
void weigh(const Sizes& s, const double* logits, double total, const Scratch& x) {
  const Index top = s.top(), each = 2 * top + s.states;
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (Index i = 0; i < top * each; ++i) largest = std::max(largest, logits[i]);
  const auto put = [&](double* to, double logit) { sum += *to = std::exp(logit - largest); };
  for (Index q = 0; q < s.states; ++q)
    for (Index y = 0; y < s.symbols; ++y) {
      const double *from = logits + (q * s.symbols + y) * each, *replace = from + top, *pop = replace + top;
      double* to = x.weights + y * s.states + q;
      for (Index r = 0; r < s.states; ++r) {
        for (Index z = 0; z < s.symbols; ++z) {
          put(to + (z * s.states + r) * top, replace[r * s.symbols + z]);
          put(x.push(s) + (z * s.states + r) * top + y * s.states + q, from[r * s.symbols + z]);
        }
        put(to + (top + r) * top, pop[r]);
      }
    }
  for (Index i = 0; i < (s.rows() + top) * top; ++i) x.weights[i] /= sum * total;
}

// The products of the last column, and from them gp.
void move(const Sizes& s, const double* table, const Scratch& x) {
  const Index width = s.width(s.done), stride = s.stride(), from = s.row(s.done), wide = s.wide(s.done / CHUNK);
  for (Index y = 0; y < s.symbols; ++y)
    for (Index r = 0; r < s.states; ++r)
      std::copy_n(table + y * s.room + from + r * wide, width, x.last + (y * s.states + r) * stride);
  product(s.rows(), stride, s.top(), plain(x.weights, s.top()), x.last, stride, x.moved, stride, false);
  for (Index r = 0; r < s.states; ++r) {
    const double* popped = x.moved + (s.top() + r) * stride + s.narrow();
    for (Index k = 0; k < s.done; ++k)
      for (Index y = 0; y < s.symbols; ++y)
        for (Index q = 0; q < s.states; ++q)
          x.gates[((y * s.done + k) * s.states + q) * s.states + r] = *popped++;
  }
}

// to[r] += sum over N neighbouring rows of gate[row][r] from[row], for R of the `states` r.
template <int N, int R>
inline void add_rows(Index columns, const double* from, Index stride, const double* gates, Index states, double* to,
                     Index to_stride) {
  Vector<double> gate[N][R];
  for (int i = 0; i < N; ++i)
    for (int r = 0; r < R; ++r) gate[i][r] = Vector<double>{} + gates[i * states + r];
  Index j = 0;
  for (; j + WIDTH<double> <= columns; j += WIDTH<double>) {
    Vector<double> total[R];
    for (int r = 0; r < R; ++r) total[r] = load(to + r * to_stride + j);
    for (int i = 0; i < N; ++i) {
      const Vector<double> row = load(from + i * stride + j);
      for (int r = 0; r < R; ++r) total[r] += gate[i][r] * row;
    }
    for (int r = 0; r < R; ++r) store(to + r * to_stride + j, total[r]);
  }
  for (; j < columns; ++j)
    for (int i = 0; i < N; ++i)
      for (int r = 0; r < R; ++r) to[r * to_stride + j] += gates[i * states + r] * from[i * stride + j];
}

template <int N>
inline void add_rows(const Sizes& s, Index columns, const double* from, Index stride, const double* gates, double* to) {
  for (Index r = 0; r < s.states;) {
    const Index left = s.states - r;
    double* row = to + r * s.stride();
    if (left == 1) add_rows<N, 1>(columns, from, stride, gates + r, s.states, row, s.stride()), r += 1;
    else if (left == 3) add_rows<N, 3>(columns, from, stride, gates + r, s.states, row, s.stride()), r += 3;
    else add_rows<N, 2>(columns, from, stride, gates + r, s.states, row, s.stride()), r += 2;
  }
}

// Columns `begin` to `end` of one symbol's product of gp with the rows of all times but the last.
void add_table(const Sizes& s, Index begin, Index end, const double* table, const double* gates, double* to) {
  for (Index first = 0; first < s.done; first += CHUNK) {
    const Index rows = std::min(CHUNK, s.done - first) * s.states, wide = s.wide(first / CHUNK);
    const double* chunk = table + s.row(first) + begin;
    for (Index row = 0, count; row < rows; row += count) {
      count = rows - row >= PANEL ? PANEL : 1;
      Index columns = std::min(s.width(first + (row + count - 1) / s.states), end) - begin;
      if (columns <= 0) continue;
      // to the end of a vector, where there are zeros to be read
      const Index whole = (columns + WIDTH<double> - 1) / WIDTH<double> * WIDTH<double>;
      if (begin + whole <= wide) columns = whole;
      const double *from = chunk + row * wide, *gate = gates + (first * s.states + row) * s.states;
      if (count == PANEL) add_rows<PANEL>(s, columns, from, wide, gate, to + begin);
      else add_rows<1>(s, columns, from, wide, gate, to + begin);
    }
  }
}

// The new column into the table, its total and the readings; zeros where it is out of range.
bool finish(const Sizes& s, const double* pushed, double smallest, double largest, const Scratch& x, double* table,
            double* total, double* reading) {
  const Index top = s.top(), width = s.width(s.done), stride = s.stride(), wide = s.wide((s.done + 1) / CHUNK);
  double* to = table + s.row(s.done + 1);
  const auto place = [&](Index i) { return to + i / s.states * s.room + i % s.states * wide; };
  *total = 0;
  bool in_range = true;
  for (Index i = 0; i < top; ++i) {
    double *row = x.moved + i * stride, landed = 0;
    const double* push = x.push(s) + i * top;
    for (Index k = 0; k < top; ++k) landed += push[k] * x.last[k * stride];
    row[0] += landed;
    for (Index j = 0; j < s.size; ++j) row[1 + j] += landed * pushed[j];
    *total += row[0];
    Index outside = 0;
    for (Index j = s.narrow(); j < width; ++j) outside += !(row[j] <= largest);
    for (Index k = 0; k < top; ++k) outside += !(push[k] <= largest);
    in_range = in_range && !outside;
    std::copy_n(row, width, place(i));
    std::copy_n(push, top, place(i) + width);
  }
  in_range = in_range && *total >= smallest;
  if (!in_range) {
    *total = 1;
    for (Index i = 0; i < top; ++i) std::fill_n(place(i), width + top, 0.0);
  }
  for (Index i = 0; i < top; ++i)
    for (Index j = 0; j < s.size; ++j)
      reading[(i % s.states * s.symbols + i / s.states) * s.size + j] = place(i)[1 + j] / *total;
  return in_range;
}

void step(Index threads, const Sizes s, double* table, const double* inputs, Index inputs_stride, const double* totals,
          const bool* scaled, double smallest, double largest, double* new_totals, double* readings, bool* new_scaled) {
  const Index pieces = threads > 1 ? (s.width(s.done) + PIECE - 1) / PIECE : 1;
  const Index transitions = s.top() * (s.kept() + s.top());
  Buffer<double> room(s.batch * Scratch::count(s));
#pragma omp parallel num_threads(threads) if (s.shared())
  {
#pragma omp for schedule(static)
    for (Index b = 0; b < s.batch; ++b) {
      const Scratch x(s, room.get(), b);
      if (scaled[b]) {
        weigh(s, inputs + b * inputs_stride, totals[b], x);
        move(s, table + b * s.symbols * s.room, x);
      }
    }
#pragma omp for schedule(dynamic)
    for (Index i = 0; i < s.batch * s.symbols * pieces; ++i) {
      // the first columns, where most rows are, first
      const Index group = i % (s.batch * s.symbols), piece = i / (s.batch * s.symbols);
      const Index b = group / s.symbols, y = group % s.symbols, width = s.width(s.done);
      const Scratch x(s, room.get(), b);
      if (scaled[b])
        add_table(s, piece * PIECE, pieces == 1 ? width : std::min(width, (piece + 1) * PIECE), table + group * s.room,
                  x.gates + y * s.done * s.states * s.states, x.moved + y * s.states * s.stride());
    }
#pragma omp for schedule(static)
    for (Index b = 0; b < s.batch; ++b) {
      const Scratch x(s, room.get(), b);
      const bool in_range = finish(s, inputs + b * inputs_stride + transitions, smallest, largest, x,
                                   table + b * s.symbols * s.room, new_totals + b,
                                   readings + b * s.top() * s.size);
      new_scaled[b] = scaled[b] && in_range;
    }
  }
}

}  // namespace
}  // namespace seqstruct

using seqstruct::Index;

extern "C" void pushdown_step_f64(Index threads, Index batch, Index states, Index symbols, Index size, Index done,
                                  Index room, double* table, const double* inputs, Index inputs_stride,
                                  const double* totals, const bool* scaled, double smallest, double largest,
                                  double* new_totals, double* readings, bool* new_scaled) {
  seqstruct::step(threads, {batch, states, symbols, size, done, room}, table, inputs, inputs_stride, totals, scaled,
                  smallest, largest, new_totals, readings, new_scaled);
}
