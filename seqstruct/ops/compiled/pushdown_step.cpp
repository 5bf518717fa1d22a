// Steps of the vector pushdown automaton: forward, in decoding and within a recurrent network, and back.
//
// The recurrences of seqstruct/ops/pushdown/columns.py and tape.py, with the table of the former.  Nearly all of the
// time goes into reading that table, row after row; float64 alone.

#include "pushdown_rows.h"

namespace seqstruct::LEVEL {
namespace {

constexpr Index PIECE = 512;            // columns that a thread takes
constexpr Index SHARED = 1 << 16;       // numbers of a step's part of the table from which several threads are worth it
constexpr Real LARGEST_EXPONENT = 600;  // as in layout.py

enum Kind : Index { GIVEN, EXP, SIGMOID };  // what a pushed vector is of its controls, as in compiled.py

// Where the columns lie, as `Columns` has it, of times before `after`; room: numbers for each symbol.
struct Table {
  Index batch, states, symbols, size, times, room, filled = 0;  // filled: of `room`, by these times
  std::vector<Index> offsets, strides;  // of times within a symbol's part, and of their rows

  Table(Index batch, Index states, Index symbols, Index size, Index chunk, Index times, Index room, Index after)
      : batch(batch), states(states), symbols(symbols), size(size), times(times), room(room) {
    offsets.reserve(after), strides.reserve(after);
    Index& at = filled;
    for (Index t = 0; t < after;) {
      const Index stop = std::min(t + chunk, times), wide = lined(width(stop - 1));
      for (; t < std::min(stop, after); ++t, at += states * wide) offsets.push_back(at), strides.push_back(wide);
    }
  }
  Index top() const { return states * symbols; }
  Index kept() const { return top() + states; }  // transitions that replace or pop
  Index count() const { return (kept() + top()) * top(); }
  Index narrow() const { return 1 + size; }
  Index width(Index t) const { return narrow() + t * top(); }
  Index wide(Index t) const { return lined(width(t)); }
  Index stride(Index t) const { return strides[t]; }
  bool shared(Index t) const { return batch * top() * t * width(t) / 2 >= SHARED; }
  Real* of(Real* table, Index b) const { return table + b * symbols * room; }
  Real* row(Real* table, Index b, Index y, Index t) const { return of(table, b) + y * room + offsets[t]; }

  // Of a tape: what row (t, q) of the table is multiplied by for later times, from t + 2 on, states x states numbers.
  Real* link(Real* links, Index b, Index y, Index t) const {
    const Index steps = times - 1, squared = states * states;
    return links + ((b * symbols + y) * steps * (steps - 1) / 2 + t * (steps - 1) - t * (t - 1) / 2) * squared;
  }
};

// What a step is given and what it gives.  order: where the controls stand that steps need one after the other, and
// readings go by state first; null where they stand so, and readings go by symbol first.  weights .. links: what a tape
// keeps; null in decoding.  Without controls weights and vectors are those of the step already.
struct Step {
  Index done, kind;
  Real* table;
  const Real* controls;
  const Index* order;
  Real *weights, *vectors, *landed, *links;
  const Real* totals;
  const bool* scaled;
  Real smallest, largest;
  Real *new_totals, *readings;
  bool* new_scaled;
  std::vector<Index> before = {}, after = {};  // where the rows of the last column and of the new one begin
};

// For one sequence: the product of replace and pop with the last column, gp for each symbol, and what a tape keeps.
struct Scratch {
  Real *moved, *gates, *weights, *vector, *landed;

  static Index moved_of(const Table& s, Index done) { return s.kept() * s.wide(done); }
  static Index gates_of(const Table& s, Index done) { return lined(s.symbols * done * s.states * s.states); }
  static Index count(const Table& s, Index done) {
    return moved_of(s, done) + gates_of(s, done) + lined(s.count() + s.narrow() + s.top());
  }
  Scratch(const Table& s, const Step& step, Real* from, Index b)
      : moved(from + b * count(s, step.done)), gates(moved + moved_of(s, step.done)),
        weights(gates + gates_of(s, step.done)), vector(weights + s.count()), landed(vector + s.narrow()) {
    if (!step.weights) return;
    weights = step.weights + b * s.count(), vector = step.vectors + b * s.narrow(), landed = step.landed + b * s.top();
  }
};

// Weights of one step, which sum to 1 / total, and the pushed vector behind a 1.
void weigh(const Table& s, const Step& step, Index b, const Scratch& x) {
  const Index count = s.count();
  const Real *controls = step.controls + b * (count + s.size), *pushed = controls + count;
  const Real largest = *std::max_element(controls, pushed);
  Real all = 0;
  for (Index i = 0; i < count; ++i) all += x.weights[i] = std::exp(controls[step.order ? step.order[i] : i] - largest);
  for (Index i = 0; i < count; ++i) x.weights[i] /= all * step.totals[b];
  x.vector[0] = 1;
  for (Index j = 0; j < s.size; ++j)
    x.vector[1 + j] = step.kind == GIVEN     ? pushed[j]
                      : step.kind == SIGMOID ? 1 / (1 + std::exp(-pushed[j]))
                                             : std::exp(std::min(pushed[j], LARGEST_EXPONENT));
}

void move(const Table& s, const Step& step, Index b, const Scratch& x) {
  const Index Q = s.states, top = s.top(), now = step.done, wide = s.wide(now);
  product(s.kept(), wide, top, Plain{x.weights, top}, Rows{s.of(step.table, b), step.before.data()}, x.moved, wide,
          false);
  Real* gate = x.gates;  // [q][r] for each symbol and time
  for (Index y = 0; y < s.symbols; ++y)
    for (Index k = 0; k < now; ++k, gate += Q * Q) {
      const Real* popped = x.moved + top * wide + s.narrow() + k * top + y * Q;
      for (Index q = 0; q < Q; ++q)
        for (Index r = 0; r < Q; ++r) gate[q * Q + r] = popped[r * wide + q];
      if (!step.links) continue;
      Real* link = s.link(step.links, b, y, k) + (now - 1 - k) * Q * Q;
      for (Index r = 0; r < Q; ++r) std::copy_n(popped + r * wide, Q, link + r * Q);
    }
}

// Columns `begin` to `end` of one symbol's product of gp with the rows of all times but the last.
void add_table(const Table& s, const Step& step, Index b, Index y, Index begin, Index end, const Scratch& x,
               std::vector<Row>& rows, std::vector<Real*>& to) {
  const Index Q = s.states, now = step.done, wide = s.wide(now);
  const Real *symbol = s.row(step.table, b, y, 0), *gate = x.gates + y * now * Q * Q;
  rows.clear(), to.clear();
  for (Index r = 0; r < Q; ++r) to.push_back(x.moved + (y * Q + r) * wide);
  for (Index k = 0; k < now; ++k, gate += Q * Q) {
    const Index columns = std::min(s.wide(k), end), stride = s.stride(k);
    for (Index q = 0; q < Q && columns > begin; ++q)
      rows.push_back({symbol + s.offsets[k] + q * stride, gate + q * Q, columns, stride});
  }
  add_rows_to(begin, rows, Q, to.data());
}

// The new column into the table, its total and the readings; zeros where it is out of range.
void finish(const Table& s, const Step& step, Index b, const Scratch& x) {
  const Index Q = s.states, top = s.top(), wide = s.wide(step.done), width = s.width(step.done);
  const Real* push = x.weights + s.kept() * top;
  Real total = 0, *table = s.of(step.table, b), *reading = step.readings + b * top * s.size;
  Index outside = 0;
  for (Index i = 0; i < top; ++i, push += top) {
    Real* row = x.moved + i * wide;
    x.landed[i] = 0;
    for (Index k = 0; k < top; ++k) x.landed[i] += push[k] * table[step.before[k]];
    for (Index j = 0; j < s.narrow(); ++j) row[j] += x.landed[i] * x.vector[j];
    total += row[0];
    for (Index j = s.narrow(); j < width; ++j) outside += !(row[j] <= step.largest);
    for (Index k = 0; k < top; ++k) outside += !(push[k] <= step.largest);
    std::copy_n(row, width, table + step.after[i]);
    std::copy_n(push, top, table + step.after[i] + width);
  }
  const bool in_range = step.scaled[b] && !outside && total >= step.smallest;
  if (!in_range) {
    total = 1;
    for (Index i = 0; i < top; ++i) std::fill_n(table + step.after[i], width + top, Real(0));
  }
  for (Index i = 0; i < top; ++i) {
    const Index at = step.order ? i % Q * s.symbols + i / Q : i;
    for (Index j = 0; j < s.size; ++j) reading[at * s.size + j] = table[step.after[i] + 1 + j] / total;
  }
  step.new_totals[b] = total;
  step.new_scaled[b] = in_range;
}

void advance(const Table& s, Step step) {
  for (Index y = 0; y < s.symbols; ++y)
    for (Index q = 0; q < s.states; ++q) {
      step.before.push_back(y * s.room + s.offsets[step.done] + q * s.stride(step.done));
      step.after.push_back(y * s.room + s.offsets[step.done + 1] + q * s.stride(step.done + 1));
    }
  const bool worth = s.shared(step.done);
  const Index wide = s.wide(step.done), some = s.batch * s.symbols;
  const Index pieces = worth && torch::stable::get_num_threads() > 1 ? (wide + PIECE - 1) / PIECE : 1;
  Buffer<Real> room(s.batch * Scratch::count(s, step.done));
  share(s.batch, [&](Index thread, Index threads) {
    for (Index b = thread; b < s.batch; b += threads) {
      if (!step.scaled[b]) continue;
      const Scratch x(s, step, room.get(), b);
      if (step.controls) weigh(s, step, b, x);
      move(s, step, b, x);
    }
  }, worth);
  share(some * pieces, [&](Index thread, Index threads) {
    std::vector<Row> rows;
    std::vector<Real*> to;
    rows.reserve(step.done * s.states);
    for (Index i = thread; i < some * pieces; i += threads) {
      // the first columns, where most rows are, first
      const Index group = i % some, piece = i / some, b = group / s.symbols;
      const Index end = pieces == 1 ? wide : std::min(wide, (piece + 1) * PIECE);
      if (step.scaled[b])
        add_table(s, step, b, group % s.symbols, piece * PIECE, end, {s, step, room.get(), b}, rows, to);
    }
  }, worth);
  share(s.batch, [&](Index thread, Index threads) {
    for (Index b = thread; b < s.batch; b += threads) finish(s, step, b, {s, step, room.get(), b});
  }, worth);
}

// adjoint: SQ rows as wide as time `steps`, of the column after the step; becomes that of the column before it.
void retreat(const Table& s, Index b, Index now, const Real* grad, const Real* weights, const Real* vectors,
             bool sigmoid, Real* table, Real* links, const Real* landed, Real total, const Real* reading, Real* adjoint,
             Real* d_controls) {
  const Index Q = s.states, top = s.top(), kept = s.kept(), narrow = s.narrow(), width = s.width(now);
  const Index wide = s.stride(now), across = s.stride(s.times - 1);
  const Real *push = weights + kept * top, *pushed = vectors + 1;
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
  for (Index i = 0; i < kept; ++i) rows.push_back({moved[i], weights + i * top, wide, wide});
  add_rows_to(0, rows, top, to.data());
  for (Index i = 0; i < top; ++i)
    for (Index k = 0; k < top; ++k) adjoint[k * across] += push[i * top + k] * into.get()[i];
  for (Index y = 0; y < s.symbols; ++y) {
    rows.clear();
    const Real* link = s.link(links, b, y, now);
    for (Index t = now + 2; t < s.times; ++t)
      for (Index r = 0; r < Q; ++r, link += Q)
        rows.push_back({s.row(table, b, y, t) + r * s.stride(t), link, wide, wide});
    add_rows_to(0, rows, Q, to.data() + y * Q);
  }
  // what stands beyond the column's end came from rows that are wider
  for (Index i = 0; i < top; ++i) std::fill(to[i] + width, to[i] + wide, Real(0));
}

// The table of times before `after`, if numbers and tensors, which may be missing in decoding, go together.
Table table_of(const Tensor& table, Index states, Index symbols, Index size, Index chunk, Index times, Index after,
               const Maybe& weights, const Maybe& vectors, const Maybe& landed, const Maybe& links,
               const Tensor& totals, const Tensor& readings) {
  expect(states > 0 && symbols > 0 && size >= 0 && chunk > 0, "one state, symbol and time of a chunk or more");
  expect(after >= 2 && after <= times, "a time before the last of the table");
  expect("table", table, {ANY, symbols, ANY});
  const Table s(table.size(0), states, symbols, size, chunk, times, table.size(2), after);
  expect(s.filled <= s.room, "a table with room for these times");
  expect_count("weights", weights, s.batch * s.count());
  expect_count("vectors", vectors, s.batch * s.narrow());
  expect_count("landed", landed, s.batch * s.top());
  expect_count("links", links, s.batch * symbols * (times - 1) * (times - 2) / 2 * states * states);
  expect_count("totals", totals, s.batch);
  expect_count("readings", readings, s.batch * s.top() * size);
  return s;
}

// Tensors of `Step`: `totals` and `scaled` before the step, and results.
void step(Index states, Index symbols, Index size, Index chunk, Index times, Index done, Index kind, double smallest,
          double largest, const Tensor& table, const Maybe& controls, const Maybe& order, const Maybe& weights,
          const Maybe& vectors, const Maybe& landed, const Maybe& links, const Tensor& totals, const Tensor& scaled,
          const Tensor& new_totals, const Tensor& readings, const Tensor& new_scaled) {
  const Table s = table_of(table, states, symbols, size, chunk, times, done + 2, weights, vectors, landed, links,
                           totals, readings);
  expect(kind >= GIVEN && kind <= SIGMOID, "a kind of vectors from 0 to 2");
  expect(bool(weights) == bool(vectors) && bool(weights) == bool(landed), "all that a tape keeps, or nothing");
  expect(controls || weights, "controls, or the weights of the step");
  expect_count("controls", controls, s.batch * (s.count() + size));
  expect_count("order", order, s.count() + size);
  expect_below("order", order, s.count() + size);
  expect_count("scaled", scaled, s.batch);
  expect_count("new_totals", new_totals, s.batch);
  expect_count("new_scaled", new_scaled, s.batch);
  advance(s,
          {done, kind, numbers<Real>(table), numbers<Real>(controls), numbers<Index>(order), numbers<Real>(weights),
           numbers<Real>(vectors), numbers<Real>(landed), numbers<Real>(links), numbers<Real>(totals),
           numbers<bool>(scaled), smallest, largest, numbers<Real>(new_totals), numbers<Real>(readings),
           numbers<bool>(new_scaled)});
}

void step_backward(Index states, Index symbols, Index size, Index times, Index now, bool sigmoid, const Tensor& table,
                   const Tensor& grad, const Tensor& weights, const Tensor& vectors, const Tensor& landed,
                   const Tensor& links, const Tensor& totals, const Tensor& readings, const Tensor& adjoint,
                   const Tensor& d_controls) {
  expect(now >= 0 && now + 2 <= times, "a time before the last of the table");
  const Table s = table_of(table, states, symbols, size, 1, times, times, weights, vectors, landed, links, totals,
                           readings);
  const Index across = s.top() * s.stride(times - 1), vector = s.top() * size;
  expect_count("grad", grad, s.batch * vector);
  expect_count("adjoint", adjoint, s.batch * across);
  expect_count("d_controls", d_controls, s.batch * (s.count() + size));
  const Real *total = numbers<Real>(totals), *weight = numbers<Real>(weights), *pushed = numbers<Real>(vectors),
             *land = numbers<Real>(landed), *reading = numbers<Real>(readings), *d_reading = numbers<Real>(grad);
  Real *columns = numbers<Real>(table), *link = numbers<Real>(links), *pending = numbers<Real>(adjoint),
       *to = numbers<Real>(d_controls);
  share(s.batch, [&](Index thread, Index threads) {
    for (Index b = thread; b < s.batch; b += threads)
      retreat(s, b, now, d_reading + b * vector, weight + b * s.count(), pushed + b * s.narrow(), sigmoid, columns,
              link, land + b * s.top(), total[b], reading + b * vector, pending + b * across,
              to + b * (s.count() + size));
  }, s.shared(times - 1));
}

}  // namespace

OPERATORS(pushdown_step){
    {"pushdown_step(SymInt states, SymInt symbols, SymInt size, SymInt chunk, SymInt times, SymInt done, int kind, "
     "float smallest, float largest, Tensor(a!) table, Tensor? controls, Tensor? order, Tensor(b!)? weights, "
     "Tensor(c!)? vectors, Tensor(d!)? landed, Tensor(e!)? links, Tensor totals, Tensor scaled, "
     "Tensor(f!) new_totals, Tensor(g!) readings, Tensor(h!) new_scaled) -> ()",
     TORCH_BOX(&step)},
    {"pushdown_step_backward(SymInt states, SymInt symbols, SymInt size, SymInt times, SymInt now, bool sigmoid, "
     "Tensor(a!) table, Tensor grad, Tensor weights, Tensor vectors, Tensor landed, Tensor links, Tensor totals, "
     "Tensor readings, Tensor(b!) adjoint, Tensor(c!) d_controls) -> ()",
     TORCH_BOX(&step_backward)},
    {}};

}  // namespace seqstruct::LEVEL
