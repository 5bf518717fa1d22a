// One key into a memory of fixed size, and one reading from it, in one pass: what decoding does at each step.
//
// Tensors as in seqstruct/ops/memory/linear_attention.py, with batch and heads merged in groups; the map has one
// set of parameters a head.

#include <vector>

#include "linear_attention.h"

namespace seqstruct {
namespace {

template <class T>
T inner(Index count, const T* x, const T* y) {
  const Index whole = count / WIDTH<T> * WIDTH<T>;
  T total = dot(whole, x, y);
  for (Index i = whole; i < count; ++i) total += x[i] * y[i];
  return total;
}

template <class T>
class Map {
 public:
  Map(Index heads, Index dim, Index features, Index kind, Index normed, T scale, const T* rows, const T* bias)
      : heads_(heads), dim_(dim), features_(features), kind_(kind), normed_(normed), scale_(scale), rows_(rows),
        bias_(bias), projected_(kind == SINUSOIDS ? features / 2 : features), angles_(padded(std::max(features, dim))),
        sine_(angles_), cosine_(angles_) {}

  // Features of x (dim), of head g modulo heads.
  void apply(Index g, const T* x, T* f) {
    if (kind_ == GIVEN) {
      std::copy_n(x, dim_, f);
    } else if (kind_ == ELU) {
      for (Index i = 0; i < dim_; ++i) angles_[i] = std::min(x[i], T(0));
      exponentials(padded(dim_), angles_.data());
      for (Index i = 0; i < dim_; ++i) f[i] = angles_[i] + std::max(x[i], T(0));
    } else {
      project(g % heads_, x);
      if (kind_ == SINUSOIDS) {
        sinusoids(padded(projected_), angles_.data(), sine_.data(), cosine_.data());
        for (Index i = 0; i < projected_; ++i) f[i] = scale_ * sine_[i], f[projected_ + i] = scale_ * cosine_[i];
      } else {
        for (Index i = 0; i < projected_; ++i) f[i] = scale_ * std::max(angles_[i], T(0));
      }
    }
  }

 private:
  void project(Index head, const T* x) {
    const T norm = normed_ ? std::sqrt(inner(dim_, x, x)) : T(1), factor = norm == 0 ? T(1) : 1 / norm;
    const T* rows = rows_ + head * projected_ * dim_;
    for (Index i = 0; i < projected_; ++i)
      angles_[i] = factor * inner(dim_, rows + i * dim_, x) + (bias_ ? bias_[head * projected_ + i] : T(0));
  }

  Index heads_, dim_, features_, kind_, normed_;
  T scale_;
  const T *rows_, *bias_;
  Index projected_;
  std::vector<T> angles_ = {}, sine_ = {}, cosine_ = {};
};

// Row n of a memory after a write: to = left from + k v, and sums += f to; from may be to.
template <class T>
void row(Index value_dim, T left, const T* from, T k, const T* v, T f, T* to, T* sums) {
#pragma GCC ivdep
  for (Index e = 0; e < value_dim; ++e) {
    to[e] = left * from[e] + k * v[e];
    sums[e] += f * to[e];
  }
}

// `row` for all of them, in blocks of COLUMNS vectors whose sums stay in registers.
template <class T>
void rows(Index features, Index value_dim, T left, const T* from, const T* k, const T* v, const T* f, T* to, T* sums) {
  constexpr Index COLUMNS = 4, BLOCK = COLUMNS * WIDTH<T>;
  Index begin = 0;
  for (; begin + BLOCK <= value_dim; begin += BLOCK) {
    Vector<T> value[COLUMNS], sum[COLUMNS] = {};
    for (Index j = 0; j < COLUMNS; ++j) value[j] = load(v + begin + j * WIDTH<T>);
    for (Index n = 0; n < features; ++n)
      for (Index j = 0; j < COLUMNS; ++j) {
        const Index at = n * value_dim + begin + j * WIDTH<T>;
        const Vector<T> x = left * load(from + at) + k[n] * value[j];
        store(to + at, x);
        sum[j] += f[n] * x;
      }
    for (Index j = 0; j < COLUMNS; ++j) store(sums + begin + j * WIDTH<T>, sum[j]);
  }
  std::fill(sums + begin, sums + value_dim, T(0));
  for (Index n = 0; n < features && begin < value_dim; ++n) {
    const Index at = n * value_dim + begin;
    row(value_dim - begin, left, from + at, k[n], v + begin, f[n], to + at, sums + begin);
  }
}

// Row order[b] of a batch of old memories (b itself without order, and then in place where they are the new ones),
// one key written into it, one query that reads.  Without a key the old memories are read as they are.
template <class T>
struct Step {
  Index groups, heads, dim, features, value_dim;
  T floor;
  const Index* order;
  const T *key, *value, *weight;
  const double* log_decay;
  const T *query, *old_memory, *old_total;
  T *memory, *total, *output, *denominator;

  void run(Index threads, Map<T> map) const {
#pragma omp parallel num_threads(threads) firstprivate(map)
    {
      std::vector<T> f(features), k(features), sums(value_dim);
#pragma omp for schedule(static)
      for (Index g = 0; g < groups; ++g) {
        map.apply(g, query + g * dim, f.data());
        const Index from = order ? order[g / heads] * heads + g % heads : g;
        const T *S = old_memory + from * features * value_dim, *z = old_total + from * features;
        if (key) {
          const T left = log_decay ? T(std::exp(log_decay[2 * g + 1] - log_decay[2 * g])) : T(1);
          T *S_new = memory + g * features * value_dim, *z_new = total + g * features;
          map.apply(g, key + g * dim, k.data());
          for (Index n = 0; n < features; ++n) {
            k[n] *= weight ? weight[g] : T(1);
            z_new[n] = left * z[n] + k[n];
          }
          rows(features, value_dim, left, S, k.data(), value + g * value_dim, f.data(), S_new, sums.data());
          z = z_new;
        } else {
          std::fill(sums.begin(), sums.end(), T(0));
          for (Index n = 0; n < features; ++n)
            for (Index e = 0; e < value_dim; ++e) sums[e] += f[n] * S[n * value_dim + e];
        }
        const T den = flushed(inner(features, f.data(), z)), factor = inverse(den, floor);
        for (Index e = 0; e < value_dim; ++e) output[g * value_dim + e] = factor * sums[e];
        denominator[g] = den;
      }
    }
  }
};

}  // namespace
}  // namespace seqstruct

using seqstruct::Index;

#define LINEAR_ATTENTION_STEP(T, suffix)                                                                              \
  extern "C" void linear_attention_step_##suffix(                                                                     \
      Index threads, Index groups, Index heads, Index dim, Index features, Index value_dim, Index kind, Index normed, \
      double scale, const T* rows, const T* bias, double floor, const T* key, const T* value, const T* weight,        \
      const double* log_decay, const T* query, const T* old_memory, const T* old_total, T* memory, T* total,          \
      T* output, T* denominator, const Index* order) {                                                                \
    const seqstruct::Step<T> step{                                                                                    \
        groups, heads, dim, features, value_dim, static_cast<T>(floor), order, key, value, weight, log_decay, query,  \
        old_memory, old_total, memory, total, output, denominator};                                                   \
    step.run(threads, {heads, dim, features, kind, normed, static_cast<T>(scale), rows, bias});                       \
  }

LINEAR_ATTENTION_STEP(float, f32)
LINEAR_ATTENTION_STEP(double, f64)
