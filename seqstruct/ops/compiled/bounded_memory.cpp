// Causal attention to a memory of slots, chunk by chunk, with everything of a chunk in the cache.
//
// The same recurrences as seqstruct/ops/bounded_memory.py, whose docstrings define every tensor; letters as there, G
// for batch and heads merged.  A memory is relative to exp(level), the running maximum of its slots' controls, except
// within a chunk, whose weights and memory are relative to exp(base).  Memories are stored every SPAN steps for the
// backward pass, which writes those between again.  Keys in memory are kept transposed, D N.

#include <memory>
#include <vector>

#include "tile.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace seqstruct {
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

template <class T>
inline Vector<T> lanes() {
  T x[WIDTH<T>];
  for (int i = 0; i < WIDTH<T>; ++i) x[i] = T(i);
  return load(x);
}

// Zeros above the diagonal, as far as products of triangles read there.
template <class T>
inline void keep_triangle(Index rows, T* x) {
  for (Index i = 0; i < rows; ++i)
    for (Index j = i / WIDTH<T> * WIDTH<T>; j <= i / ROWS * ROWS + ROWS - 1; j += WIDTH<T>) {
      T* at = x + i * CHUNK + j;
      store(at, lanes<T>() <= T(i - j) ? load(at) : Vector<T>{});
    }
}

// Rows of a chunk that can be read in whole vectors and blocks: a copy unless they lie so already.
template <class T>
inline const T* rows_of(Index count, Index all, const T* from, Index columns, Buffer<T>& copy) {
  if (count == all && columns == padded(columns)) return from;
  take(count, columns, from, columns, copy.get(), padded(columns), all);
  return copy.get();
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
    record.rises_before = record.rises_after = false;
    for (Index t = 0; t < count; ++t)
      for (Index n = 0; n < s_.slots; ++n)
        alpha[t * N + n] = T(control_[(start + t) * s_.slots + n] - (s_.means ? base_.get()[n] : C(0)));
    for (Index t = 0; t < count; ++t) std::fill(alpha + t * N + s_.slots, alpha + (t + 1) * N, T(0));
    std::fill(alpha + count * N, alpha + padded(count) * N, T(0));
    if (!s_.means) return;
    exponentials(count * N, alpha);
    if (N != s_.slots)
      for (Index t = 0; t < count; ++t) std::fill(alpha + t * N + s_.slots, alpha + (t + 1) * N, T(0));
    for (Index n = 0; n < N; ++n) {
      const C old = level_.get()[n], base = base_.get()[n], now = std::max(base, most_.get()[n]);
      record.before.get()[n] = n < s_.slots ? factor(old - base, record.rises_before) : T(1);
      record.after.get()[n] = n < s_.slots ? factor(base - now, record.rises_after) : T(1);
      level_.get()[n] = now;
    }
  }

 private:
  static T factor(C log, bool& differs) {
    if (log == 0) return 1;
    differs = true;
    return T(std::exp(log));
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

// What the queries of a chunk see of the slots, and the products of queries and keys.
template <class T>
struct Seen {
  Buffer<T> keys_t, alpha_t, scores, logits, inverse, shares, weights, mix, total;
  explicit Seen(const Sizes& s)
      : keys_t(s.D() * CHUNK), alpha_t(s.N() * CHUNK), scores(CHUNK * CHUNK), logits(CHUNK * s.N()),
        inverse(CHUNK * s.N()), shares(CHUNK * s.N()), weights(CHUNK * s.N()), mix(CHUNK * CHUNK), total(s.N()) {}

  void look(const Sizes& s, const T* q, const T* k, Record<T>& record) {
    const Index D = s.D(), N = s.N(), count = record.count, all = padded(count);
    const T* alpha = record.alpha.get();
    transpose(all, D, k, D, keys_t.get(), CHUNK);
    product_lower(all, s.dim, plain(q, D), keys_t.get(), CHUNK, scores.get(), CHUNK);
    keep_triangle(all, scores.get());
    product_of_lower(all, N, plain(scores.get(), CHUNK), alpha, N, logits.get(), N, false);
    product(all, N, s.dim, plain(q, D), record.key_t.get(), N, logits.get(), N, true);
    std::copy_n(record.total.get(), N, total.get());
    for (Index t = 0; t < count; ++t) divide(s, alpha + t * N, t * N);
    for (Buffer<T>* x : {&logits, &inverse, &shares}) std::fill(x->get() + count * N, x->get() + all * N, T(0));
    exponentials(count * N, shares.get());
    for (Index t = 0; t < count; ++t) {
      Vector<T> sums{};
      for (Index j = t * N; j < (t + 1) * N; j += WIDTH<T>) sums += load(shares.get() + j);
      const T each = 1 / reduced<T>(sums, [](Vector<T> a, Vector<T> b) { return a + b; })[0];
      for (Index j = t * N; j < (t + 1) * N; j += WIDTH<T>) {
        const Vector<T> share = each * load(shares.get() + j);
        store(shares.get() + j, share);
        store(weights.get() + j, share * load(inverse.get() + j));
      }
    }
    std::fill(weights.get() + count * N, weights.get() + all * N, T(0));
    transpose(all, N, alpha, N, alpha_t.get(), CHUNK);
    product_lower(all, s.slots, plain(weights.get(), N), alpha_t.get(), CHUNK, mix.get(), CHUNK);
    keep_triangle(all, mix.get());
  }

 private:
  // A step's totals, their inverses, and logits, in `shares` less their maximum.
  void divide(const Sizes& s, const T* alpha, Index at) {
    const Vector<T> none{}, one = none + T(1);
    const T factor = 1 / std::sqrt(T(s.dim));
    Vector<T> most = none + std::numeric_limits<T>::lowest();
    for (Index j = 0; j < s.N(); j += WIDTH<T>) {
      const Vector<T> a = load(alpha + j), now = load(total.get() + j) + (s.means ? a : a != 0 ? one : none);
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
    for (Index j = 0; j < s.N(); j += WIDTH<T>) store(shares.get() + at + j, load(logits.get() + at + j) - most);
  }
};

// The memory after a chunk.
template <class T>
void write(const Sizes& s, const T* k, const T* v, Record<T>& chunk, Record<T>& memory) {
  const Index N = s.N(), E = s.E(), D = s.D();
  const T* alpha = chunk.alpha.get();
  product(D, N, chunk.count, transposed(k, D), alpha, N, memory.key_t.get(), N, true);
  product(N, E, chunk.count, transposed(alpha, N), v, E, memory.value.get(), E, true);
  for (Index t = 0; t < chunk.count; ++t)
    for (Index j = 0; j < N; j += WIDTH<T>) {
      const Vector<T> a = load(alpha + t * N + j), none{};
      store(memory.total.get() + j, load(memory.total.get() + j) + (s.means ? a : a != 0 ? none + T(1) : none));
    }
  if (chunk.rises_after) memory.scale_state(s, chunk.after.get());
}

template <class T, class C>
void forward(Index threads, const Sizes s, const T* query, const T* key, const T* value, const C* control,
             const T* state_0, const C* level_0, T* output, T* states, C* levels, T* state_end, C* level_end) {
  const Index D = s.D(), N = s.N(), E = s.E();
#pragma omp parallel num_threads(threads)
  {
    Record<T> record(s);
    Seen<T> seen(s);
    Controls<T, C> controls(s);
    Buffer<T> queries(CHUNK * D), keys(CHUNK * D), values(CHUNK * E), result(CHUNK * E);
#pragma omp for schedule(dynamic)
    for (Index g = 0; g < s.groups; ++g) {
      controls.begin(control + g * s.steps * s.slots);
      std::copy_n(level_0 + g * s.slots, s.slots, controls.level());
      record.take_state(s, state_0 + g * s.state());
      auto chunk = [&](Index start, Index stop) {
        const Index count = stop - start, all = padded(count), at = g * s.steps + start;
        if (states && start % SPAN == 0) {
          const Index slot = g * s.stored() + start / SPAN;
          record.put_state(s, states + slot * s.state());
          std::copy_n(controls.level(), s.slots, levels + slot * s.slots);
        }
        const T* q = rows_of(count, all, query + at * s.dim, s.dim, queries);
        const T* k = rows_of(count, all, key + at * s.dim, s.dim, keys);
        const T* v = rows_of(count, all, value + at * s.value_dim, s.value_dim, values);
        controls.weigh(start, stop, record);
        if (record.rises_before) record.scale_state(s, record.before.get());
        seen.look(s, q, k, record);
        product_of_lower(all, E, plain(seen.mix.get(), CHUNK), v, E, result.get(), E, false);
        product(all, E, s.slots, plain(seen.weights.get(), N), record.value.get(), E, result.get(), E, true);
        put(count, s.value_dim, result.get(), E, output + at * s.value_dim, s.value_dim);
        write(s, k, v, record, record);
      };
      controls.chunks(0, s.steps, chunk);
      record.put_state(s, state_end + g * s.state());
      std::copy_n(controls.level(), s.slots, level_end + g * s.slots);
    }
  }
}

// Gradients of one chunk; `d` holds that of the memory after it, and then before it.
template <class T, class C>
class Backward {
 public:
  Backward(const Sizes& s, bool controlled)
      : d(s), s_(s), controlled_(controlled), seen_(s), queries_(CHUNK * s.D()), keys_(CHUNK * s.D()),
        values_(CHUNK * s.E()), d_outputs_(CHUNK * s.E()), turned_(std::max(s.D(), s.E()) * std::max(s.N(), CHUNK)),
        d_mix_(CHUNK * CHUNK), d_scores_(CHUNK * CHUNK), d_keyed_(CHUNK * s.N()), d_totals_(CHUNK * s.N()),
        d_alpha_(CHUNK * s.N()), result_(CHUNK * std::max(s.D(), s.E())) {}

  Record<T> d;

  // Writes a chunk to `next`, a copy of its memory.
  void pass(Record<T>& record, const T* key, const T* value, Record<T>& next) {
    next.copy_state(s_, record);
    write(s_, rows_of(record.count, padded(record.count), key, s_.dim, keys_),
          rows_of(record.count, padded(record.count), value, s_.value_dim, values_), record, next);
  }

  void chunk(Record<T>& record, const T* query, const T* key, const T* value, const T* d_output, T* d_query, T* d_key,
             T* d_value, C* d_control) {
    const Index D = s_.D(), N = s_.N(), E = s_.E(), count = record.count, all = padded(count);
    const T* q = rows_of(count, all, query, s_.dim, queries_);
    const T* k = rows_of(count, all, key, s_.dim, keys_);
    const T* v = rows_of(count, all, value, s_.value_dim, values_);
    const T* d_out = rows_of(count, all, d_output, s_.value_dim, d_outputs_);
    T *turned = turned_.get(), *d_mix = d_mix_.get(), *d_scores = d_scores_.get(), *d_keyed = d_keyed_.get(),
      *result = result_.get(), *scores = seen_.scores.get(), *weights = seen_.weights.get();
    seen_.look(s_, q, k, record);
    if (record.rises_after) d.scale_state(s_, record.after.get());

    transpose(all, E, v, E, turned, CHUNK);
    product_lower(all, s_.value_dim, plain(d_out, E), turned, CHUNK, d_mix, CHUNK);
    keep_triangle(all, d_mix);
    transpose(N, E, record.value.get(), E, turned, N);
    product_of_lower(all, N, plain(d_mix, CHUNK), record.alpha.get(), N, d_keyed, N, false);
    product(all, N, s_.value_dim, plain(d_out, E), turned, N, d_keyed, N, true);
    for (Index t = 0; t < all; ++t) through_softmax(t * N);
    product_lower(all, s_.slots, plain(d_keyed, N), seen_.alpha_t.get(), CHUNK, d_scores, CHUNK);
    keep_triangle(all, d_scores);

    transpose(D, N, record.key_t.get(), N, turned, D);
    product_of_lower(all, D, plain(d_scores, CHUNK), k, D, result, D, false);
    product(all, D, s_.slots, plain(d_keyed, N), turned, D, result, D, true);
    put(count, s_.dim, result, D, d_query, s_.dim);

    transpose(D, N, d.key_t.get(), N, turned, D);
    product_of_upper(all, D, transposed(d_scores, CHUNK), q, D, result, D, false);
    product(all, D, s_.slots, plain(record.alpha.get(), N), turned, D, result, D, true);
    put(count, s_.dim, result, D, d_key, s_.dim);

    product_of_upper(all, E, transposed(seen_.mix.get(), CHUNK), d_out, E, result, E, false);
    product(all, E, s_.slots, plain(record.alpha.get(), N), d.value.get(), E, result, E, true);
    put(count, s_.value_dim, result, E, d_value, s_.value_dim);

    if (controlled_) {
      T* d_alpha = d_alpha_.get();
      product_of_upper(all, N, transposed(d_mix, CHUNK), weights, N, d_alpha, N, false);
      product_of_upper(all, N, transposed(scores, CHUNK), d_keyed, N, d_alpha, N, true);
      product(all, N, s_.dim, plain(k, D), d.key_t.get(), N, d_alpha, N, true);
      transpose(N, E, d.value.get(), E, turned, N);
      product(all, N, s_.value_dim, plain(v, E), turned, N, d_alpha, N, true);
    }
    if (s_.means) through_totals(count, record.alpha.get());
    if (controlled_)
      for (Index t = 0; t < count; ++t)
        for (Index n = 0; n < s_.slots; ++n) d_control[t * s_.slots + n] = C(d_alpha_.get()[t * N + n]);
    product(N, E, count, transposed(weights, N), d_out, E, d.value.get(), E, true);
    product(D, N, count, transposed(q, D), d_keyed, N, d.key_t.get(), N, true);
    if (record.rises_before) d.scale_state(s_, record.before.get());
  }

 private:
  // From the gradient of a step's mixture to those of its logits before they are divided and scaled, and its totals.
  void through_softmax(Index at) {
    T *d_keyed = d_keyed_.get() + at, *d_totals = d_totals_.get() + at;
    const T *inverse = seen_.inverse.get() + at, *shares = seen_.shares.get() + at, *logits = seen_.logits.get() + at;
    const T factor = 1 / std::sqrt(T(s_.dim));
    Vector<T> sums{};
    for (Index j = 0; j < s_.N(); j += WIDTH<T>) {
      const Vector<T> pulled = load(d_keyed + j) * load(inverse + j) * load(shares + j);
      store(d_keyed + j, pulled);
      sums += pulled;
    }
    sums = reduced<T>(sums, [](Vector<T> a, Vector<T> b) { return a + b; });
    for (Index j = 0; j < s_.N(); j += WIDTH<T>) {
      const Vector<T> pulled = load(d_keyed + j), each = load(inverse + j), d_logits = pulled - load(shares + j) * sums;
      store(d_keyed + j, d_logits * factor * each);
      store(d_totals + j, -(pulled + d_logits * load(logits + j)) * each);
    }
  }

  // From the last step back: what a weight adds to its own total and to all later ones.
  void through_totals(Index count, const T* alpha) {
    T *d_alpha = d_alpha_.get(), *d_total = d.total.get();
    for (Index t = count - 1; t >= 0; --t)
      for (Index j = 0; j < s_.N(); j += WIDTH<T>) {
        const Index at = t * s_.N() + j;
        const Vector<T> total = load(d_total + j) + load(d_totals_.get() + at);
        store(d_total + j, total);
        if (controlled_) store(d_alpha + at, (load(d_alpha + at) + total) * load(alpha + at));
      }
  }

  Sizes s_;
  bool controlled_;
  Seen<T> seen_;
  Buffer<T> queries_, keys_, values_, d_outputs_, turned_, d_mix_, d_scores_, d_keyed_, d_totals_, d_alpha_, result_;
};

template <class T, class C>
void backward(Index threads, const Sizes s, const T* query, const T* key, const T* value, const C* control,
              const T* states, const C* levels, const T* d_output, T* d_query, T* d_key, T* d_value, C* d_control,
              T* d_state) {
#pragma omp parallel num_threads(threads)
  {
    Backward<T, C> back(s, d_control != nullptr);
    Controls<T, C> controls(s);
    std::vector<std::unique_ptr<Record<T>>> records;
#pragma omp for schedule(dynamic)
    for (Index g = 0; g < s.groups; ++g) {
      controls.begin(control + g * s.steps * s.slots);
      back.d.take_state(s, d_state + g * s.state());
      const Index from = g * s.steps;
      for (Index first = (s.stored() - 1) * SPAN; first >= 0; first -= SPAN) {
        const Index slot = g * s.stored() + first / SPAN;
        std::copy_n(levels + slot * s.slots, s.slots, controls.level());
        Index count = 0;
        auto each = [&](Index start, Index stop) {
          if (count == Index(records.size())) records.push_back(std::make_unique<Record<T>>(s));
          Record<T>& record = *records[count];
          if (count == 0) {
            record.take_state(s, states + slot * s.state());
          } else {
            Record<T>& last = *records[count - 1];
            const Index at = from + last.start;
            back.pass(last, key + at * s.dim, value + at * s.value_dim, record);
          }
          controls.weigh(start, stop, record);
          if (record.rises_before) record.scale_state(s, record.before.get());
          ++count;
        };
        controls.chunks(first, std::min(first + SPAN, s.steps), each);
        while (count--) {
          Record<T>& record = *records[count];
          const Index at = from + record.start;
          back.chunk(record, query + at * s.dim, key + at * s.dim, value + at * s.value_dim,
                     d_output + at * s.value_dim, d_query + at * s.dim, d_key + at * s.dim,
                     d_value + at * s.value_dim, d_control ? d_control + at * s.slots : nullptr);
        }
      }
      back.d.put_state(s, d_state + g * s.state());
    }
  }
}

}  // namespace
}  // namespace seqstruct

using seqstruct::Index;

#define BOUNDED_MEMORY(T, C, name)                                                                                    \
  extern "C" void bounded_memory_forward_##name(                                                                      \
      Index threads, Index groups, Index steps, Index dim, Index slots, Index value_dim, Index means, Index empty,    \
      const T* query, const T* key, const T* value, const C* control, const T* state, const C* level, T* output,      \
      T* states, C* levels, T* state_end, C* level_end) {                                                             \
    seqstruct::forward<T, C>(threads, {groups, steps, dim, slots, value_dim, means != 0, empty != 0}, query, key,     \
                             value, control, state, level, output, states, levels, state_end, level_end);             \
  }                                                                                                                   \
  extern "C" void bounded_memory_backward_##name(                                                                     \
      Index threads, Index groups, Index steps, Index dim, Index slots, Index value_dim, Index means, Index empty,    \
      const T* query, const T* key, const T* value, const C* control, const T* states, const C* levels,               \
      const T* d_output, T* d_query, T* d_key, T* d_value, C* d_control, T* d_state) {                                \
    seqstruct::backward<T, C>(threads, {groups, steps, dim, slots, value_dim, means != 0, empty != 0}, query, key,    \
                              value, control, states, levels, d_output, d_query, d_key, d_value, d_control, d_state); \
  }

BOUNDED_MEMORY(float, float, f32)
BOUNDED_MEMORY(double, double, f64)
BOUNDED_MEMORY(float, double, wide_f32)
