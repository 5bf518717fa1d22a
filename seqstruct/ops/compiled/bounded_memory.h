// A memory of slots and one chunk of steps: its weights, what its queries see, and the memory after it.
//
// The recurrences of seqstruct/ops/memory/bounded_memory.py, whose docstrings define every tensor.  A memory is
// relative to exp(level), the running maximum of its slots' controls, except within a chunk, whose weights and memory
// are relative to exp(base).  Keys in memory are kept transposed, D N.

#pragma once

#include "operators.h"

namespace seqstruct::LEVEL {
namespace {

constexpr Index CHUNK = 32;
constexpr Index SPAN = CHUNK * 8;
constexpr double LOWEST = -1e30;
constexpr double MOST_RISE = 60;

struct Sizes {
  Index groups, steps, dim, slots, value_dim;
  bool means, empty;

  Index D() const { return padded(dim); }
  Index N() const { return padded(slots); }
  Index E() const { return padded(value_dim); }
  Index stored() const { return (steps + SPAN - 1) / SPAN; }
  Index state() const { return slots * (dim + value_dim + 1); }
};

template <class T, int STEP, std::size_t... I>
inline Vector<T> exchanged(Vector<T> x, std::index_sequence<I...>) {
  return __builtin_shufflevector(x, x, (I ^ STEP)...);
}

// In every lane, `combine` of all lanes.
template <class T, int STEP = WIDTH<T> / 2, class F>
inline Vector<T> reduced(Vector<T> x, F combine) {
  x = combine(x, exchanged<T, STEP>(x, std::make_index_sequence<WIDTH<T>>{}));
  if constexpr (STEP > 1) return reduced<T, STEP / 2>(x, combine);
  else return x;
}

// Rows of a chunk that can be read in whole vectors and blocks: a copy unless they lie so already.
template <class T>
inline const T* rows_of(Index count, Index all, const T* from, Index columns, Buffer<T>& copy) {
  if (count == all && columns == padded(columns)) return from;
  take(count, columns, from, columns, copy.get(), padded(columns), all);
  return copy.get();
}

// Rows that are read soon, of which the processor does not foresee when.
template <class T>
inline void prefetch(const T* from, Index count) {
  for (Index i = 0; i < count; i += 64 / Index(sizeof(T))) __builtin_prefetch(from + i, 0, 2);
}

// Where rows are to be written in whole vectors and blocks: in place, or in a buffer from which `settle` copies them.
template <class T>
inline T* place(Index count, Index all, T* to, Index columns, Buffer<T>& copy) {
  return count == all && columns == padded(columns) ? to : copy.get();
}

template <class T>
inline void settle(Index count, Index columns, const T* from, T* to) {
  if (from != to) put(count, columns, from, padded(columns), to, columns);
}

// A memory with the weights of the chunk that is written to it next.
template <class T>
struct Record {
  Index start = 0, count = 0;
  bool rises_before = false, rises_after = false;  // whether `before` or `after` contains a factor other than 1
  Buffer<T> alpha, before, after, key_t, value, total;

  explicit Record(const Sizes& s)
      : alpha(CHUNK * s.N()), before(s.N()), after(s.N()), key_t(s.D() * s.N()), value(s.N() * s.E()), total(s.N()) {}

  void take_state(const Sizes& s, const T* from) {
    take(s.dim, s.slots, from, s.slots, key_t.get(), s.N(), s.D());
    take(s.slots, s.value_dim, from + s.dim * s.slots, s.value_dim, value.get(), s.E(), s.N());
    take(1, s.slots, from + s.slots * (s.dim + s.value_dim), s.slots, total.get(), s.N(), 1);
  }

  void put_state(const Sizes& s, T* to) {
    put(s.dim, s.slots, key_t.get(), s.N(), to, s.slots);
    put(s.slots, s.value_dim, value.get(), s.E(), to + s.dim * s.slots, s.value_dim);
    put(1, s.slots, total.get(), s.N(), to + s.slots * (s.dim + s.value_dim), s.slots);
  }

  void copy_state(const Sizes& s, Record& from) {
    std::copy_n(from.key_t.get(), s.D() * s.N(), key_t.get());
    std::copy_n(from.value.get(), s.N() * s.E(), value.get());
    std::copy_n(from.total.get(), s.N(), total.get());
  }

  void scale_state(const Sizes& s, const T* factors) {
    const Index N = s.N(), E = s.E();
    for (Index i = 0; i < s.D(); ++i)
      for (Index j = 0; j < N; j += WIDTH<T>)
        store(key_t.get() + i * N + j, load(key_t.get() + i * N + j) * load(factors + j));
    for (Index i = 0; i < s.slots; ++i) {
      if (factors[i] != 1) scale(E, factors[i], value.get() + i * E);
      total.get()[i] *= factors[i];
    }
  }
};

// Controls C of one group, and where its chunks end: they are quartered where a control rises too far above the base.
template <class T, class C>
class Controls {
 public:
  explicit Controls(const Sizes& s) : s_(s), level_(s.N()), base_(s.N()), most_(s.N()) {}

  void begin(const C* control) { control_ = control; }
  C* level() { return level_.get(); }

  // Calls each(start, stop) for every chunk; each must call `weigh`.
  template <class F>
  void chunks(Index start, Index stop, F& each) {
    for (; start < stop; start += CHUNK) chunk(start, std::min(start + CHUNK, stop), each);
  }

  // Weights of the chunk relative to its base, and the factors of the memory before and after it.
  void weigh(Index start, Index stop, Record<T>& record) {
    const Index count = stop - start, N = s_.N();
    T* alpha = record.alpha.get();
    record.start = start, record.count = count;
    for (Index t = 0; t < count; ++t) subtract(s_.slots, control_ + (start + t) * s_.slots, base_.get(), alpha + t * N);
    if (s_.means) exponentials(count * N, alpha);
    if (N != s_.slots)
      for (Index t = 0; t < count; ++t) std::fill(alpha + t * N + s_.slots, alpha + (t + 1) * N, T(0));
    std::fill(alpha + count * N, alpha + padded(count) * N, T(0));
    if (!s_.means) return;
    record.rises_before = factors(level_.get(), base_.get(), record.before.get());
    for (Index n = 0; n < s_.slots; ++n) level_.get()[n] = std::max(base_.get()[n], most_.get()[n]);
    record.rises_after = factors(base_.get(), level_.get(), record.after.get());
  }

 private:
  static void subtract(Index count, const C* __restrict x, const C* __restrict y, T* __restrict result) {
    for (Index i = 0; i < count; ++i) result[i] = T(x[i] - y[i]);
  }

  // exp(old - now); whether any is not 1.
  bool factors(const C* old, const C* now, T* result) {
    subtract(s_.N(), old, now, result);
    exponentials(s_.N(), result);
    return std::any_of(result, result + s_.N(), [](T x) { return x != 1; });
  }

  template <class F>
  void chunk(Index start, Index stop, F& each) {
    if (!s_.means || !rises(start, stop)) {
      each(start, stop);
      return;
    }
    const Index step = std::max<Index>(1, (stop - start) / 4);
    for (; start < stop; start += step) chunk(start, std::min(start + step, stop), each);
  }

  // Sets the base, which the first query sees or else the first write reaches, and the maximum.
  bool rises(Index start, Index stop) {
    const C* first = control_ + start * s_.slots;
    C *base = base_.get(), *most = most_.get();
    std::copy_n(first, s_.slots, most);
    for (Index t = start + 1; t < stop; ++t)
      for (Index n = 0; n < s_.slots; ++n) {
        const C c = control_[t * s_.slots + n];
        most[n] = most[n] < c ? c : most[n];
      }
    bool steep = false;
    for (Index n = 0; n < s_.slots; ++n) {
      C reached = first[n];
      if (level_.get()[n] < C(LOWEST / 2))
        for (Index t = 1; reached == -std::numeric_limits<C>::infinity() && t < stop - start; ++t)
          reached = first[t * s_.slots + n];
      base[n] = std::max(level_.get()[n], reached);
      steep |= most[n] - base[n] > C(MOST_RISE);
    }
    return steep && stop - start > 1;
  }

  Sizes s_;
  const C* control_ = nullptr;
  Buffer<C> level_, base_, most_;
};

// What a weight adds to its slot's total: itself for means, whether it is there for sums.
template <class T>
inline Vector<T> counted(const Sizes& s, const T* alpha) {
  const Vector<T> none{};
  return s.means ? load(alpha) : load(alpha) != 0 ? none + T(1) : none;
}

// What the queries of a chunk see of the slots, and the products of queries and keys.
template <class T>
struct Seen {
  Buffer<T> turned, alpha_t, scores, logits, inverse, weights, mix, total;
  explicit Seen(const Sizes& s)
      : turned(std::max(s.D(), s.E()) * std::max(s.N(), CHUNK)), alpha_t(s.N() * CHUNK), scores(CHUNK * CHUNK),
        logits(CHUNK * s.N()), inverse(CHUNK * s.N()), weights(CHUNK * s.N()), mix(CHUNK * CHUNK), total(s.N()) {}

  void look(const Sizes& s, const T* q, const T* k, Record<T>& record) {
    const Index D = s.D(), N = s.N(), count = record.count, all = padded(count);
    const T* alpha = record.alpha.get();
    transpose(all, D, k, D, turned.get(), CHUNK);
    product_lower(all, s.dim, plain(q, D), turned.get(), CHUNK, scores.get(), CHUNK);
    keep_triangle(all, scores.get(), CHUNK);
    product_of_lower(all, N, plain(scores.get(), CHUNK), alpha, N, logits.get(), N, false);
    product(all, N, s.dim, plain(q, D), record.key_t.get(), N, logits.get(), N, true);
    std::copy_n(record.total.get(), N, total.get());
    for (Index t = 0; t < count; ++t) divide(s, alpha + t * N, t * N);
    for (Buffer<T>* x : {&logits, &inverse, &weights}) std::fill(x->get() + count * N, x->get() + all * N, T(0));
    exponentials(count * N, weights.get());
    for (Index t = 0; t < count; ++t) {
      Vector<T> sums{};
      for (Index j = t * N; j < (t + 1) * N; j += WIDTH<T>) sums += load(weights.get() + j);
      const Vector<T> share = T(1) / reduced<T>(sums, [](Vector<T> a, Vector<T> b) { return a + b; });
      for (Index j = t * N; j < (t + 1) * N; j += WIDTH<T>)
        store(weights.get() + j, share * load(weights.get() + j) * load(inverse.get() + j));
    }
    transpose(all, N, alpha, N, alpha_t.get(), CHUNK);
    product_lower(all, s.slots, plain(weights.get(), N), alpha_t.get(), CHUNK, mix.get(), CHUNK);
    keep_triangle(all, mix.get(), CHUNK);
  }

 private:
  // A step's totals, their inverses, and logits, in `weights` less their maximum.
  void divide(const Sizes& s, const T* alpha, Index at) {
    const Vector<T> none{}, one = none + T(1);
    const T factor = 1 / std::sqrt(T(s.dim));
    Vector<T> most = none + std::numeric_limits<T>::lowest();
    for (Index j = 0; j < s.N(); j += WIDTH<T>) {
      const Vector<T> now = load(total.get() + j) + counted(s, alpha + j);
      store(total.get() + j, now);
      const Vector<T> each = s.means ? (now != 0 ? T(1) / now : none) : one;
      store(inverse.get() + at + j, each);
      Vector<T> logit = load(logits.get() + at + j) * factor * each;
      if (!s.empty) logit = now != 0 ? logit : none + T(LOWEST);
      logit = lanes<T>() < T(s.slots - j) ? logit : none + std::numeric_limits<T>::lowest();
      store(logits.get() + at + j, logit);
      most = most < logit ? logit : most;
    }
    most = reduced<T>(most, [](Vector<T> a, Vector<T> b) { return a < b ? b : a; });
    for (Index j = 0; j < s.N(); j += WIDTH<T>) store(weights.get() + at + j, load(logits.get() + at + j) - most);
  }
};

// The memory after a chunk.
template <class T>
void write(const Sizes& s, const T* k, const T* v, Record<T>& chunk, Record<T>& memory) {
  const Index N = s.N(), E = s.E(), D = s.D();
  const T* alpha = chunk.alpha.get();
  product(D, N, chunk.count, transposed(k, D), alpha, N, memory.key_t.get(), N, true);
  product(N, E, chunk.count, transposed(alpha, N), v, E, memory.value.get(), E, true);
  for (Index j = 0; j < N; j += WIDTH<T>) {
    Vector<T> total = load(memory.total.get() + j);
    for (Index t = 0; t < chunk.count; ++t) total += counted(s, alpha + t * N + j);
    store(memory.total.get() + j, total);
  }
  if (chunk.rises_after) memory.scale_state(s, chunk.after.get());
}

}  // namespace
}  // namespace seqstruct::LEVEL
