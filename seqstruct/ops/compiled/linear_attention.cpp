// Causal attention through a memory of fixed size, chunk by chunk, with everything of a chunk in the cache.
//
// The recurrences of seqstruct/ops/memory/linear_attention.py, whose docstrings define every tensor; letters as there, G
// for batch and heads merged.  Memories are stored every SPAN steps for the backward pass, which writes those between
// again.

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

// memory and total after a chunk of keys, decayed to its end already.
template <class T>
void write(const Sizes& s, Index count, T whole, const T* keys, const T* values, T* memory, T* total) {
  const Index N = s.N(), E = s.E();
  if (whole != 1) {
    scale(N * E, whole, memory);
    scale(N, whole, total);
  }
  product(N, E, count, transposed(keys, N), values, E, memory, E, true);
  for (Index i = 0; i < count; ++i) add_scaled(N, T(1), keys + i * N, total);
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
void forward(const Sizes s, const T* query, const T* key, const T* value, const T* weight,
             const double* log_decay, const T* rows, const T* bias, const T* memory_0, const T* total_0, T* output,
             T* denominator, T* memories, T* totals, T* memory_end, T* total_end) {
  const Index N = s.N(), E = s.E();
  share(s.groups, [&](Index thread, Index threads) {
    Map<T> map(s);
    Mapped<T> q(s), k(s);
    Keys<T> keys(s);
    Decays<T> decays;
    Buffer<T> memory(N * E), total(N), values(CHUNK * E), keys_t(N * CHUNK), scores(CHUNK * CHUNK), begun(CHUNK * N),
        result(CHUNK * E);
    for (Index g = thread; g < s.groups; g += threads) {
      map.begin(rows ? rows + g * s.rows() * s.dim : nullptr, bias ? bias + g * s.rows() : nullptr);
      take_state(s, g, memory_0, total_0, memory.get(), total.get());
      for (Index start = 0; start < s.steps; start += CHUNK) {
        const Index count = std::min(CHUNK, s.steps - start), all = padded(count), at = g * s.steps + start;
        if (memories && start % SPAN == 0)
          put_state(s, g * s.stored() + start / SPAN, memory.get(), total.get(), memories, totals);
        map.apply(count, all, query + at * s.dim, q);
        map.apply(count, all, key + at * s.dim, k);
        take(count, s.value_dim, value + at * s.value_dim, s.value_dim, values.get(), E, all);
        decays.set(count, log_decay ? log_decay + g * (s.steps + 1) + start : nullptr);
        keys.set(s, count, all, k, weight ? weight + at : nullptr, decays);
        transpose(all, N, keys.weighted.get(), N, keys_t.get(), CHUNK);
        product_lower(all, N, plain(q.features.get(), N), keys_t.get(), CHUNK, scores.get(), CHUNK);
        decays.weigh(all, scores.get());
        T* reading = q.features.get();
        if (decays.any) scale_rows(all, N, q.features.get(), decays.begin.get(), reading = begun.get());
        product_of_lower(all, E, plain(scores.get(), CHUNK), values.get(), E, result.get(), E, false);
        product(all, E, N, plain(reading, N), memory.get(), E, result.get(), E, true);
        for (Index t = 0; t < count; ++t) {
          T den = dot(N, reading + t * N, total.get());
          for (Index u = 0; u <= t; ++u) den += scores.get()[t * CHUNK + u];
          denominator[at + t] = den = flushed(den);
          scale(E, inverse(den, T(s.floor)), result.get() + t * E);
        }
        put(count, s.value_dim, result.get(), E, output + at * s.value_dim, s.value_dim);
        write(s, count, decays.whole, keys.written(decays), values.get(), memory.get(), total.get());
      }
      put_state(s, g, memory.get(), total.get(), memory_end, total_end);
    }
  });
}

template <class T>
void backward(const Sizes s, const T* query, const T* key, const T* value, const T* weight,
              const double* log_decay, const T* rows, const T* bias, const T* memories, const T* totals,
              const T* output, const T* denominator, const T* d_output, T* d_query, T* d_key, T* d_value, T* d_weight,
              T* d_rows, T* d_bias, T* d_memories, T* d_totals) {
  const Index N = s.N(), E = s.E();
  share(s.groups, [&](Index thread, Index threads) {
    Map<T> map(s);
    Mapped<T> q(s), k(s);
    Keys<T> keys(s);
    Decays<T> decays;
    Buffer<T> states(KEPT * N * E), sums(KEPT * N), values(CHUNK * E), turned(CHUNK * std::max(N, E)),
        scores(CHUNK * CHUNK), d_scores(CHUNK * CHUNK), begun(CHUNK * N), d_num(CHUNK * E), d_den(CHUNK),
        outputs(CHUNK * E), d_q(CHUNK * N), d_k(CHUNK * N), d_v(CHUNK * E), d_memory(N * E), d_total(N),
        memory_t(N * E);
    for (Index g = thread; g < s.groups; g += threads) {
      map.begin(rows ? rows + g * s.rows() * s.dim : nullptr, bias ? bias + g * s.rows() : nullptr);
      take_state(s, g, d_memories, d_totals, d_memory.get(), d_total.get());
      const double* logs = log_decay ? log_decay + g * (s.steps + 1) : nullptr;
      for (Index first = (s.stored() - 1) * SPAN; first >= 0; first -= SPAN) {
        const Index chunks = (std::min(SPAN, s.steps - first) + CHUNK - 1) / CHUNK;
        take_state(s, g * s.stored() + first / SPAN, memories, totals, states.get(), sums.get());
        for (Index c = 0; c + 1 < chunks; ++c) {
          const Index start = first + c * CHUNK, at = g * s.steps + start;
          map.apply(CHUNK, CHUNK, key + at * s.dim, k);
          take(CHUNK, s.value_dim, value + at * s.value_dim, s.value_dim, values.get(), E, CHUNK);
          decays.set(CHUNK, logs ? logs + start : nullptr);
          keys.set(s, CHUNK, CHUNK, k, weight ? weight + at : nullptr, decays);
          T *memory = states.get() + (c + 1) * N * E, *total = sums.get() + (c + 1) * N;
          std::copy_n(memory - N * E, N * E, memory);
          std::copy_n(total - N, N, total);
          write(s, CHUNK, decays.whole, keys.written(decays), values.get(), memory, total);
        }
        for (Index c = chunks - 1; c >= 0; --c) {
          const Index start = first + c * CHUNK, at = g * s.steps + start, count = std::min(CHUNK, s.steps - start),
                      all = padded(count);
          const T *memory = states.get() + c * N * E, *total = sums.get() + c * N;
          map.apply(count, all, query + at * s.dim, q);
          map.apply(count, all, key + at * s.dim, k);
          take(count, s.value_dim, value + at * s.value_dim, s.value_dim, values.get(), E, all);
          take(count, s.value_dim, output + at * s.value_dim, s.value_dim, outputs.get(), E, all);
          take(count, s.value_dim, d_output + at * s.value_dim, s.value_dim, d_num.get(), E, all);
          decays.set(count, logs ? logs + start : nullptr);
          keys.set(s, count, all, k, weight ? weight + at : nullptr, decays);
          std::fill(d_den.get(), d_den.get() + CHUNK, T(0));
          for (Index t = 0; t < count; ++t) {
            const T den = denominator[at + t], floor = T(s.floor);
            scale(E, inverse(den, floor), d_num.get() + t * E);
            if (!floor || den >= floor) d_den.get()[t] = -dot(E, d_num.get() + t * E, outputs.get() + t * E);
          }
          transpose(all, N, keys.weighted.get(), N, turned.get(), CHUNK);
          product_lower(all, N, plain(q.features.get(), N), turned.get(), CHUNK, scores.get(), CHUNK);
          decays.weigh(all, scores.get());
          transpose(all, E, values.get(), E, turned.get(), CHUNK);
          product_lower(all, E, plain(d_num.get(), E), turned.get(), CHUNK, d_scores.get(), CHUNK);
          for (Index t = 0; t < all; ++t)
            for (Index u = 0; u <= t; ++u) d_scores.get()[t * CHUNK + u] += d_den.get()[t];
          decays.weigh(all, d_scores.get());
          transpose(N, E, memory, E, memory_t.get(), N);
          product(all, N, E, plain(d_num.get(), E), memory_t.get(), N, d_q.get(), N, false);
          for (Index t = 0; t < count; ++t) add_scaled(N, d_den.get()[t], total, d_q.get() + t * N);
          transpose(N, E, d_memory.get(), E, memory_t.get(), N);
          product(all, N, E, plain(values.get(), E), memory_t.get(), N, d_k.get(), N, false);
          for (Index t = 0; t < count; ++t) add_scaled(N, T(1), d_total.get(), d_k.get() + t * N);
          T* reading = q.features.get();
          if (decays.any) {
            scale_rows(all, N, d_q.get(), decays.begin.get(), d_q.get());
            scale_rows(all, N, d_k.get(), decays.end.get(), d_k.get());
            scale_rows(all, N, q.features.get(), decays.begin.get(), reading = begun.get());
          }
          product_of_lower(all, N, plain(d_scores.get(), CHUNK), keys.weighted.get(), N, d_q.get(), N, true);
          product_of_upper(all, N, transposed(d_scores.get(), CHUNK), q.features.get(), N, d_k.get(), N, true);
          product_of_upper(all, E, transposed(scores.get(), CHUNK), d_num.get(), E, d_v.get(), E, false);
          product(all, E, N, plain(keys.written(decays), N), d_memory.get(), E, d_v.get(), E, true);
          put(count, s.value_dim, d_v.get(), E, d_value + at * s.value_dim, s.value_dim);
          if (decays.any) {
            scale(N * E, decays.whole, d_memory.get());
            scale(N, decays.whole, d_total.get());
          }
          product(N, E, count, transposed(reading, N), d_num.get(), E, d_memory.get(), E, true);
          for (Index t = 0; t < count; ++t) add_scaled(N, d_den.get()[t], reading + t * N, d_total.get());
          for (Index t = 0; t < count; ++t) {
            if (d_weight) d_weight[at + t] = dot(N, d_k.get() + t * N, k.features.get() + t * N);
            if (weight) scale(N, weight[at + t], d_k.get() + t * N);
          }
          map.apply_backward(count, all, d_q.get(), q, d_query + at * s.dim);
          map.apply_backward(count, all, d_k.get(), k, d_key + at * s.dim);
        }
      }
      map.end(d_rows ? d_rows + g * s.rows() * s.dim : nullptr, d_bias ? d_bias + g * s.rows() : nullptr);
      put_state(s, g, d_memory.get(), d_total.get(), d_memories, d_totals);
    }
  });
}

struct Parameters {
  Tensor query, key, value;
  Maybe weight, log_decay, rows, bias;

  Parameters(const Tensor& query, const Tensor& key, const Tensor& value, const Maybe& weight, const Maybe& log_decay,
             const Maybe& rows, const Maybe& bias)
      : query(whole(query)), key(whole(key)), value(whole(value)), weight(whole(weight)), log_decay(whole(log_decay)),
        rows(whole(rows)), bias(whole(bias)) {}

  Sizes sizes(Index features, Index kind, bool normed, double floor) const {
    expect("query", query, {ANY, ANY, ANY});
    const Index G = query.size(0), T = query.size(1), D = query.size(2);
    expect("key", key, {G, T, D});
    expect("value", value, {G, T, ANY});
    expect("weight", weight, {G, T});
    expect("log_decay", log_decay, {G, T + 1});
    expect_map(kind, D, features, rows, bias);
    expect("rows", rows, {G, ANY, D});
    if (rows) expect_count("bias", bias, G * rows->size(1));
    return {G, T, D, features, value.size(2), kind, normed, floor};
  }
};

using Results = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

Results attend(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& memory, const Tensor& total,
               const Maybe& weight, const Maybe& log_decay, const Maybe& rows, const Maybe& bias, Index kind,
               bool normed, double floor, bool recorded) {
  const Parameters x(query, key, value, weight, log_decay, rows, bias);
  expect("memory", memory, {ANY, ANY, ANY});
  const Sizes s = x.sizes(memory.size(1), kind, normed, floor);
  expect("memory", memory, {s.groups, s.features, s.value_dim});
  expect("total", total, {s.groups, s.features});
  const Tensor from = whole(memory), sum = whole(total), output = fresh_like(x.value);
  const Tensor denominator = fresh(x.value, {s.groups, s.steps}), end = fresh_like(from), sum_end = fresh_like(sum);
  const Index stored = recorded ? s.stored() : 0;
  const Tensor memories = fresh(from, {s.groups, stored, s.features, s.value_dim});
  const Tensor totals = fresh(from, {s.groups, stored, s.features});
  by_type(query, [&](auto zero) {
    using T = decltype(zero);
    forward<T>(s, numbers<T>(x.query), numbers<T>(x.key), numbers<T>(x.value), numbers<T>(x.weight),
               numbers<double>(x.log_decay), numbers<T>(x.rows), numbers<T>(x.bias), numbers<T>(from),
               numbers<T>(sum), numbers<T>(output), numbers<T>(denominator), recorded ? numbers<T>(memories) : nullptr,
               numbers<T>(totals), numbers<T>(end), numbers<T>(sum_end));
  });
  return {output, denominator, end, sum_end, memories, totals};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> attend_backward(
    const Tensor& query, const Tensor& key, const Tensor& value, const Maybe& weight, const Maybe& log_decay,
    const Maybe& rows, const Maybe& bias, const Tensor& memories, const Tensor& totals, const Tensor& output,
    const Tensor& denominator, const Maybe& d_output, const Maybe& d_end, const Maybe& d_sum_end, Index kind,
    bool normed, double floor, bool weighted) {
  const Parameters x(query, key, value, weight, log_decay, rows, bias);
  expect("memories", memories, {ANY, ANY, ANY, ANY});
  const Sizes s = x.sizes(memories.size(2), kind, normed, floor);
  expect("memories", memories, {s.groups, s.stored(), s.features, s.value_dim});
  expect("totals", totals, {s.groups, s.stored(), s.features});
  expect("output", output, {s.groups, s.steps, s.value_dim});
  expect("denominator", denominator, {s.groups, s.steps});
  expect("d_output", d_output, {s.groups, s.steps, s.value_dim});
  expect("d_end", d_end, {s.groups, s.features, s.value_dim});
  expect("d_sum_end", d_sum_end, {s.groups, s.features});
  const Tensor d_out = d_output ? whole(*d_output) : zeros(x.value, x.value.sizes()), d_query = fresh_like(x.query), d_key = fresh_like(x.key),
               d_value = fresh_like(x.value);
  const Tensor d_memory = changed(d_end, memories, {s.groups, s.features, s.value_dim}),
               d_total = changed(d_sum_end, memories, {s.groups, s.features});
  const Tensor d_weight = weighted ? fresh_like(denominator) : fresh(x.value, {0}),
               d_rows = rows ? fresh_like(*x.rows) : fresh(x.value, {0}),
               d_bias = bias ? fresh_like(*x.bias) : fresh(x.value, {0});
  by_type(query, [&](auto zero) {
    using T = decltype(zero);
    backward<T>(s, numbers<T>(x.query), numbers<T>(x.key), numbers<T>(x.value), numbers<T>(x.weight),
                numbers<double>(x.log_decay), numbers<T>(x.rows), numbers<T>(x.bias), numbers<T>(memories),
                numbers<T>(totals), numbers<T>(output), numbers<T>(denominator), numbers<T>(d_out),
                numbers<T>(d_query), numbers<T>(d_key), numbers<T>(d_value),
                weighted ? numbers<T>(d_weight) : nullptr, rows ? numbers<T>(d_rows) : nullptr,
                bias ? numbers<T>(d_bias) : nullptr, numbers<T>(d_memory), numbers<T>(d_total));
  });
  return {d_query, d_key, d_value, d_memory, d_total, d_weight, d_rows, d_bias};
}

}  // namespace

OPERATORS(linear_attention){
    {"linear_attention(Tensor query, Tensor key, Tensor value, Tensor memory, Tensor total, Tensor? weight, "
     "Tensor? log_decay, Tensor? rows, Tensor? bias, int kind, bool normed, float floor, bool recorded) -> "
     "(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
     TORCH_BOX(&attend)},
    {"linear_attention_backward(Tensor query, Tensor key, Tensor value, Tensor? weight, Tensor? log_decay, "
     "Tensor? rows, Tensor? bias, Tensor memories, Tensor totals, Tensor output, Tensor denominator, "
     "Tensor? d_output, Tensor? d_end, Tensor? d_sum_end, int kind, bool normed, float floor, bool weighted) -> "
     "(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
     TORCH_BOX(&attend_backward)},
    {}};

}  // namespace seqstruct::LEVEL
