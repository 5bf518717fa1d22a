// Softmax attention with dropout, a few queries at a time, and dropout alone, without masks in memory.
//
// As seqstruct/ops/softmax.py defines it; letters as there, J for heads of keys and values, each of H / J of queries.
// What dropout takes is drawn again in the backward pass, and weights are computed again from their `level`, the
// logarithm of each query's sum of exponentials.

#include "dropout.h"
#include "operators.h"

namespace seqstruct::LEVEL {
namespace {

constexpr Index BLOCK = 32;  // queries that go together
constexpr Index SMALL = 16384;  // numbers below which threads are not worth their start

Index of_rows(Index n) { return (n + ROWS - 1) / ROWS * ROWS; }

struct Sizes {
  Index batch, heads, shared, steps, keys, dim, value_dim;
  Index D() const { return padded(dim); }
  Index E() const { return padded(value_dim); }
  Index S() const { return padded(keys); }
  Index group() const { return heads / shared; }
  bool large() const { return batch * heads * steps * keys >= SMALL; }
};

// Which keys a query sees; bytes of a B H T S tensor, whose axes may have one entry for all.
struct Sight {
  const bool* data = nullptr;
  Index step[4] = {0, 0, 0, 0};
  bool causal = false;

  Sight(const Maybe& visible, const Sizes& s, bool causal) : causal(causal) {
    if (!visible) return;
    const Index wanted[4] = {s.batch, s.heads, s.steps, s.keys};
    expect(visible->dim() == 4 && visible->scalar_type() == ScalarType::Bool, "visible: B H T S bool");
    for (int axis = 0; axis < 4; ++axis) {
      const Index size = visible->size(axis);
      expect(size == 1 || size == wanted[axis], "visible: axes of the sizes of B H T S, or of one");
      step[axis] = size == 1 ? 0 : visible->stride(axis);
    }
    data = visible->mutable_data_ptr<bool>();
  }

  const bool* row(Index b, Index h, Index t) const { return data + b * step[0] + h * step[1] + t * step[2]; }

  // Keys from which on none of these queries sees any.
  Index limit(const Sizes& s, Index b, Index h, Index first, Index stop) const {
    if (causal) return stop;
    if (!data) return s.keys;
    Index most = 0;
    for (Index t = first; t < stop; ++t) {
      const bool* seen = row(b, h, t);
      for (Index k = s.keys; k > most; --k)
        if (seen[(k - 1) * step[3]]) most = k;
    }
    return most;
  }
};

// One head of keys and values in the cache, and the queries of a block with their weights.
template <class T>
class Block {
 public:
  explicit Block(const Sizes& s)
      : keys(s.S() * s.D()), values(s.S() * s.E()), queries(BLOCK * s.D()), weights(BLOCK * s.S()), s_(s),
        keys_t_(s.D() * s.S()), factors_(Dropout::room(BLOCK * s.keys)) {}

  Buffer<T> keys, values, queries, weights;
  Index limit = 0, rows = 0;  // keys that are seen, and queries up to a multiple of ROWS
  const T* kept = nullptr;    // factors of dropout, rows of s.keys

  void take_head(const T* key, Index key_step, const T* value, Index value_step) {
    take(s_.keys, s_.dim, key, key_step, keys.get(), s_.D(), s_.S());
    take(s_.keys, s_.value_dim, value, value_step, values.get(), s_.E(), s_.S());
    transpose(s_.S(), s_.D(), keys.get(), s_.D(), keys_t_.get(), s_.S());
  }

  // Scores of the queries [first, stop), minus infinity where a key is not seen.
  void score(const Sight& sight, Index b, Index h, Index first, Index stop, const T* query, Index query_step) {
    const Index S = s_.S(), D = s_.D(), count = stop - first;
    rows = of_rows(count), limit = sight.limit(s_, b, h, first, stop);
    take(count, s_.dim, query, query_step, queries.get(), D, rows);
    scale(rows * D, 1 / std::sqrt(T(s_.dim)), queries.get());
    product(rows, padded(limit), s_.dim, plain(queries.get(), D), keys_t_.get(), S, weights.get(), S, false);
    constexpr T none = -std::numeric_limits<T>::infinity();
    for (Index t = 0; t < rows; ++t) {
      T* row = weights.get() + t * S;
      const Index open = t >= count ? 0 : sight.causal ? first + t + 1 : limit;
      if (sight.data && t < count) {
        const bool* seen = sight.row(b, h, first + t);
        const Index apart = sight.step[3];
        if (apart == 1)
          for (Index k = 0; k < open; ++k) row[k] = seen[k] ? row[k] : none;
        else
          for (Index k = 0; k < open; ++k) row[k] = seen[k * apart] ? row[k] : none;
      }
      std::fill(row + open, row + padded(limit), none);
    }
  }

  void drop(const Dropout& dropout, Index b, Index h, Index first, Index count) {
    kept = dropout.factors(((b * s_.heads + h) * s_.steps + first) * s_.keys, count * s_.keys, factors_.get());
  }

 private:
  const Sizes s_;
  Buffer<T> keys_t_, factors_;
};

// A row of scores becomes weights that sum to 1, or zeros where nothing is seen: the logarithm of its sum, infinity
// then.  A score that is no number, or infinite, makes all no numbers.
template <class T>
T normalise(Index width, T* row) {
  constexpr T infinite = std::numeric_limits<T>::infinity();
  Vector<T> most = Vector<T>{} - infinite, odd{};
  for (Index k = 0; k < width; k += WIDTH<T>) {
    const Vector<T> x = load(row + k);
    most = x > most ? x : most;
    odd = x < infinite ? odd : Vector<T>{} + T(1);
  }
  T largest = -infinite;
  for (int i = 0; i < WIDTH<T>; ++i) largest = std::max(largest, most[i]);
  if (sum<T>(odd) > 0) {
    std::fill(row, row + width, std::numeric_limits<T>::quiet_NaN());
    return row[0];
  }
  if (largest == -infinite) {
    std::fill(row, row + width, T(0));
    return infinite;
  }
  for (Index k = 0; k < width; ++k) row[k] -= largest;
  exponentials(width, row);
  Vector<T> totals{};
  for (Index k = 0; k < width; k += WIDTH<T>) totals += load(row + k);
  const T total = sum<T>(totals);
  scale(width, 1 / total, row);
  return largest + std::log(total);
}

template <class T>
void forward(const Sizes s, const Sight& sight, const Dropout& dropout, const Tensor& query, const Tensor& key,
             const Tensor& value, const Tensor& output, const Tensor& level) {
  const Rows<T> q(query), k(key), v(value), out(output);
  T* levels = numbers<T>(level);
  share(s.batch * s.shared, [&](Index thread, Index threads) {
    Block<T> block(s);
    Buffer<T> result(BLOCK * s.E());
    for (Index task = thread; task < s.batch * s.shared; task += threads) {
      const Index b = task / s.shared, j = task % s.shared;
      block.take_head(k.at(b, j), k.step, v.at(b, j), v.step);
      for (Index h = j * s.group(); h < (j + 1) * s.group(); ++h)
        for (Index first = 0; first < s.steps; first += BLOCK) {
          const Index stop = std::min(first + BLOCK, s.steps), count = stop - first, E = s.E();
          block.score(sight, b, h, first, stop, q.at(b, h, first), q.step);
          block.drop(dropout, b, h, first, count);
          for (Index t = 0; t < count; ++t) {
            T* row = block.weights.get() + t * s.S();
            levels[(b * s.heads + h) * s.steps + first + t] = normalise(padded(block.limit), row);
            for (Index i = 0; i < block.limit; ++i) row[i] *= block.kept[t * s.keys + i];
          }
          product(block.rows, E, block.limit, plain(block.weights.get(), s.S()), block.values.get(), E, result.get(), E,
                  false);
          put(count, s.value_dim, result.get(), E, out.at(b, h, first), out.step);
        }
    }
  }, s.large());
}

template <class T>
class Backward {
 public:
  explicit Backward(const Sizes& s)
      : block(s), d_keys(s.S() * s.D()), d_values(s.S() * s.E()), s_(s), values_t_(s.E() * s.S()),
        d_outputs_(BLOCK * s.E()), d_weights_(BLOCK * s.S()), result_(BLOCK * s.D()) {}

  Block<T> block;
  Buffer<T> d_keys, d_values;

  void begin() {
    transpose(s_.S(), s_.E(), block.values.get(), s_.E(), values_t_.get(), s_.S());
    std::fill_n(d_keys.get(), s_.S() * s_.D(), T(0));
    std::fill_n(d_values.get(), s_.S() * s_.E(), T(0));
  }

  // Of a block that was scored: the gradient of its queries; those of keys and values are added.
  void pass(Index count, const T* levels, const T* d_output, Index d_step, const T* output, Index out_step, T* d_query,
            Index q_step) {
    const Index S = s_.S(), D = s_.D(), E = s_.E(), rows = block.rows, limit = block.limit, wide = padded(limit);
    T *weights = block.weights.get(), *d_weights = d_weights_.get(), *d_out = d_outputs_.get();
    take(count, s_.value_dim, d_output, d_step, d_out, E, rows);
    product(rows, wide, s_.value_dim, plain(d_out, E), values_t_.get(), S, d_weights, S, false);
    for (Index t = 0; t < count; ++t) {
      T *row = weights + t * S, *d_row = d_weights + t * S;
      const T* kept = block.kept + t * s_.keys;
      const T mean = inner(s_.value_dim, d_output + t * d_step, output + t * out_step);
      for (Index k = 0; k < wide; ++k) row[k] -= levels[t];
      exponentials(wide, row);
      if (levels[t] != levels[t]) std::fill(row, row + wide, levels[t]);
      for (Index k = 0; k < limit; ++k) {
        d_row[k] = row[k] * (d_row[k] * kept[k] - mean);
        row[k] *= kept[k];
      }
      std::fill(d_row + limit, d_row + wide, T(0));
    }
    product(rows, D, limit, plain(d_weights, S), block.keys.get(), D, result_.get(), D, false);
    scale(rows * D, 1 / std::sqrt(T(s_.dim)), result_.get());
    put(count, s_.dim, result_.get(), D, d_query, q_step);
    product(wide, D, count, transposed(d_weights, S), block.queries.get(), D, d_keys.get(), D, true);
    product(wide, E, count, transposed(weights, S), d_out, E, d_values.get(), E, true);
  }

 private:
  const Sizes s_;
  Buffer<T> values_t_, d_outputs_, d_weights_, result_;
};

template <class T>
void backward(const Sizes s, const Sight& sight, const Dropout& dropout, const Tensor& d_output, const Tensor& query,
              const Tensor& key, const Tensor& value, const Tensor& output, const Tensor& level, const Tensor& d_query,
              const Tensor& d_key, const Tensor& d_value) {
  const Rows<T> d_out(d_output), q(query), k(key), v(value), out(output), d_q(d_query), d_k(d_key), d_v(d_value);
  const T* levels = numbers<T>(level);
  share(s.batch * s.shared, [&](Index thread, Index threads) {
    Backward<T> gradients(s);
    Block<T>& block = gradients.block;
    for (Index task = thread; task < s.batch * s.shared; task += threads) {
      const Index b = task / s.shared, j = task % s.shared;
      block.take_head(k.at(b, j), k.step, v.at(b, j), v.step);
      gradients.begin();
      for (Index h = j * s.group(); h < (j + 1) * s.group(); ++h)
        for (Index first = 0; first < s.steps; first += BLOCK) {
          const Index stop = std::min(first + BLOCK, s.steps);
          block.score(sight, b, h, first, stop, q.at(b, h, first), q.step);
          block.drop(dropout, b, h, first, stop - first);
          gradients.pass(stop - first, levels + (b * s.heads + h) * s.steps + first, d_out.at(b, h, first), d_out.step,
                         out.at(b, h, first), out.step, d_q.at(b, h, first), d_q.step);
        }
      put(s.keys, s.dim, gradients.d_keys.get(), s.D(), d_k.at(b, j), d_k.step);
      put(s.keys, s.value_dim, gradients.d_values.get(), s.E(), d_v.at(b, j), d_v.step);
    }
  }, s.large());
}

Sizes sizes_of(const Tensor& query, const Tensor& key, const Tensor& value, bool causal, double dropout) {
  expect("query", query, {ANY, ANY, ANY, ANY});
  expect(key.dim() == 4 && value.dim() == 4, "key and value: B J S D and B J S E");
  const Sizes s{query.size(0), query.size(1), key.size(1), query.size(2), key.size(2), query.size(3), value.size(3)};
  expect("key", key, {s.batch, s.shared, s.keys, s.dim});
  expect("value", value, {s.batch, s.shared, s.keys, s.value_dim});
  expect(s.shared > 0 && s.heads % s.shared == 0, "heads of queries a multiple of those of keys and values");
  expect(!causal || s.steps == s.keys, "as many queries as keys in causal attention");
  expect(dropout >= 0 && dropout < 1, "dropout of a share from 0 to below 1");
  return s;
}

std::tuple<Tensor, Tensor> attend(const Tensor& query, const Tensor& key, const Tensor& value, const Maybe& visible,
                                  bool causal, double dropout, Index seed) {
  const Sizes s = sizes_of(query, key, value, causal, dropout);
  const Sight sight(visible, s, causal);
  const Tensor output = fresh(query, {s.batch, s.heads, s.steps, s.value_dim});
  const Tensor level = fresh(query, {s.batch, s.heads, s.steps});
  by_type(query, [&](auto zero) {
    forward<decltype(zero)>(s, sight, Dropout(dropout, seed), with_rows(query), with_rows(key), with_rows(value),
                            output, level);
  });
  return {output, level};
}

std::tuple<Tensor, Tensor, Tensor> attend_backward(const Tensor& d_output, const Tensor& query, const Tensor& key,
                                                   const Tensor& value, const Maybe& visible, bool causal,
                                                   double dropout, Index seed, const Tensor& output,
                                                   const Tensor& level) {
  const Sizes s = sizes_of(query, key, value, causal, dropout);
  const Sight sight(visible, s, causal);
  expect("d_output", d_output, {s.batch, s.heads, s.steps, s.value_dim});
  expect("output", output, {s.batch, s.heads, s.steps, s.value_dim});
  expect("level", level, {s.batch, s.heads, s.steps});
  const Tensor d_query = fresh(query, {s.batch, s.heads, s.steps, s.dim});
  const Tensor d_key = fresh(query, {s.batch, s.shared, s.keys, s.dim});
  const Tensor d_value = fresh(query, {s.batch, s.shared, s.keys, s.value_dim});
  by_type(query, [&](auto zero) {
    backward<decltype(zero)>(s, sight, Dropout(dropout, seed), with_rows(d_output), with_rows(query), with_rows(key),
                             with_rows(value), with_rows(output), whole(level), d_query, d_key, d_value);
  });
  return {d_query, d_key, d_value};
}

Tensor dropped(const Tensor& x, double share_, Index seed) {
  expect(share_ >= 0 && share_ < 1, "dropout of a share from 0 to below 1");
  const Tensor from = whole(x), to = fresh_like(from);
  const Dropout dropout(share_, seed);
  const Index count = from.numel(), piece = 16 * GROUP, pieces = (count + piece - 1) / piece;
  by_type(from, [&](auto zero) {
    using T = decltype(zero);
    const T* given = numbers<T>(from);
    T* found = numbers<T>(to);
    share(pieces, [&](Index thread, Index threads) {
      Buffer<T> factors(Dropout::room(piece));
      for (Index at = thread; at < pieces; at += threads) {
        const Index first = at * piece, here = std::min(piece, count - first);
        const T* kept = dropout.factors(first, here, factors.get());
        for (Index i = 0; i < here; ++i) found[first + i] = given[first + i] * kept[i];
      }
    }, count >= SMALL);
  });
  return to;
}

}  // namespace

OPERATORS(softmax_attention){
    {"softmax_attention(Tensor query, Tensor key, Tensor value, Tensor? visible, bool causal, float dropout, int seed) "
     "-> (Tensor, Tensor)",
     TORCH_BOX(&attend)},
    {"softmax_attention_backward(Tensor d_output, Tensor query, Tensor key, Tensor value, Tensor? visible, "
     "bool causal, float dropout, int seed, Tensor output, Tensor level) -> (Tensor, Tensor, Tensor)",
     TORCH_BOX(&attend_backward)},
    {"dropped(Tensor x, float share, int seed) -> Tensor", TORCH_BOX(&dropped)},
    {}};

}  // namespace seqstruct::LEVEL
