// Kernels as operators of PyTorch: numbers of tensors, threads, and what is registered.
//
// Every source is compiled once for each level of instructions, into a namespace of the level's name; library.cpp
// registers those of the highest level that the processor has.  PyTorch's stable ABI alone is used.

#pragma once

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <optional>
#include <tuple>

#include "tile.h"

namespace seqstruct {

// A schema, whose name is the operator's, and a kernel that takes its arguments from PyTorch's stack.
struct Operator {
  const char* schema;
  void (*kernel)(StableIValue*, std::uint64_t, std::uint64_t);
};

}  // namespace seqstruct

// An array of operators that ends with an empty one.
#define OPERATORS(name)         \
  extern const Operator name[]; \
  const Operator name[]

namespace seqstruct::LEVEL {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;
using Maybe = std::optional<Tensor>;

inline Tensor whole(const Tensor& x) { return x.is_contiguous() ? x : torch::stable::contiguous(x); }

inline Maybe whole(const Maybe& x) { return x ? Maybe(whole(*x)) : x; }

inline Tensor fresh(const Tensor& like, std::initializer_list<Index> sizes) {
  return torch::stable::new_empty(like, {sizes.begin(), sizes.size()});
}

inline Tensor zeros(const Tensor& like, torch::headeronly::IntHeaderOnlyArrayRef sizes) {
  return torch::stable::new_zeros(like, sizes, std::optional<ScalarType>());
}

// A gradient that a kernel goes on from, in a tensor of its own; zeros for none.
inline Tensor changed(const Maybe& grad, const Tensor& like, std::initializer_list<Index> sizes) {
  return grad ? torch::stable::clone(whole(*grad)) : zeros(like, {sizes.begin(), sizes.size()});
}

inline Tensor fresh_like(const Tensor& x) { return torch::stable::new_empty(x, x.sizes()); }

// The numbers of a contiguous tensor of that type; null for none.
template <class T>
T* numbers(const Tensor& x) {
  STD_TORCH_CHECK(x.is_contiguous(), "expected a contiguous tensor");
  return x.mutable_data_ptr<T>();
}

// As above for rows that may lie apart.
template <class T>
T* rows(const Tensor& x) {
  STD_TORCH_CHECK(x.dim() == 2 && (x.size(1) < 2 || x.stride(1) == 1), "expected rows of a matrix");
  return x.mutable_data_ptr<T>();
}

template <class T>
T* numbers(const Maybe& x) {
  return x ? numbers<T>(*x) : nullptr;
}

// run(T()) for the type of numbers of a tensor, float or double.
template <class F>
void by_type(const Tensor& x, const F& run) {
  if (x.scalar_type() == ScalarType::Float) run(float());
  else run(double());
}

// body(first, step) in each of PyTorch's threads, which is to take first, first + step .. below `count`; in one thread
// where several are not worth it.
template <class F>
void share(Index count, const F& body, bool worth = true) {
  const Index threads = worth ? std::min<Index>(torch::stable::get_num_threads(), count) : 1;
  if (threads <= 1) body(0, 1);
  else
    torch::stable::parallel_for(0, threads, 1, [&](Index begin, Index end) {
      for (Index thread = begin; thread < end; ++thread) body(thread, threads);
    });
}

}  // namespace seqstruct::LEVEL
