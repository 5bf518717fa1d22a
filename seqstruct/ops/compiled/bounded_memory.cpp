// Causal attention to a memory of slots, chunk by chunk, with everything of a chunk in the cache.
//
// The recurrences of seqstruct/ops/memory/bounded_memory.py, whose docstrings define every tensor; letters as there, G
// for batch and heads merged.  Memories are stored every SPAN steps for the backward pass, which writes those between
// again.

#include "bounded_memory.h"

#include <memory>
#include <vector>

namespace seqstruct::LEVEL {
namespace {

template <class T, class C>
void forward(const Sizes s, const T* query, const T* key, const T* value, const C* control,
             const T* state_0, const C* level_0, T* output, T* states, C* levels, T* state_end, C* level_end) {
  const Index D = s.D(), N = s.N(), E = s.E();
  share(s.groups, [&](Index thread, Index threads) {
    Record<T> record(s);
    Seen<T> seen(s);
    Controls<T, C> controls(s);
    Buffer<T> queries(CHUNK * D), keys(CHUNK * D), values(CHUNK * E), result(CHUNK * E);
    for (Index g = thread; g < s.groups; g += threads) {
      controls.begin(control + g * s.steps * s.slots);
      std::copy_n(level_0 + g * s.slots, s.slots, controls.level());
      record.take_state(s, state_0 + g * s.state());
      auto chunk = [&](Index start, Index stop) {
        const Index count = stop - start, all = padded(count), at = g * s.steps + start,
                    next = g * s.steps + stop, more = std::min(CHUNK, s.steps - stop);
        if (states && start % SPAN == 0) {
          const Index slot = g * s.stored() + start / SPAN;
          record.put_state(s, states + slot * s.state());
          std::copy_n(controls.level(), s.slots, levels + slot * s.slots);
        }
        const T* q = rows_of(count, all, query + at * s.dim, s.dim, queries);
        const T* k = rows_of(count, all, key + at * s.dim, s.dim, keys);
        const T* v = rows_of(count, all, value + at * s.value_dim, s.value_dim, values);
        prefetch(query + next * s.dim, more * s.dim);
        controls.weigh(start, stop, record);
        prefetch(control + next * s.slots, more * s.slots);
        if (record.rises_before) record.scale_state(s, record.before.get());
        seen.look(s, q, k, record);
        prefetch(key + next * s.dim, more * s.dim);
        T *to = output + at * s.value_dim, *out = place(count, all, to, s.value_dim, result);
        product_of_lower(all, E, plain(seen.mix.get(), CHUNK), v, E, out, E, false);
        product(all, E, s.slots, plain(seen.weights.get(), N), record.value.get(), E, out, E, true);
        settle(count, s.value_dim, out, to);
        prefetch(value + next * s.value_dim, more * s.value_dim);
        write(s, k, v, record, record);
      };
      controls.chunks(0, s.steps, chunk);
      record.put_state(s, state_end + g * s.state());
      std::copy_n(controls.level(), s.slots, level_end + g * s.slots);
    }
  });
}

// Gradients of one chunk; `d` holds that of the memory after it, and then before it.
template <class T, class C>
class Backward {
 public:
  Backward(const Sizes& s, bool controlled)
      : d(s), s_(s), controlled_(controlled), seen_(s), queries_(CHUNK * s.D()), keys_(CHUNK * s.D()),
        values_(CHUNK * s.E()), d_outputs_(CHUNK * s.E()), d_mix_(CHUNK * CHUNK),
        d_scores_(CHUNK * CHUNK), d_keyed_(CHUNK * s.N()), d_alpha_(CHUNK * s.N()),
        result_(CHUNK * std::max(s.D(), s.E())) {}

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
    T *turned = seen_.turned.get(), *d_mix = d_mix_.get(), *d_scores = d_scores_.get(), *d_keyed = d_keyed_.get(),
      *scores = seen_.scores.get(), *weights = seen_.weights.get();
    const Index earlier = std::min(CHUNK, record.start);
    prefetch(query - earlier * s_.dim, earlier * s_.dim);
    seen_.look(s_, q, k, record);
    prefetch(d_output - earlier * s_.value_dim, earlier * s_.value_dim);
    if (record.rises_after) d.scale_state(s_, record.after.get());

    transpose(all, E, v, E, turned, CHUNK);
    product_lower(all, s_.value_dim, plain(d_out, E), turned, CHUNK, d_mix, CHUNK);
    keep_triangle(all, d_mix, CHUNK);
    transpose(N, E, record.value.get(), E, turned, N);
    product_of_lower(all, N, plain(d_mix, CHUNK), record.alpha.get(), N, d_keyed, N, false);
    product(all, N, s_.value_dim, plain(d_out, E), turned, N, d_keyed, N, true);
    for (Index t = 0; t < all; ++t) through_softmax(t * N);
    product_lower(all, s_.slots, plain(d_keyed, N), seen_.alpha_t.get(), CHUNK, d_scores, CHUNK);
    keep_triangle(all, d_scores, CHUNK);

    transpose(D, N, record.key_t.get(), N, turned, D);
    T* result = place(count, all, d_query, s_.dim, result_);
    product_of_lower(all, D, plain(d_scores, CHUNK), k, D, result, D, false);
    product(all, D, s_.slots, plain(d_keyed, N), turned, D, result, D, true);
    settle(count, s_.dim, result, d_query);

    transpose(D, N, d.key_t.get(), N, turned, D);
    result = place(count, all, d_key, s_.dim, result_);
    product_of_upper(all, D, transposed(d_scores, CHUNK), q, D, result, D, false);
    product(all, D, s_.slots, plain(record.alpha.get(), N), turned, D, result, D, true);
    settle(count, s_.dim, result, d_key);

    result = place(count, all, d_value, s_.value_dim, result_);
    product_of_upper(all, E, transposed(seen_.mix.get(), CHUNK), d_out, E, result, E, false);
    product(all, E, s_.slots, plain(record.alpha.get(), N), d.value.get(), E, result, E, true);
    settle(count, s_.value_dim, result, d_value);

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
  // From the gradient of a step's weights to those of its logits before they are divided and scaled, and of its
  // totals, which take the place of the logits.
  void through_softmax(Index at) {
    T *d_keyed = d_keyed_.get() + at, *logits = seen_.logits.get() + at;
    const T *inverse = seen_.inverse.get() + at, *weights = seen_.weights.get() + at;
    const T factor = 1 / std::sqrt(T(s_.dim));
    Vector<T> sums{};
    for (Index j = 0; j < s_.N(); j += WIDTH<T>) {
      const Vector<T> pulled = load(d_keyed + j) * load(weights + j);
      store(d_keyed + j, pulled);
      sums += pulled;
    }
    sums = reduced<T>(sums, [](Vector<T> a, Vector<T> b) { return a + b; });
    for (Index j = 0; j < s_.N(); j += WIDTH<T>) {
      const Vector<T> pulled = load(d_keyed + j) * load(inverse + j), d_logits = pulled - load(weights + j) * sums;
      store(d_keyed + j, d_logits * factor);
      store(logits + j, -(pulled + d_logits * load(logits + j)));
    }
  }

  // From the last step back: what a weight adds to its own total and to all later ones.
  void through_totals(Index count, const T* alpha) {
    T *d_alpha = d_alpha_.get(), *d_total = d.total.get();
    for (Index t = count - 1; t >= 0; --t)
      for (Index j = 0; j < s_.N(); j += WIDTH<T>) {
        const Index at = t * s_.N() + j;
        const Vector<T> total = load(d_total + j) + load(seen_.logits.get() + at);
        store(d_total + j, total);
        if (controlled_) store(d_alpha + at, (load(d_alpha + at) + total) * load(alpha + at));
      }
  }

  Sizes s_;
  bool controlled_;
  Seen<T> seen_;
  Buffer<T> queries_, keys_, values_, d_outputs_, d_mix_, d_scores_, d_keyed_, d_alpha_, result_;
};

template <class T, class C>
void backward(const Sizes s, const T* query, const T* key, const T* value, const C* control,
              const T* states, const C* levels, const T* d_output, T* d_query, T* d_key, T* d_value, C* d_control,
              T* d_state) {
  share(s.groups, [&](Index thread, Index threads) {
    Backward<T, C> back(s, d_control != nullptr);
    Controls<T, C> controls(s);
    std::vector<std::unique_ptr<Record<T>>> records;
    for (Index g = thread; g < s.groups; g += threads) {
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
  });
}

Sizes sizes(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& control, bool means,
            bool empty) {
  expect("query", query, {ANY, ANY, ANY});
  expect("key", key, {query.size(0), query.size(1), query.size(2)});
  expect("value", value, {query.size(0), query.size(1), ANY});
  expect("control", control, {query.size(0), query.size(1), ANY});
  return {query.size(0), query.size(1), query.size(2), control.size(2), value.size(2), means, empty};
}

// run(T(), C()) for the types of queries and controls, which may be double for float.
template <class F>
void by_types(const Tensor& query, const Tensor& control, const F& run) {
  by_type(query, [&](auto zero) {
    if (control.scalar_type() == ScalarType::Double) run(zero, double());
    else run(zero, zero);
  });
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> memory(const Tensor& query, const Tensor& key, const Tensor& value,
                                                          const Tensor& control, const Tensor& state,
                                                          const Tensor& level, bool means, bool empty, bool recorded) {
  const Sizes s = sizes(query, key, value, control, means, empty);
  expect("state", state, {s.groups, s.state()});
  expect("level", level, {s.groups, s.slots});
  const Tensor q = whole(query), k = whole(key), v = whole(value), c = whole(control), from = whole(state),
               base = whole(level);
  const Tensor output = fresh_like(v), state_end = fresh_like(from), level_end = fresh_like(base);
  const Index stored = recorded ? s.stored() : 0;
  const Tensor states = fresh(from, {s.groups, stored, s.state()}), levels = fresh(base, {s.groups, stored, s.slots});
  by_types(query, control, [&](auto zero, auto none) {
    using T = decltype(zero);
    using C = decltype(none);
    forward<T, C>(s, numbers<T>(q), numbers<T>(k), numbers<T>(v), numbers<C>(c), numbers<T>(from), numbers<C>(base),
                  numbers<T>(output), recorded ? numbers<T>(states) : nullptr, numbers<C>(levels),
                  numbers<T>(state_end), numbers<C>(level_end));
  });
  return {output, state_end, level_end, states, levels};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> memory_backward(
    const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& control, const Tensor& states,
    const Tensor& levels, const Maybe& d_output, const Maybe& d_state, bool means, bool empty, bool controlled) {
  const Sizes s = sizes(query, key, value, control, means, empty);
  expect("states", states, {s.groups, s.stored(), s.state()});
  expect("levels", levels, {s.groups, s.stored(), s.slots});
  expect("d_output", d_output, {s.groups, s.steps, s.value_dim});
  expect("d_state", d_state, {s.groups, s.state()});
  const Tensor q = whole(query), k = whole(key), v = whole(value), c = whole(control);
  const Tensor d_out = d_output ? whole(*d_output) : zeros(v, v.sizes()), d_q = fresh_like(q), d_k = fresh_like(k),
               d_v = fresh_like(v), d_from = changed(d_state, q, {s.groups, s.state()});
  const Tensor d_c = controlled ? fresh_like(c) : fresh(c, {0});
  by_types(query, control, [&](auto zero, auto none) {
    using T = decltype(zero);
    using C = decltype(none);
    backward<T, C>(s, numbers<T>(q), numbers<T>(k), numbers<T>(v), numbers<C>(c), numbers<T>(states),
                   numbers<C>(levels), numbers<T>(d_out), numbers<T>(d_q), numbers<T>(d_k), numbers<T>(d_v),
                   controlled ? numbers<C>(d_c) : nullptr, numbers<T>(d_from));
  });
  return {d_q, d_k, d_v, d_c, d_from};
}

}  // namespace

OPERATORS(bounded_memory){
    {"bounded_memory(Tensor query, Tensor key, Tensor value, Tensor control, Tensor state, Tensor level, bool means, "
     "bool empty, bool recorded) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
     TORCH_BOX(&memory)},
    {"bounded_memory_backward(Tensor query, Tensor key, Tensor value, Tensor control, Tensor states, Tensor levels, "
     "Tensor? d_output, Tensor? d_state, bool means, bool empty, bool controlled) -> "
     "(Tensor, Tensor, Tensor, Tensor, Tensor)",
     TORCH_BOX(&memory_backward)},
    {}};

}  // namespace seqstruct::LEVEL
