// One key into a memory of fixed size, and one reading from it: what decoding does at each step.
//
// Tensors as in seqstruct/ops/linear_attention.py, with batch and heads merged in groups; the map's parameters are one
// set a head.

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

template <class T>
void write(Index threads, Index groups, Index value_dim, Index features, Map<T> map, Index dim, const T* key,
           const T* value, const T* weight, const double* log_decay, T* memory, T* total) {
#pragma omp parallel num_threads(threads) firstprivate(map)
  {
    std::vector<T> f(features);
#pragma omp for schedule(static)
    for (Index g = 0; g < groups; ++g) {
      map.apply(g, key + g * dim, f.data());
      const T factor = weight ? weight[g] : T(1);
      const T left = log_decay ? T(std::exp(log_decay[2 * g + 1] - log_decay[2 * g])) : T(1);
      const T* v = value + g * value_dim;
      T *S = memory + g * features * value_dim, *z = total + g * features;
      for (Index n = 0; n < features; ++n) {
        const T k = factor * f[n];
        T* row = S + n * value_dim;
        z[n] = left * z[n] + k;
        for (Index e = 0; e < value_dim; ++e) row[e] = left * row[e] + k * v[e];
      }
    }
  }
}

template <class T>
void read(Index threads, Index groups, Index value_dim, Index features, Map<T> map, Index dim, T floor, const T* query,
          const T* memory, const T* total, T* output, T* denominator) {
#pragma omp parallel num_threads(threads) firstprivate(map)
  {
    std::vector<T> f(features), sums(value_dim);
#pragma omp for schedule(static)
    for (Index g = 0; g < groups; ++g) {
      map.apply(g, query + g * dim, f.data());
      const T *S = memory + g * features * value_dim, *z = total + g * features;
      const T den = flushed(inner(features, f.data(), z)), factor = inverse(den, floor);
      std::fill(sums.begin(), sums.end(), T(0));
      for (Index n = 0; n < features; ++n)
        for (Index e = 0; e < value_dim; ++e) sums[e] += f[n] * S[n * value_dim + e];
      for (Index e = 0; e < value_dim; ++e) output[g * value_dim + e] = factor * sums[e];
      denominator[g] = den;
    }
  }
}

}  // namespace
}  // namespace seqstruct

using seqstruct::Index;

#define LINEAR_ATTENTION_STEP(T, suffix)                                                                              \
  extern "C" void linear_attention_write_##suffix(                                                                    \
      Index threads, Index groups, Index heads, Index dim, Index features, Index value_dim, Index kind, Index normed,  \
      double scale, const T* rows, const T* bias, const T* key, const T* value, const T* weight,                      \
      const double* log_decay, T* memory, T* total) {                                                                 \
    seqstruct::write<T>(threads, groups, value_dim, features,                                                         \
                        {heads, dim, features, kind, normed, static_cast<T>(scale), rows, bias}, dim, key, value,     \
                        weight, log_decay, memory, total);                                                            \
  }                                                                                                                   \
  extern "C" void linear_attention_read_##suffix(                                                                     \
      Index threads, Index groups, Index heads, Index dim, Index features, Index value_dim, Index kind, Index normed, \
      double scale, const T* rows, const T* bias, double floor, const T* query, const T* memory, const T* total,      \
      T* output, T* denominator) {                                                                                    \
    seqstruct::read<T>(threads, groups, value_dim, features,                                                          \
                       {heads, dim, features, kind, normed, static_cast<T>(scale), rows, bias}, dim,                  \
                       static_cast<T>(floor), query, memory, total, output, denominator);                             \
  }

LINEAR_ATTENTION_STEP(float, f32)
LINEAR_ATTENTION_STEP(double, f64)
