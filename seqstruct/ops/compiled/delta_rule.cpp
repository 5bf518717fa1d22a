// The delta rule, and sums that decay, one row of keys after the other, with the memory in the cache.
//
// The recurrence of seqstruct/ops/delta/naive.py; letters as there, R rows of keys, `steps` of each token.  One pass
// over the memory writes a row, reads it for the row's query and for the next row's key, so that each number is loaded
// once.
// The backward pass stores no memories either: it goes back with the memory's gradient, for which no memory is needed,
// and then on with the memory.  There a number of the memory at a row's end times its gradient, summed over values, is
// what the decay of the next row gets; that of the row itself differs by what the row's query and key got.

#include "operators.h"

namespace seqstruct::LEVEL {
namespace {

constexpr int WIDE = BYTES == 64 ? 4 : 2;  // vectors side by side in a pass, as registers allow
constexpr double STRONGEST = -1e4;         // as in seqstruct/ops/delta/chunks.py: no gradient below it

struct Sizes {
  Index batch, heads, tokens, steps, key_dim, value_dim;
  bool channels, read;  // whether each channel of the keys has a decay of its own, and whether there are queries
  Index rows() const { return tokens * steps; }
  Index K() const { return padded(key_dim); }
  Index V() const { return padded(value_dim); }
  Index groups() const { return batch * heads; }
};

// Of one pass: x_i becomes decay x_i + by_i added, then sums += weights_i x_i.
template <class T, int ADDED, int READ>
struct Terms {
  const T *by[ADDED], *added[ADDED], *weights[READ];
  T* sums[READ];
};

template <class T, bool BY_ROW, int N, int ADDED, int READ>
inline void pass_block(Index rows, Index stride, Index column, T* x, const T* decay,
                       const Terms<T, ADDED, READ>& terms) {
  Vector<T> total[READ][N] = {}, added[ADDED][N], decays[N];
  for (int v = 0; v < N; ++v) {
    if (!BY_ROW) decays[v] = load(decay + column + v * WIDTH<T>);
    for (int a = 0; a < ADDED; ++a) added[a][v] = load(terms.added[a] + column + v * WIDTH<T>);
  }
  for (Index i = 0; i < rows; ++i) {
    T* at = x + i * stride + column;
    for (int v = 0; v < N; ++v) {
      Vector<T> here = load(at + v * WIDTH<T>);
      if constexpr (BY_ROW) here *= decay[i];
      else here *= decays[v];
      for (int a = 0; a < ADDED; ++a) here += terms.by[a][i] * added[a][v];
      store(at + v * WIDTH<T>, here);
      for (int r = 0; r < READ; ++r) total[r][v] += terms.weights[r][i] * here;
    }
  }
  for (int r = 0; r < READ; ++r)
    for (int v = 0; v < N; ++v) store(terms.sums[r] + column + v * WIDTH<T>, total[r][v]);
}

// A pass over a matrix of `rows` rows, `columns` of PAD; its decay is of each row, or else of each column.
template <class T, bool BY_ROW, int ADDED, int READ>
inline void pass(Index rows, Index columns, T* x, const T* decay, const Terms<T, ADDED, READ>& terms) {
  Index column = 0;
  for (; columns - column >= WIDE * WIDTH<T>; column += WIDE * WIDTH<T>)
    pass_block<T, BY_ROW, WIDE>(rows, columns, column, x, decay, terms);
  for (; column < columns; column += WIDTH<T>) pass_block<T, BY_ROW, 1>(rows, columns, column, x, decay, terms);
}

template <class T>
struct Inputs {
  Rows<T> query, key, value;
  const T *log_decay, *beta, *memory;  // contiguous; null where there are none
};

// What one row of keys brings; before the first and after the last one nothing, and nothing decays.
template <class T>
class Row {
 public:
  explicit Row(const Sizes& s) : key(s.K()), decay(s.K()), decayed(s.K()), query(s.K()), s_(s) {}

  Buffer<T> key, decay, decayed, query;  // decayed: the key times the decays

  void take(const Inputs<T>& x, Index g, Index row) {
    const Index b = g / s_.heads, h = g % s_.heads, token = row / s_.steps;
    const bool there = row >= 0 && row < s_.rows();
    clear();
    if (!there) return;
    std::copy_n(x.key.at(b, h, row), s_.key_dim, key.get());
    std::copy_n(key.get(), s_.K(), decayed.get());
    if (s_.read && row % s_.steps == s_.steps - 1) std::copy_n(x.query.at(b, h, token), s_.key_dim, query.get());
    if (!x.log_decay || row % s_.steps) return;
    const T* logs = x.log_decay + (g * s_.tokens + token) * (s_.channels ? s_.key_dim : 1);
    if (s_.channels) std::copy_n(logs, s_.key_dim, decay.get());
    else std::fill_n(decay.get(), s_.key_dim, *logs);
    std::fill(decay.get() + s_.key_dim, decay.get() + s_.K(), T(0));
    exponentials(s_.K(), decay.get());
    for (Index i = 0; i < s_.key_dim; ++i) decayed.get()[i] *= decay.get()[i];
  }

 private:
  void clear() {
    for (Buffer<T>* part : {&key, &decayed, &query}) std::fill_n(part->get(), s_.K(), T(0));
    std::fill_n(decay.get(), s_.K(), T(1));
  }

  const Sizes s_;
};

template <class T>
void forward(const Sizes s, const Inputs<T>& x, const Rows<T>& output, T* residual, T* memory_end) {
  share(s.groups(), [&](Index thread, Index threads) {
    Row<T> first(s), second(s);
    Row<T>*now = &first, *next = &second;
    Buffer<T> memory(s.key_dim * s.V()), written(s.V()), reading(s.V()), known(s.V());
    for (Index g = thread; g < s.groups(); g += threads) {
      const Index b = g / s.heads, h = g % s.heads, size = s.key_dim * s.value_dim;
      take(s.key_dim, s.value_dim, x.memory + g * size, s.value_dim, memory.get(), s.V(), s.key_dim);
      now->take(x, g, -1);
      for (Index row = -1; row < s.rows(); ++row, std::swap(now, next)) {
        next->take(x, g, row + 1);
        const T *by = now->key.get(), *query = now->query.get(), *asked = next->decayed.get();
        if (x.beta)
          pass<T, true, 1, 2>(s.key_dim, s.V(), memory.get(), now->decay.get(),
                              {{by}, {written.get()}, {query, asked}, {reading.get(), known.get()}});
        else
          pass<T, true, 1, 1>(s.key_dim, s.V(), memory.get(), now->decay.get(),
                              {{by}, {written.get()}, {query}, {reading.get()}});
        if (s.read && row >= 0 && row % s.steps == s.steps - 1)
          std::copy_n(reading.get(), s.value_dim, output.at(b, h, row / s.steps));
        if (row + 1 == s.rows()) continue;
        const T* value = x.value.at(b, h, row + 1);
        const Index at = g * s.rows() + row + 1;
        for (Index j = 0; j < s.value_dim; ++j) {
          if (!x.beta) written.get()[j] = value[j];
          else written.get()[j] = x.beta[at] * (residual[at * s.value_dim + j] = value[j] - known.get()[j]);
        }
      }
      put(s.key_dim, s.value_dim, memory.get(), s.V(), memory_end + g * size, s.value_dim);
    }
  });
}

// K V numbers as V padded rows, and back.
template <class T>
void turn(const Sizes& s, const T* from, T* to) {
  std::fill_n(to, s.value_dim * s.K(), T(0));
  for (Index i = 0; i < s.key_dim; ++i)
    for (Index j = 0; j < s.value_dim; ++j) to[j * s.K() + i] = from[i * s.value_dim + j];
}

template <class T>
void turn_back(const Sizes& s, const T* from, T* to) {
  for (Index i = 0; i < s.key_dim; ++i)
    for (Index j = 0; j < s.value_dim; ++j) to[i * s.value_dim + j] = from[j * s.K() + i];
}

// Sums that decay, read from the other side: queries are of the values' size, and outputs of the keys'.
template <class T>
void scores(const Sizes s, const Inputs<T>& x, const Rows<T>& output, T* memory_end) {
  share(s.groups(), [&](Index thread, Index threads) {
    Row<T> now(s);
    Buffer<T> turned(s.value_dim * s.K()), found(s.K());
    for (Index g = thread; g < s.groups(); g += threads) {
      const Index b = g / s.heads, h = g % s.heads, size = s.key_dim * s.value_dim;
      turn(s, x.memory + g * size, turned.get());
      for (Index row = 0; row < s.rows(); ++row) {
        now.take(x, g, row);
        pass<T, false, 1, 1>(s.value_dim, s.K(), turned.get(), now.decay.get(),
                             {{x.value.at(b, h, row)}, {now.key.get()}, {x.query.at(b, h, row)}, {found.get()}});
        std::copy_n(found.get(), s.key_dim, output.at(b, h, row));
      }
      turn_back(s, turned.get(), memory_end + g * size);
    }
  });
}

template <class T>
struct Gradients {
  Rows<T> query, key, value;
  T *log_decay, *beta, *memory;  // null where there are none
};

// Of one head: the gradient of the memory goes back through the rows, and then the memory on.
template <class T>
class Backward {
 public:
  Backward(const Sizes& s, const Inputs<T>& x, const Rows<T>& d_output, const T* d_end, const T* residual,
           const T* memory_end, const Gradients<T>& d)
      : s_(s), x_(x), d_output_(d_output), d_end_(d_end), residual_(residual), memory_end_(memory_end), d_(d),
        first_(s), second_(s), memory_(s.key_dim * s.V()), turned_(s.value_dim * s.K()), written_(s.V()),
        d_read_(s.V()), d_known_(s.V()), d_written_(s.V()), d_query_(s.K()), d_key_(s.K()),
        decays_(s.channels ? s.K() : 1),
        gained_(x.log_decay ? s.rows() * (s.channels ? s.key_dim : 1) : 0) {}

  void group(Index g) {
    g_ = g, b_ = g / s_.heads, h_ = g % s_.heads;
    back();
    on();
    if (x_.log_decay) decays();
  }

 private:
  void back() {
    const Index K = s_.K(), V = s_.V();
    Row<T>*now = &first_, *after = &second_;
    const T* end = d_end_ + g_ * s_.key_dim * s_.value_dim;
    take(s_.key_dim, s_.value_dim, end, s_.value_dim, memory_.get(), V, s_.key_dim);
    turn(s_, end, turned_.get());
    std::fill_n(d_known_.get(), V, T(0));
    after->take(x_, g_, s_.rows());
    for (Index row = s_.rows() - 1; row >= -1; --row, std::swap(now, after)) {
      now->take(x_, g_, row);
      at_row(row);
      const T *known = d_known_.get(), *read = d_read_.get(), *decayed = after->decayed.get(),
              *query = now->query.get();
      pass<T, true, 2, 1>(s_.key_dim, V, memory_.get(), after->decay.get(),
                          {{decayed, query}, {known, read}, {now->key.get()}, {d_written_.get()}});
      if (row < 0) break;
      pass<T, false, 2, 1>(s_.value_dim, K, turned_.get(), after->decay.get(),
                           {{known, read}, {decayed, query}, {written_.get()}, {d_key_.get()}});
      std::copy_n(d_key_.get(), s_.key_dim, d_.key.at(b_, h_, row));
      T* d_value = d_.value.at(b_, h_, row);
      const Index at = g_ * s_.rows() + row;
      const T strength = x_.beta ? x_.beta[at] : T(1);
      for (Index j = 0; j < s_.value_dim; ++j) {
        d_value[j] = strength * d_written_.get()[j];
        if (x_.beta) d_known_.get()[j] = -d_value[j];
      }
      if (x_.beta) d_.beta[at] = inner(s_.value_dim, d_written_.get(), residual_ + at * s_.value_dim);
    }
    put(s_.key_dim, s_.value_dim, memory_.get(), V, d_.memory + g_ * s_.key_dim * s_.value_dim, s_.value_dim);
  }

  void on() {
    const Index K = s_.K();
    Row<T>& now = first_;
    turn(s_, x_.memory + g_ * s_.key_dim * s_.value_dim, turned_.get());
    for (Index row = 0; row < s_.rows(); ++row) {
      now.take(x_, g_, row);
      at_row(row);
      T *d_query = d_query_.get(), *d_asked = d_key_.get(), *d_key = d_.key.at(b_, h_, row);
      const T *known = d_known_.get(), *key = now.key.get(), *query = now.query.get();
      std::fill_n(d_asked, K, T(0));
      if (x_.beta) {
        const T* d_value = d_.value.at(b_, h_, row);
        for (Index j = 0; j < s_.value_dim; ++j) d_known_.get()[j] = -d_value[j];
        pass<T, false, 1, 2>(s_.value_dim, K, turned_.get(), now.decay.get(),
                             {{written_.get()}, {key}, {d_read_.get(), known}, {d_query, d_asked}});
        add_scaled(K, -dot(s_.V(), known, written_.get()), key, d_asked);  // the memory before the row was written
      } else {
        pass<T, false, 1, 1>(s_.value_dim, K, turned_.get(), now.decay.get(),
                             {{written_.get()}, {key}, {d_read_.get()}, {d_query}});
      }
      if (s_.read && row % s_.steps == s_.steps - 1)
        std::copy_n(d_query, s_.key_dim, d_.query.at(b_, h_, row / s_.steps));
      double all = 0;
      for (Index i = 0; i < s_.key_dim; ++i) {
        const double gained = double(query[i]) * d_query[i] + double(key[i]) * (double(d_asked[i]) - d_key[i]);
        d_key[i] += d_asked[i];
        if (s_.channels) gained_.get()[row * s_.key_dim + i] = gained;
        all += gained;
      }
      if (x_.log_decay && !s_.channels) gained_.get()[row] = all;
    }
  }

  // From the last row to the first, what each decay gets.
  void decays() {
    const Index size = s_.key_dim * s_.value_dim, per = s_.channels ? s_.key_dim : 1;
    const T *end = memory_end_ + g_ * size, *d_end = d_end_ + g_ * size;
    std::fill_n(decays_.get(), per, 0.0);
    for (Index i = 0; i < s_.key_dim; ++i)
      for (Index j = 0; j < s_.value_dim; ++j)
        decays_.get()[s_.channels ? i : 0] += double(end[i * s_.value_dim + j]) * d_end[i * s_.value_dim + j];
    for (Index row = s_.rows() - 1; row >= 0; --row)
      for (Index i = 0; i < per; ++i) {
        const double total = decays_.get()[i] += gained_.get()[row * per + i];
        const Index at = (g_ * s_.tokens + row / s_.steps) * per + i;
        if (row % s_.steps == 0) d_.log_decay[at] = x_.log_decay[at] < T(STRONGEST) ? T(0) : T(total);
      }
  }

  // What the row writes, and the gradient of its reading, zeros where there is none.
  void at_row(Index row) {
    std::fill_n(d_read_.get(), s_.V(), T(0));
    if (row < 0) return;
    const Index at = g_ * s_.rows() + row;
    const T* from = x_.beta ? residual_ + at * s_.value_dim : x_.value.at(b_, h_, row);
    for (Index j = 0; j < s_.value_dim; ++j) written_.get()[j] = x_.beta ? x_.beta[at] * from[j] : from[j];
    if (s_.read && row % s_.steps == s_.steps - 1)
      std::copy_n(d_output_.at(b_, h_, row / s_.steps), s_.value_dim, d_read_.get());
  }

  const Sizes s_;
  const Inputs<T>& x_;
  const Rows<T>& d_output_;
  const T *d_end_, *residual_, *memory_end_;
  const Gradients<T>& d_;
  Index g_ = 0, b_ = 0, h_ = 0;
  Row<T> first_, second_;
  Buffer<T> memory_, turned_, written_, d_read_, d_known_, d_written_, d_query_, d_key_;
  Buffer<double> decays_, gained_;
};

Sizes sizes_of(const Tensor& query, const Tensor& key, const Tensor& value, const Maybe& log_decay, const Maybe& beta,
               const Tensor& memory, Index steps) {
  expect("key", key, {ANY, ANY, ANY, ANY});
  expect(steps > 0 && key.size(2) % steps == 0, "so many rows of keys for each token");
  const Index B = key.size(0), H = key.size(1), T = key.size(2) / steps, K = key.size(3);
  expect("value", value, {B, H, T * steps, ANY});
  const bool channels = log_decay && log_decay->dim() == 4, read = query.dim() != 4 || query.size(2) || !T;
  expect("query", query, {B, H, read ? T : 0, K});
  if (channels) expect("log_decay", *log_decay, {B, H, T, K});
  else expect("log_decay", log_decay, {B, H, T});
  expect(!channels || steps == 1, "one row of keys a token with decays of channels");
  expect("beta", beta, {B, H, T * steps});
  expect("memory", memory, {B, H, K, value.size(3)});
  return {B, H, T, steps, K, value.size(3), channels, read};
}

std::tuple<Tensor, Tensor, Tensor> rule(const Tensor& query, const Tensor& key, const Tensor& value,
                                        const Maybe& log_decay, const Maybe& beta, const Tensor& memory, Index steps) {
  const Sizes s = sizes_of(query, key, value, log_decay, beta, memory, steps);
  const Tensor output = fresh(value, {s.batch, s.heads, s.read ? s.tokens : 0, s.value_dim}), from = whole(memory);
  const Tensor residual = fresh(value, {s.batch, s.heads, beta ? s.rows() : 0, s.value_dim}), end = fresh_like(from);
  const Maybe decay = whole(log_decay), strength = whole(beta);
  const Tensor q = with_rows(query), k = with_rows(key), v = with_rows(value);
  by_type(value, [&](auto zero) {
    using T = decltype(zero);
    const Inputs<T> x{Rows<T>(q), Rows<T>(k), Rows<T>(v), numbers<T>(decay), numbers<T>(strength), numbers<T>(from)};
    forward<T>(s, x, Rows<T>(output), numbers<T>(residual), numbers<T>(end));
  });
  return {output, end, residual};
}

std::tuple<Tensor, Tensor> rule_scores(const Tensor& query, const Tensor& key, const Tensor& value,
                                       const Maybe& log_decay, const Tensor& memory) {
  Sizes s = sizes_of(key, key, value, log_decay, std::nullopt, memory, 1);
  s.read = false;
  expect("query", query, {s.batch, s.heads, s.tokens, s.value_dim});
  const Tensor output = fresh(value, {s.batch, s.heads, s.tokens, s.key_dim}), from = whole(memory);
  const Tensor end = fresh_like(from), q = with_rows(query), k = with_rows(key), v = with_rows(value);
  const Maybe decay = whole(log_decay);
  by_type(value, [&](auto zero) {
    using T = decltype(zero);
    const Inputs<T> x{Rows<T>(q), Rows<T>(k), Rows<T>(v), numbers<T>(decay), nullptr, numbers<T>(from)};
    scores<T>(s, x, Rows<T>(output), numbers<T>(end));
  });
  return {output, end};
}

using Results = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

Results rule_backward(const Maybe& d_output, const Maybe& d_end, const Tensor& query, const Tensor& key,
                      const Tensor& value, const Maybe& log_decay, const Maybe& beta, const Tensor& memory,
                      const Tensor& memory_end, const Tensor& residual, Index steps) {
  const Sizes s = sizes_of(query, key, value, log_decay, beta, memory, steps);
  expect("memory_end", memory_end, {s.batch, s.heads, s.key_dim, s.value_dim});
  expect("residual", residual, {s.batch, s.heads, beta ? s.rows() : 0, s.value_dim});
  const Index T_ = s.read ? s.tokens : 0;
  expect("d_output", d_output, {s.batch, s.heads, T_, s.value_dim});
  expect("d_end", d_end, {s.batch, s.heads, s.key_dim, s.value_dim});
  const Index output[] = {s.batch, s.heads, T_, s.value_dim};
  const Tensor d_read = d_output ? with_rows(*d_output) : zeros(value, {output, 4});
  const Tensor d_last = d_end ? whole(*d_end) : zeros(memory, memory.sizes());
  const Tensor from = whole(memory), end = whole(memory_end), rest = whole(residual);
  const Maybe decay = whole(log_decay), strength = whole(beta);
  const Tensor q = with_rows(query), k = with_rows(key), v = with_rows(value);
  const Tensor d_query = fresh_like(query), d_key = fresh_like(key), d_value = fresh_like(value);
  const Tensor d_decay = decay ? fresh_like(*decay) : fresh(value, {0});
  const Tensor d_beta = beta ? fresh_like(*strength) : fresh(value, {0}), d_memory = fresh_like(from);
  by_type(value, [&](auto zero) {
    using T = decltype(zero);
    const Inputs<T> x{Rows<T>(q), Rows<T>(k), Rows<T>(v), numbers<T>(decay), numbers<T>(strength), numbers<T>(from)};
    const Gradients<T> d{Rows<T>(d_query), Rows<T>(d_key), Rows<T>(d_value), numbers<T>(d_decay), numbers<T>(d_beta),
                         numbers<T>(d_memory)};
    const Rows<T> d_reading(d_read);
    share(s.groups(), [&](Index thread, Index threads) {
      Backward<T> backward(s, x, d_reading, numbers<T>(d_last), numbers<T>(rest), numbers<T>(end), d);
      for (Index g = thread; g < s.groups(); g += threads) backward.group(g);
    });
  });
  return {d_query, d_key, d_value, d_decay, d_beta, d_memory};
}

}  // namespace

OPERATORS(delta_rule){
    {"delta_rule(Tensor query, Tensor key, Tensor value, Tensor? log_decay, Tensor? beta, Tensor memory, int steps) -> "
     "(Tensor, Tensor, Tensor)",
     TORCH_BOX(&rule)},
    {"delta_rule_backward(Tensor? d_output, Tensor? d_end, Tensor query, Tensor key, Tensor value, Tensor? log_decay, "
     "Tensor? beta, Tensor memory, Tensor memory_end, Tensor residual, int steps) -> "
     "(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
     TORCH_BOX(&rule_backward)},
    {"delta_rule_scores(Tensor query, Tensor key, Tensor value, Tensor? log_decay, Tensor memory) -> (Tensor, Tensor)",
     TORCH_BOX(&rule_scores)},
    {}};

}  // namespace seqstruct::LEVEL
