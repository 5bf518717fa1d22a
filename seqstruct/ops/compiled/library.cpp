// The library `seqstruct`: the operators of the highest level of instructions that the processor has.
//
// As PyTorch's own kernels do, they stay below the level that ATEN_CPU_CAPABILITY names.

#include <torch/csrc/stable/library.h>

#include <cstdlib>
#include <string>

#include "operators.h"

namespace seqstruct {

#define KERNELS(level)                                                                                                 \
  namespace level {                                                                                                    \
  extern const Operator superposition_stack[], pushdown[], pushdown_step[], bounded_memory[],                          \
      bounded_memory_step[], linear_attention[], linear_attention_step[], chains[], projective[], spanning[],          \
      constituency[], softmax_attention[], delta_rule[];                                                               \
  const Operator* const kernels[] = {superposition_stack, pushdown,         pushdown_step,         bounded_memory,     \
                                     bounded_memory_step, linear_attention, linear_attention_step, chains,             \
                                     projective,          spanning,         constituency,          softmax_attention,  \
                                     delta_rule};                                                                      \
  }

KERNELS(baseline)
#ifdef LEVELS
KERNELS(avx2)
KERNELS(avx512)
#endif

namespace {

template <class F>
void each(const F& visit) {
#ifdef LEVELS
  const char* named = std::getenv("ATEN_CPU_CAPABILITY");
  const std::string limit = named ? named : "";
  __builtin_cpu_init();
  const bool wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && limit != "default";
  const bool widest = wide && limit != "avx2" && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  const auto& kernels = widest ? avx512::kernels : wide ? avx2::kernels : baseline::kernels;
#else
  const auto& kernels = baseline::kernels;
#endif
  for (const Operator* of : kernels)
    for (; of->schema; ++of) visit(*of);
}

STABLE_TORCH_LIBRARY(seqstruct, m) {
  each([&](const Operator& x) { m.def(x.schema); });
}

STABLE_TORCH_LIBRARY_IMPL(seqstruct, CPU, m) {
  each([&](const Operator& x) { m.impl(std::string(x.schema, std::strchr(x.schema, '(')).c_str(), x.kernel); });
}

}  // namespace
}  // namespace seqstruct
