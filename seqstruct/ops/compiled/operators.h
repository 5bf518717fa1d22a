// Kernels as operators of PyTorch: numbers of tensors, threads, and what is registered.
//
// Every source is compiled once for each level of instructions, into a namespace of the level's name; library.cpp
// registers those of the highest level that the processor has.  PyTorch's stable ABI alone is used.

#pragma once

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
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

constexpr Index ANY = -1;

// A ValueError in Python.
[[noreturn]] inline void refuse(const std::string& wanted) { throw std::invalid_argument("expected " + wanted); }

inline void expect(bool held, const char* wanted) {
  if (!held) refuse(wanted);
}

// Refuses a tensor of other sizes; ANY stands for any.
inline void expect(const char* name, const Tensor& x, std::initializer_list<Index> sizes) {
  Index axis = 0;
  bool same = x.dim() == Index(sizes.size());
  for (auto n = sizes.begin(); same && n != sizes.end(); ++n, ++axis) same = *n == ANY || x.size(axis) == *n;
  if (same) return;
  std::string wanted, found;
  for (Index n : sizes) wanted += (wanted.empty() ? "" : ", ") + (n == ANY ? "any" : std::to_string(n));
  for (Index n : x.sizes()) found += (found.empty() ? "" : ", ") + std::to_string(n);
  refuse(std::string(name) + " of sizes [" + wanted + "], got [" + found + "]");
}

inline void expect(const char* name, const Maybe& x, std::initializer_list<Index> sizes) {
  if (x) expect(name, *x, sizes);
}

// Refuses a tensor of other than so many numbers, of any sizes.
inline void expect_count(const char* name, const Maybe& x, Index count) {
  if (x && x->numel() != count)
    refuse(name + (" of " + std::to_string(count)) + " numbers, got " + std::to_string(x->numel()));
}

inline Tensor whole(const Tensor& x) { return x.is_contiguous() ? x : torch::stable::contiguous(x); }

inline Maybe whole(const Maybe& x) { return x ? Maybe(whole(*x)) : x; }

inline Tensor fresh(const Tensor& like, std::initializer_list<Index> sizes,
                    std::optional<ScalarType> type = std::nullopt) {
  return torch::stable::new_empty(like, {sizes.begin(), sizes.size()}, type);
}

inline Tensor zeros(const Tensor& like, torch::headeronly::IntHeaderOnlyArrayRef sizes,
                    std::optional<ScalarType> type = std::nullopt) {
  return torch::stable::new_zeros(like, sizes, type);
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

// Rows of a B H T D tensor.
template <class T>
struct Rows {
  T* data;
  Index batch, head, step;

  explicit Rows(const Tensor& x)
      : data(x.mutable_data_ptr<T>()), batch(x.stride(0)), head(x.stride(1)), step(x.stride(2)) {}
  T* at(Index b, Index h, Index t = 0) const { return data + b * batch + h * head + t * step; }
};

inline Tensor with_rows(const Tensor& x) {
  return x.size(3) < 2 || x.stride(3) == 1 ? x : torch::stable::contiguous(x);
}

// Refuses integers below 0, or from `beyond` on.
inline void expect_below(const char* name, const Maybe& x, Index beyond) {
  const Index* at = numbers<Index>(x);
  for (Index i = 0; x && i < x->numel(); ++i)
    if (at[i] < 0 || at[i] >= beyond)
      refuse(name + (" from 0 to " + std::to_string(beyond - 1)) + ", got " + std::to_string(at[i]));
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
