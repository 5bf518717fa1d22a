// Causal attention through a memory of fixed size, chunk by chunk, with everything of a chunk in the cache.
//
// Memories are stored every SPAN steps for the backward pass, which writes those between again.

#include "linear_attention_chunk.h"

namespace seqstruct::LEVEL {
namespace {

template <class T>
struct Written {
  T *output, *denominator, *memories, *totals, *memory_end, *total_end;  // memories: none where nothing is recorded
};

template <class T>
void forward(const Sizes s, const Given<T> x, const T* memory_0, const T* total_0, const Written<T> to) {
  const Index N = s.N(), E = s.E();
  share(s.groups, [&](Index thread, Index threads) {
    Chunk<T> chunk(s, x);
    Buffer<T> memory(N * E), total(N), result(CHUNK * E);
    for (Index g = thread; g < s.groups; g += threads) {
      chunk.enter(g);
      take_state(s, g, memory_0, total_0, memory.get(), total.get());
      for (Index start = 0; start < s.steps; start += CHUNK) {
        if (to.memories && start % SPAN == 0)
          put_state(s, g * s.stored() + start / SPAN, memory.get(), total.get(), to.memories, to.totals);
        chunk.take_keys(start);
        chunk.take_queries();
        const Index count = chunk.count, all = chunk.all, at = chunk.at;
        const T *scores = chunk.scores.get(), *reading = chunk.reading;
        product_of_lower(all, E, plain(scores, CHUNK), chunk.values.get(), E, result.get(), E, false);
        product(all, E, N, plain(reading, N), memory.get(), E, result.get(), E, true);
        for (Index t = 0; t < count; ++t) {
          T den = dot(N, reading + t * N, total.get());
          for (Index u = 0; u <= t; ++u) den += scores[t * CHUNK + u];
          to.denominator[at + t] = den = flushed(den);
          scale(E, inverse(den, T(s.floor)), result.get() + t * E);
        }
        put(count, s.value_dim, result.get(), E, to.output + at * s.value_dim, s.value_dim);
        chunk.write(memory.get(), total.get());
      }
      put_state(s, g, memory.get(), total.get(), to.memory_end, to.total_end);
    }
  });
}

// What the forward pass kept, and the gradient of its output.
template <class T>
struct Recorded {
  const T *memories, *totals, *output, *denominator, *d_output;
};

// Memories and totals: of the end at first, and of the begin at last.
template <class T>
struct Gradients {
  T *query, *key, *value, *weight, *rows, *bias, *memories, *totals;
};

// Gradients of one chunk at a time; `d_memory` and `d_total` are those of the memory after it, and then before it.
template <class T>
class Backward {
 public:
  Backward(const Sizes& s, const Given<T>& x, const Recorded<T>& past, const Gradients<T>& to)
      : s_(s), past_(past), to_(to), chunk_(s, x), states_(KEPT * s.N() * s.E()), sums_(KEPT * s.N()),
        d_scores_(CHUNK * CHUNK), d_num_(CHUNK * s.E()), d_den_(CHUNK), outputs_(CHUNK * s.E()), d_q_(CHUNK * s.N()),
        d_k_(CHUNK * s.N()), d_v_(CHUNK * s.E()), d_memory_(s.N() * s.E()), d_total_(s.N()),
        memory_t_(s.N() * s.E()) {}

  void run(Index g) {
    chunk_.enter(g);
    take_state(s_, g, to_.memories, to_.totals, d_memory_.get(), d_total_.get());
    for (Index first = (s_.stored() - 1) * SPAN; first >= 0; first -= SPAN) {
      const Index chunks = (std::min(SPAN, s_.steps - first) + CHUNK - 1) / CHUNK;
      write_again(first, chunks);
      for (Index c = chunks - 1; c >= 0; --c) {
        chunk_.take_keys(first + c * CHUNK);
        chunk_.take_queries();
        through_division();
        through_reading(states_.get() + c * s_.N() * s_.E(), sums_.get() + c * s_.N());
        through_writing();
        through_features();
      }
    }
    chunk_.map.end(to_.rows ? to_.rows + g * s_.rows() * s_.dim : nullptr,
                   to_.bias ? to_.bias + g * s_.rows() : nullptr);
    put_state(s_, g, d_memory_.get(), d_total_.get(), to_.memories, to_.totals);
  }

 private:
  // Memories before each chunk of a span.
  void write_again(Index first, Index chunks) {
    const Index N = s_.N(), E = s_.E(), slot = chunk_.group * s_.stored() + first / SPAN;
    T *memory = states_.get(), *total = sums_.get();
    take_state(s_, slot, past_.memories, past_.totals, memory, total);
    for (Index c = 0; c + 1 < chunks; ++c, memory += N * E, total += N) {
      chunk_.take_keys(first + c * CHUNK);
      std::copy_n(memory, N * E, memory + N * E);
      std::copy_n(total, N, total + N);
      chunk_.write(memory + N * E, total + N);
    }
  }

  void through_division() {
    const Index count = chunk_.count, E = s_.E(), from = chunk_.at * s_.value_dim;
    take(count, s_.value_dim, past_.output + from, s_.value_dim, outputs_.get(), E, chunk_.all);
    take(count, s_.value_dim, past_.d_output + from, s_.value_dim, d_num_.get(), E, chunk_.all);
    std::fill(d_den_.get(), d_den_.get() + CHUNK, T(0));
    for (Index t = 0; t < count; ++t) {
      const T den = past_.denominator[chunk_.at + t], floor = T(s_.floor);
      scale(E, inverse(den, floor), d_num_.get() + t * E);
      if (!floor || den >= floor) d_den_.get()[t] = -dot(E, d_num_.get() + t * E, outputs_.get() + t * E);
    }
  }

  // To the scores, and to queries from the memory before the chunk.
  void through_reading(const T* memory, const T* total) {
    const Index N = s_.N(), E = s_.E(), all = chunk_.all;
    T *d_num = d_num_.get(), *d_den = d_den_.get(), *d_q = d_q_.get(), *d_scores = d_scores_.get();
    transpose(all, E, chunk_.values.get(), E, chunk_.turned.get(), CHUNK);
    product_lower(all, E, plain(d_num, E), chunk_.turned.get(), CHUNK, d_scores, CHUNK);
    for (Index t = 0; t < all; ++t)
      for (Index u = 0; u <= t; ++u) d_scores[t * CHUNK + u] += d_den[t];
    chunk_.decays.weigh(all, d_scores);
    transpose(N, E, memory, E, memory_t_.get(), N);
    product(all, N, E, plain(d_num, E), memory_t_.get(), N, d_q, N, false);
    for (Index t = 0; t < chunk_.count; ++t) add_scaled(N, d_den[t], total, d_q + t * N);
    if (chunk_.decays.any) scale_rows(all, N, d_q, chunk_.decays.begin.get(), d_q);
    product_of_lower(all, N, plain(d_scores, CHUNK), chunk_.keys.weighted.get(), N, d_q, N, true);
  }

  // To keys and values, and from the memory after the chunk to that before it.
  void through_writing() {
    const Index N = s_.N(), E = s_.E(), all = chunk_.all, count = chunk_.count;
    T *d_num = d_num_.get(), *d_k = d_k_.get(), *d_v = d_v_.get(), *d_memory = d_memory_.get();
    Decays<T>& decays = chunk_.decays;
    transpose(N, E, d_memory, E, memory_t_.get(), N);
    product(all, N, E, plain(chunk_.values.get(), E), memory_t_.get(), N, d_k, N, false);
    for (Index t = 0; t < count; ++t) add_scaled(N, T(1), d_total_.get(), d_k + t * N);
    if (decays.any) scale_rows(all, N, d_k, decays.end.get(), d_k);
    product_of_upper(all, N, transposed(d_scores_.get(), CHUNK), chunk_.q.features.get(), N, d_k, N, true);
    product_of_upper(all, E, transposed(chunk_.scores.get(), CHUNK), d_num, E, d_v, E, false);
    product(all, E, N, plain(chunk_.keys.written(decays), N), d_memory, E, d_v, E, true);
    put(count, s_.value_dim, d_v, E, to_.value + chunk_.at * s_.value_dim, s_.value_dim);
    if (decays.any) {
      scale(N * E, decays.whole, d_memory);
      scale(N, decays.whole, d_total_.get());
    }
    product(N, E, count, transposed(chunk_.reading, N), d_num, E, d_memory, E, true);
    for (Index t = 0; t < count; ++t) add_scaled(N, d_den_.get()[t], chunk_.reading + t * N, d_total_.get());
  }

  void through_features() {
    const Index N = s_.N(), count = chunk_.count, at = chunk_.at;
    const T* weight = chunk_.x.weight;
    T* d_k = d_k_.get();
    for (Index t = 0; t < count; ++t) {
      if (to_.weight) to_.weight[at + t] = dot(N, d_k + t * N, chunk_.k.features.get() + t * N);
      if (weight) scale(N, weight[at + t], d_k + t * N);
    }
    chunk_.map.apply_backward(count, chunk_.all, d_q_.get(), chunk_.q, to_.query + at * s_.dim);
    chunk_.map.apply_backward(count, chunk_.all, d_k, chunk_.k, to_.key + at * s_.dim);
  }

  const Sizes s_;
  const Recorded<T> past_;
  const Gradients<T> to_;
  Chunk<T> chunk_;
  Buffer<T> states_, sums_, d_scores_, d_num_, d_den_, outputs_, d_q_, d_k_, d_v_, d_memory_, d_total_, memory_t_;
};

template <class T>
void backward(const Sizes s, const Given<T> x, const Recorded<T> past, const Gradients<T> to) {
  share(s.groups, [&](Index thread, Index threads) {
    Backward<T> back(s, x, past, to);
    for (Index g = thread; g < s.groups; g += threads) back.run(g);
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

  template <class T>
  Given<T> given() const {
    return {numbers<T>(query), numbers<T>(key), numbers<T>(value), numbers<T>(weight), numbers<double>(log_decay),
            numbers<T>(rows), numbers<T>(bias)};
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
    forward<T>(s, x.given<T>(), numbers<T>(from), numbers<T>(sum),
               {numbers<T>(output), numbers<T>(denominator), recorded ? numbers<T>(memories) : nullptr,
                numbers<T>(totals), numbers<T>(end), numbers<T>(sum_end)});
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
  const Tensor d_out = d_output ? whole(*d_output) : zeros(x.value, x.value.sizes());
  const Tensor d_query = fresh_like(x.query), d_key = fresh_like(x.key), d_value = fresh_like(x.value);
  const Tensor d_memory = changed(d_end, memories, {s.groups, s.features, s.value_dim}),
               d_total = changed(d_sum_end, memories, {s.groups, s.features});
  const Tensor d_weight = weighted ? fresh_like(denominator) : fresh(x.value, {0}),
               d_rows = rows ? fresh_like(*x.rows) : fresh(x.value, {0}),
               d_bias = bias ? fresh_like(*x.bias) : fresh(x.value, {0});
  by_type(query, [&](auto zero) {
    using T = decltype(zero);
    backward<T>(s, x.given<T>(),
                {numbers<T>(memories), numbers<T>(totals), numbers<T>(output), numbers<T>(denominator),
                 numbers<T>(d_out)},
                {numbers<T>(d_query), numbers<T>(d_key), numbers<T>(d_value),
                 weighted ? numbers<T>(d_weight) : nullptr, rows ? numbers<T>(d_rows) : nullptr,
                 bias ? numbers<T>(d_bias) : nullptr, numbers<T>(d_memory), numbers<T>(d_total)});
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
