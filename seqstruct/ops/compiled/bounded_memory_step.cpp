// One key into the slots of a bounded memory, and one reading from them, in one pass: what decoding does at each step.
//
// Tensors as in seqstruct/ops/memory/bounded_memory.py, with batch and heads merged in groups.

#include <vector>

#include "bounded_memory.h"

namespace seqstruct {
namespace {

template <class T>
struct BoundedStep {
  Index groups, heads, dim, slots, value_dim, means, empty_slots;
  const T *key, *value, *control, *query, *old_keys, *old_values, *old_totals;
  T *keys, *values, *totals, *output;
  const Index* order;  // rows of the old memories' batch; none: each its own, written in place

  // A slot's new log-total and what its old contents and the new vector are multiplied by.
  void weigh(T old, T control, T& total, T& left, T& share) const {
    if (means) {
      const T high = std::max(old, control), low = std::min(old, control);
      total = high + std::log1p(std::exp(low - high));
      share = std::exp(control - total), left = 1 - share;
    } else {
      total = control == 0 ? old : T(0);
      share = control, left = 1;
    }
  }

  void run(Index threads) const {
    const T scale = 1 / std::sqrt(T(dim));
#pragma omp parallel num_threads(threads)
    {
      std::vector<T> left(slots), share(slots), weight(slots);
#pragma omp for schedule(static)
      for (Index g = 0; g < groups; ++g) {
        const Index from = order ? order[g / heads] * heads + g % heads : g;
        const T *q = query + g * dim, *k = key + g * dim, *v = value + g * value_dim;
        const T *K = old_keys + from * slots * dim, *V = old_values + from * slots * value_dim;
        T *K_new = keys + g * slots * dim, *V_new = values + g * slots * value_dim, *out = output + g * value_dim;
        for (Index n = 0; n < slots; ++n) {
          T total;
          weigh(old_totals[from * slots + n], control[g * slots + n], total, left[n], share[n]);
          totals[g * slots + n] = total;
          const T logit = scale * written(dim, left[n], K + n * dim, share[n], k, q, K_new + n * dim);
          weight[n] = total == T(LOWEST) && !empty_slots ? T(LOWEST) : logit;
        }
        const T most = *std::max_element(weight.begin(), weight.end());
        T sum = 0;
        for (T& w : weight) sum += w = std::exp(w - most);
        std::fill_n(out, value_dim, T(0));
        for (Index n = 0; n < slots; ++n)
          mixed(value_dim, left[n], V + n * value_dim, share[n], v, weight[n] / sum, V_new + n * value_dim, out);
      }
    }
  }

  // to = left from + share x; its inner product with y.  `to` may be `from`, here and below.
  static T written(Index count, T left, const T* from, T share, const T* x, const T* y, T* to) {
    const Index whole = count / WIDTH<T> * WIDTH<T>;
    Vector<T> sums{};
    for (Index i = 0; i < whole; i += WIDTH<T>) {
      const Vector<T> now = left * load(from + i) + share * load(x + i);
      store(to + i, now);
      sums += now * load(y + i);
    }
    T total = sum<T>(sums);
    for (Index i = whole; i < count; ++i) total += (to[i] = left * from[i] + share * x[i]) * y[i];
    return total;
  }

  // to = left from + share x; out += weight to.
  static void mixed(Index count, T left, const T* from, T share, const T* x, T weight, T* to, T* out) {
#pragma GCC ivdep
    for (Index i = 0; i < count; ++i) out[i] += weight * (to[i] = left * from[i] + share * x[i]);
  }
};

}  // namespace
}  // namespace seqstruct

using seqstruct::Index;

#define BOUNDED_MEMORY_STEP(T, suffix)                                                                               \
  extern "C" void bounded_memory_step_##suffix(                                                                      \
      Index threads, Index groups, Index heads, Index dim, Index slots, Index value_dim, Index means,                \
      Index empty_slots, const T* key, const T* value, const T* control, const T* query, const T* old_keys,          \
      const T* old_values, const T* old_totals, T* keys, T* values, T* totals, T* output, const Index* order) {      \
    const seqstruct::BoundedStep<T> step{groups, heads, dim, slots, value_dim, means, empty_slots, key, value,       \
                                         control, query, old_keys, old_values, old_totals, keys, values, totals,     \
                                         output, order};                                                             \
    step.run(threads);                                                                                               \
  }

BOUNDED_MEMORY_STEP(float, f32)
BOUNDED_MEMORY_STEP(double, f64)
