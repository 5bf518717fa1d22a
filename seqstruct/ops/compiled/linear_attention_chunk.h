// A chunk of causal attention through a memory of fixed size: its features, its decays, and what it writes.
//
// The recurrences of seqstruct/ops/memory/linear_attention.py, whose docstrings define every tensor; letters as there,
// G for batch and heads merged.

#pragma once

#include "linear_attention.h"

namespace seqstruct::LEVEL {
namespace {

constexpr Index CHUNK = 32;
constexpr Index KEPT = 8;  // chunks between two stored memories
constexpr Index SPAN = CHUNK * KEPT;

struct Sizes {
  Index groups, steps, dim, features, value_dim, kind, normed;
  double floor;

  bool projected() const { return kind == SINUSOIDS || kind == RELU; }
  Index rows() const { return kind == SINUSOIDS ? features / 2 : projected() ? features : 0; }
  Index D() const { return padded(dim); }
  Index M() const { return padded(rows()); }
  // sines and cosines are padded each for itself
  Index N() const { return kind == SINUSOIDS ? 2 * M() : padded(features); }
  Index E() const { return padded(value_dim); }
  Index place(Index feature) const {
    return kind == SINUSOIDS && feature >= rows() ? feature - rows() + M() : feature;
  }
  Index stored() const { return (steps + SPAN - 1) / SPAN; }
};

// Features of a chunk, and what their derivative needs.
template <class T>
struct Mapped {
  Buffer<T> features, unit, factor;
  explicit Mapped(const Sizes& s) : features(CHUNK * s.N()), unit(CHUNK * s.D()), factor(CHUNK) {}
};

template <class T>
class Map {
 public:
  explicit Map(const Sizes& s)
      : s_(s), rows_(s.M() * s.D()), rows_t_(s.M() * s.D()), bias_(s.M()), angles_(CHUNK * s.M()),
        d_rows_(s.M() * s.D()), d_bias_(s.M()) {}

  void begin(const T* rows, const T* bias) {
    if (!s_.projected()) return;
    take(s_.rows(), s_.dim, rows, s_.dim, rows_.get(), s_.D(), s_.M());
    transpose(s_.M(), s_.D(), rows_.get(), s_.D(), rows_t_.get(), s_.M());
    if (bias) std::copy(bias, bias + s_.rows(), bias_.get());
    std::fill(d_rows_.get(), d_rows_.get() + s_.M() * s_.D(), T(0));
    std::fill(d_bias_.get(), d_bias_.get() + s_.M(), T(0));
  }

  void end(T* d_rows, T* d_bias) {
    if (d_rows) put(s_.rows(), s_.dim, d_rows_.get(), s_.D(), d_rows, s_.dim);
    if (d_bias) std::copy(d_bias_.get(), d_bias_.get() + s_.rows(), d_bias);
  }

  void apply(Index count, Index rows, const T* x, Mapped<T>& result) {
    const Index N = s_.N(), D = s_.D(), M = s_.M();
    T *f = result.features.get(), *unit = result.unit.get(), *factor = result.factor.get();
    if (!s_.projected()) {
      take(count, s_.dim, x, s_.dim, f, N, rows);
      if (s_.kind == ELU) {
        for (Index i = 0; i < count; ++i) {
          T* row = f + i * N;
          T* copy = unit;
          for (Index j = 0; j < N; j += WIDTH<T>) {
            const Vector<T> v = load(row + j);
            store(copy + j, v > 0 ? v : Vector<T>{});
            store(row + j, v > 0 ? Vector<T>{} : v);  // NaN too
          }
          exponentials(N, row);
          for (Index j = 0; j < N; j += WIDTH<T>) store(row + j, load(row + j) + load(copy + j));
          std::fill(row + s_.features, row + N, T(0));
        }
      }
      return;
    }
    take(count, s_.dim, x, s_.dim, unit, D, rows);
    if (s_.normed)
      for (Index i = 0; i < count; ++i) {
        const T norm = std::sqrt(dot(D, unit + i * D, unit + i * D));
        factor[i] = norm == 0 ? T(1) : 1 / norm;
        scale(D, factor[i], unit + i * D);
      }
    T* angles = s_.kind == RELU ? f : angles_.get();
    product(rows, M, s_.dim, plain(unit, D), rows_t_.get(), M, angles, M, false);
    if (s_.kind == RELU) {
      for (Index i = 0; i < rows; ++i)
        for (Index j = 0; j < M; j += WIDTH<T>) {
          const Vector<T> v = load(f + i * M + j) + load(bias_.get() + j);
          store(f + i * M + j, i >= count || v < 0 ? Vector<T>{} : v);  // NaN stays
        }
      return;
    }
    for (Index i = 0; i < rows; ++i) {
      T *sine = f + i * N, *cosine = sine + M;
      if (i < count) sinusoids(M, angles + i * M, sine, cosine);
      std::fill(i < count ? cosine + s_.rows() : sine, cosine + M, T(0));
    }
  }

  // d (CHUNK N) is overwritten; the gradient for x is written to d_x (count dim).
  void apply_backward(Index count, Index rows, T* d, Mapped<T>& saved, T* d_x) {
    const Index N = s_.N(), D = s_.D(), M = s_.M();
    T *f = saved.features.get(), *unit = saved.unit.get();
    if (!s_.projected()) {
      if (s_.kind == ELU)
        for (Index j = 0; j < count * N; j += WIDTH<T>) {
          const Vector<T> v = load(f + j);
          store(d + j, v < 1 ? load(d + j) * v : load(d + j));
        }
      put(count, s_.dim, d, N, d_x, s_.dim);
      return;
    }
    T* angles = s_.kind == RELU ? d : angles_.get();
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < M; j += WIDTH<T>) {
        const Index at = i * N + j;
        if (s_.kind == RELU) {
          store(d + at, load(f + at) > 0 ? load(d + at) : Vector<T>{});
          store(d_bias_.get() + j, load(d_bias_.get() + j) + load(d + at));
        } else {
          store(angles + i * M + j, load(d + at) * load(f + at + M) - load(d + at + M) * load(f + at));
        }
      }
    product(M, D, count, transposed(angles, M), unit, D, d_rows_.get(), D, true);
    T* result = d_unit_.get();
    product(rows, D, s_.rows(), plain(angles, M), rows_.get(), D, result, D, false);
    if (s_.normed)
      for (Index i = 0; i < count; ++i) {
        add_scaled(D, -dot(D, unit + i * D, result + i * D), unit + i * D, result + i * D);
        scale(D, saved.factor.get()[i], result + i * D);
      }
    put(count, s_.dim, result, D, d_x, s_.dim);
  }

 private:
  Sizes s_;
  Buffer<T> rows_, rows_t_, bias_, angles_, d_rows_, d_bias_, d_unit_{CHUNK * s_.D()};
};

// Decays inside a chunk; all 1 where nothing decays.
template <class T>
struct Decays {
  Buffer<T> pair{CHUNK * CHUNK}, begin{CHUNK}, end{CHUNK};
  T whole = 1;
  bool any = false;

  void set(Index count, const double* log_decay) {
    any = log_decay != nullptr;
    if (!any) return;
    const double *inside = log_decay + 1, last = inside[count - 1];
    for (Index t = 0; t < count; ++t) {
      begin.get()[t] = T(inside[t] - log_decay[0]);
      end.get()[t] = T(last - inside[t]);
      T* row = pair.get() + t * CHUNK;
      for (Index s = 0; s <= t; ++s) row[s] = std::min(T(inside[t] - inside[s]), T(0));
      std::fill(row + t + 1, row + CHUNK, T(0));
      exponentials(CHUNK, row);
    }
    std::fill(begin.get() + count, begin.get() + CHUNK, T(0));
    std::fill(end.get() + count, end.get() + CHUNK, T(0));
    exponentials(CHUNK, begin.get());
    exponentials(CHUNK, end.get());
    whole = begin.get()[count - 1];
  }

  // Lower triangle of x, rows of CHUNK, times the decays between pairs.
  void weigh(Index rows, T* x) {
    if (any)
      for (Index j = 0; j < rows * CHUNK; j += WIDTH<T>) store(x + j, load(x + j) * load(pair.get() + j));
    keep_triangle(rows, x, CHUNK);
  }
};

// y = rows of x, each times its factor.
template <class T>
void scale_rows(Index rows, Index columns, const T* x, const T* factors, T* y) {
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; j += WIDTH<T>) store(y + i * columns + j, load(x + i * columns + j) * factors[i]);
}

// Memory and total of one group, or of one of its stored ones, into padded ones, and back.
template <class T>
void take_state(const Sizes& s, Index slot, const T* memories, const T* totals, T* memory, T* total) {
  std::fill_n(memory, s.N() * s.E(), T(0));
  std::fill_n(total, s.N(), T(0));
  for (Index i = 0, at = slot * s.features; i < s.features; ++i, ++at) {
    std::copy_n(memories + at * s.value_dim, s.value_dim, memory + s.place(i) * s.E());
    total[s.place(i)] = totals[at];
  }
}

template <class T>
void put_state(const Sizes& s, Index slot, const T* memory, const T* total, T* memories, T* totals) {
  for (Index i = 0, at = slot * s.features; i < s.features; ++i, ++at) {
    std::copy_n(memory + s.place(i) * s.E(), s.value_dim, memories + at * s.value_dim);
    totals[at] = total[s.place(i)];
  }
}

// Keys of a chunk as they are written: times their weights, and times their decays where there are any.
template <class T>
struct Keys {
  Buffer<T> weighted, ended;
  explicit Keys(const Sizes& s) : weighted(CHUNK * s.N()), ended(CHUNK * s.N()) {}

  void set(const Sizes& s, Index count, Index rows, Mapped<T>& mapped, const T* weight, Decays<T>& decays) {
    T factors[CHUNK] = {};
    std::fill(factors, factors + count, T(1));
    if (weight) std::copy(weight, weight + count, factors);
    scale_rows(rows, s.N(), mapped.features.get(), factors, weighted.get());
    if (decays.any) scale_rows(rows, s.N(), weighted.get(), decays.end.get(), ended.get());
  }
  T* written(const Decays<T>& decays) { return decays.any ? ended.get() : weighted.get(); }
};

template <class T>
struct Given {
  const T *query, *key, *value, *weight;
  const double* log_decay;
  const T *rows, *bias;
};

// One chunk at a time of one group: what it writes to the memory before it, and how it reads.
template <class T>
struct Chunk {
  const Sizes s;
  const Given<T> x;
  Map<T> map;
  Mapped<T> q, k;
  Keys<T> keys;
  Decays<T> decays;
  Buffer<T> values, turned, scores, begun;
  T* reading = nullptr;  // features of queries, times their decays since the chunk began
  Index group = 0, count = 0, all = 0, at = 0;

  Chunk(const Sizes& s, const Given<T>& x)
      : s(s), x(x), map(s), q(s), k(s), keys(s), values(CHUNK * s.E()), turned(CHUNK * std::max(s.N(), s.E())),
        scores(CHUNK * CHUNK), begun(CHUNK * s.N()) {}

  void enter(Index g) {
    group = g;
    map.begin(x.rows ? x.rows + g * s.rows() * s.dim : nullptr, x.bias ? x.bias + g * s.rows() : nullptr);
  }

  void take_keys(Index start) {
    count = std::min(CHUNK, s.steps - start), all = padded(count), at = group * s.steps + start;
    map.apply(count, all, x.key + at * s.dim, k);
    take(count, s.value_dim, x.value + at * s.value_dim, s.value_dim, values.get(), s.E(), all);
    decays.set(count, x.log_decay ? x.log_decay + group * (s.steps + 1) + start : nullptr);
    keys.set(s, count, all, k, x.weight ? x.weight + at : nullptr, decays);
  }

  // Queries of the same chunk, and their scores for its keys.
  void take_queries() {
    const Index N = s.N();
    map.apply(count, all, x.query + at * s.dim, q);
    transpose(all, N, keys.weighted.get(), N, turned.get(), CHUNK);
    product_lower(all, N, plain(q.features.get(), N), turned.get(), CHUNK, scores.get(), CHUNK);
    decays.weigh(all, scores.get());
    reading = q.features.get();
    if (decays.any) scale_rows(all, N, q.features.get(), decays.begin.get(), reading = begun.get());
  }

  // The memory and total before the chunk become those after it.
  void write(T* memory, T* total) {
    const Index N = s.N(), E = s.E();
    const T* written = keys.written(decays);
    if (decays.whole != 1) {
      scale(N * E, decays.whole, memory);
      scale(N, decays.whole, total);
    }
    product(N, E, count, transposed(written, N), values.get(), E, memory, E, true);
    for (Index i = 0; i < count; ++i) add_scaled(N, T(1), written + i * N, total);
  }
};

}  // namespace
}  // namespace seqstruct::LEVEL
