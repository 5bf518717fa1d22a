// The superposition stack, several columns of the stack vectors of one sequence at a time, so that two stacks lie in
// the first-level cache.
//
// The same recurrences as in seqstruct/ops/superposition/stack.py.  As there, slab t is [v_{t+1}, V_t, 0, 0], rows of
// `width` numbers one after the other, so that row i of V_{t+1} is the sum of rows i, i+1 and i+2 of slab t, times
// push, no-op and pop.  Adjoints lie in slabs [0, dV_t, 0, 0], those of single steps in [0, 0, dV_t, 0].

#include "operators.h"

namespace seqstruct::LEVEL {
namespace {

constexpr Index SLICE = 16;        // columns that go together
constexpr Index SHARED = 1 << 14;  // numbers of a stack from which one step is worth several threads

// to[k] = first from[k] + second from[k + width] + third from[k + 2 width]
template <class T>
inline void blend(Index count, Index width, const T* from, T first, T second, T third, T* to) {
  Index k = 0;
  for (; k + WIDTH<T> <= count; k += WIDTH<T>)
    store(to + k, first * load(from + k) + second * load(from + k + width) + third * load(from + k + 2 * width));
  for (; k < count; ++k) to[k] = first * from[k] + second * from[k + width] + third * from[k + 2 * width];
}

// Inner products of an adjoint with the three stacks that were mixed: push, pop, no-op.
template <class T>
struct Shares {
  T push, pop, noop;

  Shares(Index count, Index width, const T* change, const T* slab) {
    Vector<T> total[3]{};
    Index k = 0;
    for (; k + WIDTH<T> <= count; k += WIDTH<T>) {
      const Vector<T> now = load(change + k);
      for (int i = 0; i < 3; ++i) total[i] += now * load(slab + k + i * width);
    }
    push = sum<T>(total[0]), noop = sum<T>(total[1]), pop = sum<T>(total[2]);
    for (; k < count; ++k)
      push += change[k] * slab[k], noop += change[k] * slab[k + width], pop += change[k] * slab[k + 2 * width];
  }
};

struct Sizes {
  Index batch, steps, size, start, truncated;  // start: rows of the stack to go on from

  // rows of the stack that are computed after t steps
  Index height(Index t) const { return truncated ? std::min(start + t, steps + 1 - t) : start + t; }
  Index most() const {
    Index most = 0;
    for (Index t = 0; t <= steps; ++t) most = std::max(most, height(t));
    return most;
  }
  // rows of the slabs of all steps but the last
  Index stored() const {
    Index rows = 0;
    for (Index t = 0; t < steps; ++t) rows += height(t) + 3;
    return rows;
  }
  Index slices() const { return (size + SLICE - 1) / SLICE; }
};

// Some columns of one sequence.
struct Slice {
  Index index, sequence, column, width;

  Slice(const Sizes& s, Index group)
      : index(group % s.slices()), sequence(group / s.slices()), column(index * SLICE),
        width(std::min(SLICE, s.size - column)) {}
};

template <class T>
void forward(const Sizes s, const T* actions, const T* pushed, const T* start, T* stacks, T* readings,
             T* final) {
  const Index most = s.most() + 3, stored = s.stored();
  share(s.batch * s.slices(), [&](Index thread, Index threads) {
    Buffer<T> turns(2 * most * SLICE);
    for (Index g = thread; g < s.batch * s.slices(); g += threads) {
      const Slice at(s, g);
      const Index w = at.width, vectors = at.sequence * s.steps;
      T* now = stacks ? stacks + stored * (at.sequence * s.size + at.column) : turns.get();
      put(s.height(0), w, start + at.sequence * s.start * s.size + at.column, s.size, now + w, w);
      for (Index t = 0; t < s.steps; ++t) {
        const Index rows = s.height(t), next = s.height(t + 1);
        const T* mix = actions + (vectors + t) * 3;
        std::copy_n(pushed + (vectors + t) * s.size + at.column, w, now);
        std::fill_n(now + (1 + rows) * w, 2 * w, T(0));
        T* after = turns.get() + (t % 2 ? 0 : most * SLICE);
        if (stacks && t + 1 < s.steps) after = now + (rows + 3) * w;
        blend(next * w, w, now, mix[0], mix[2], mix[1], after + w);
        std::copy_n(after + w, w, readings + (vectors + t) * s.size + at.column);
        now = after;
      }
      if (final) {
        const Index rows = s.height(s.steps);
        put(rows, w, now + w, w, final + at.sequence * rows * s.size + at.column, s.size);
      }
    }
  });
}

template <class T>
void backward(const Sizes s, const T* actions, const T* stacks, const T* d_readings, const T* d_final,
              T* d_actions, T* d_pushed, T* d_start) {
  const Index most = s.most() + 3, stored = s.stored();
  share(s.batch * s.slices(), [&](Index thread, Index threads) {
    Buffer<T> turns(2 * most * SLICE);
    for (Index g = thread; g < s.batch * s.slices(); g += threads) {
      const Slice at(s, g);
      const Index w = at.width, vectors = at.sequence * s.steps, last = s.height(s.steps);
      T *now = turns.get(), *before = now + most * SLICE;
      const T* slab = stacks + stored * (at.sequence * s.size + at.column + w);  // the end
      std::fill_n(now, w, T(0));
      std::fill_n(before, w, T(0));
      std::fill_n(now + w, last * w, T(0));
      if (d_final) put(last, w, d_final + at.sequence * last * s.size + at.column, s.size, now + w, w);
      for (Index t = s.steps; t > 0; --t) {
        const Index rows = s.height(t), earlier = s.height(t - 1), place = (vectors + t - 1) * s.size + at.column;
        const T* mix = actions + (vectors + t - 1) * 3;
        slab -= (earlier + 3) * w;
        if (d_readings)
          for (Index j = 0; j < w; ++j) now[w + j] += d_readings[place + j];
        for (Index j = 0; j < w; ++j) d_pushed[place + j] = mix[0] * now[w + j];
        const Shares<T> shares(rows * w, w, now + w, slab);
        T* to = d_actions + ((at.index * s.batch + at.sequence) * s.steps + t - 1) * 3;
        to[0] = shares.push, to[1] = shares.pop, to[2] = shares.noop;
        std::fill_n(now + (1 + rows) * w, 2 * w, T(0));
        blend(earlier * w, w, now, mix[1], mix[2], mix[0], before + w);
        std::swap(now, before);
      }
      put(s.height(0), w, now + w, w, d_start + at.sequence * s.start * s.size + at.column, s.size);
    }
  });
}

// Steps of a recurrent network.  Slabs have all columns and as many rows as the highest stack needs, those beyond a
// stack zero; controls are the log-weights of push, no-op and pop, then the vector to push.
struct Step {
  Index batch, size, rows, height, next;  // rows of a slab, and of the stack before and after the step

  bool shared() const { return batch * next * size >= SHARED; }
};

template <class T>
void tape_step(const Step s, Index sigmoid, const T* controls, Index stride, T* now, T* weights,
               T* after, T* reading, Index reading_stride) {
  const Index w = s.size;
  share(s.batch, [&](Index thread, Index threads) {
    for (Index b = thread; b < s.batch; b += threads) {
      const T* given = controls + b * stride;
      T *slab = now + b * s.rows * w, *next = after + b * s.rows * w, *mix = weights + 3 * b;
      const T largest = std::max({given[0], given[1], given[2]});
      T total = 0;
      for (int i = 0; i < 3; ++i) total += mix[i] = std::exp(given[i] - largest);
      for (int i = 0; i < 3; ++i) mix[i] /= total;
      for (Index j = 0; j < w; ++j) slab[j] = sigmoid ? 1 / (1 + std::exp(-given[3 + j])) : given[3 + j];
      blend(s.next * w, w, slab, mix[0], mix[1], mix[2], next + w);
      std::copy_n(next + w, w, reading + b * reading_stride);
    }
  }, s.shared());
}

template <class T>
void tape_step_backward(const Step s, const T* d_reading, Index reading_stride, const T* slabs,
                        const T* weights, const T* slopes, T* adjoints, T* before, T* d_controls, Index stride) {
  const Index w = s.size;
  share(s.batch, [&](Index thread, Index threads) {
    for (Index b = thread; b < s.batch; b += threads) {
      T *now = adjoints + b * s.rows * w, *earlier = before + b * s.rows * w, *to = d_controls + b * stride;
      const T* mix = weights + 3 * b;
      for (Index j = 0; j < w; ++j) {
        now[2 * w + j] += d_reading[b * reading_stride + j];
        to[3 + j] = now[2 * w + j] * slopes[b * w + j];
      }
      const Shares<T> shares(s.next * w, w, now + 2 * w, slabs + b * s.rows * w);
      const T share[3] = {shares.push, shares.noop, shares.pop};
      const T mean = mix[0] * share[0] + mix[1] * share[1] + mix[2] * share[2];
      for (int i = 0; i < 3; ++i) to[i] = mix[i] * (share[i] - mean);
      blend(s.height * w, w, now + w, mix[2], mix[1], mix[0], earlier + 2 * w);
    }
  }, s.shared());
}

using Results = std::tuple<Tensor, Tensor, Tensor>;

Results stack(const Tensor& actions, const Tensor& pushed, const Tensor& start, bool need_final, bool recorded) {
  expect("pushed", pushed, {ANY, ANY, ANY});
  expect("actions", actions, {pushed.size(0), pushed.size(1), 3});
  expect("start", start, {pushed.size(0), ANY, pushed.size(2)});
  expect(pushed.size(1) > 0, "one step or more");
  const Sizes s{pushed.size(0), pushed.size(1), pushed.size(2), start.size(1), !need_final};
  const Tensor weights = whole(actions), vectors = whole(pushed), first = whole(start);
  const Tensor readings = fresh_like(vectors);
  const Tensor final = need_final ? fresh(vectors, {s.batch, s.height(s.steps), s.size}) : fresh(vectors, {0});
  const Tensor stacks = fresh(vectors, {recorded ? s.stored() * s.batch * s.size : 0});
  by_type(pushed, [&](auto zero) {
    using T = decltype(zero);
    forward<T>(s, numbers<T>(weights), numbers<T>(vectors), numbers<T>(first), recorded ? numbers<T>(stacks) : nullptr,
               numbers<T>(readings), need_final ? numbers<T>(final) : nullptr);
  });
  return {readings, final, stacks};
}

Results stack_backward(const Tensor& actions, const Tensor& stacks, const Maybe& d_readings, const Maybe& d_final,
                       Index size, Index height, bool truncated) {
  expect("actions", actions, {ANY, ANY, 3});
  expect(actions.size(1) > 0 && size >= 0 && height >= 0, "one step or more, and sizes from 0 on");
  const Sizes s{actions.size(0), actions.size(1), size, height, truncated};
  expect("stacks", stacks, {s.stored() * s.batch * size});
  expect("d_readings", d_readings, {s.batch, s.steps, size});
  expect("d_final", d_final, {s.batch, s.height(s.steps), size});
  const Tensor weights = whole(actions), d_actions = fresh(weights, {s.slices(), s.batch, s.steps, 3});
  const Tensor d_pushed = fresh(weights, {s.batch, s.steps, size});
  const Tensor d_start = zeros(weights, {s.batch, height, size});
  const Maybe d_read = whole(d_readings), d_last = whole(d_final);
  by_type(actions, [&](auto zero) {
    using T = decltype(zero);
    backward<T>(s, numbers<T>(weights), numbers<T>(stacks), numbers<T>(d_read), numbers<T>(d_last),
                numbers<T>(d_actions), numbers<T>(d_pushed), numbers<T>(d_start));
  });
  return {d_actions, d_pushed, d_start};
}

void step(Index height, Index next, bool sigmoid, const Tensor& controls, const Tensor& now, const Tensor& weights,
          const Tensor& after, const Tensor& reading) {
  expect("now", now, {ANY, ANY, ANY});
  const Step s{now.size(0), now.size(2), now.size(1), height, next};
  expect(next >= 0 && next <= s.rows - 2, "slabs of two rows more than the stack after the step");
  expect("controls", controls, {s.batch, 3 + s.size});
  expect("weights", weights, {s.batch, 3});
  expect("after", after, {s.batch, s.rows, s.size});
  expect("reading", reading, {s.batch, s.size});
  by_type(now, [&](auto zero) {
    using T = decltype(zero);
    tape_step<T>(s, sigmoid, rows<T>(controls), controls.stride(0), numbers<T>(now), numbers<T>(weights),
                 numbers<T>(after), rows<T>(reading), reading.stride(0));
  });
}

void step_backward(Index height, Index next, const Tensor& d_reading, const Tensor& slabs, const Tensor& weights,
                   const Tensor& slopes, const Tensor& adjoints, const Tensor& before, const Tensor& d_controls) {
  expect("slabs", slabs, {ANY, ANY, ANY});
  const Step s{slabs.size(0), slabs.size(2), slabs.size(1), height, next};
  expect(next >= 0 && next <= s.rows - 2 && height >= 0 && height <= s.rows - 3,
         "slabs of three rows more than the stack before the step, and two more than the one after it");
  expect("d_reading", d_reading, {s.batch, s.size});
  expect("weights", weights, {s.batch, 3});
  expect("slopes", slopes, {s.batch, s.size});
  expect("adjoints", adjoints, {s.batch, s.rows, s.size});
  expect("before", before, {s.batch, s.rows, s.size});
  expect("d_controls", d_controls, {s.batch, 3 + s.size});
  by_type(slabs, [&](auto zero) {
    using T = decltype(zero);
    tape_step_backward<T>(s, rows<T>(d_reading), d_reading.stride(0), numbers<T>(slabs), numbers<T>(weights),
                          numbers<T>(slopes), numbers<T>(adjoints), numbers<T>(before), rows<T>(d_controls),
                          d_controls.stride(0));
  });
}

}  // namespace

OPERATORS(superposition_stack){
    {"superposition_stack(Tensor actions, Tensor pushed, Tensor start, bool need_final, bool recorded) -> "
     "(Tensor, Tensor, Tensor)",
     TORCH_BOX(&stack)},
    {"superposition_stack_backward(Tensor actions, Tensor stacks, Tensor? d_readings, Tensor? d_final, SymInt size, "
     "SymInt height, bool truncated) -> (Tensor, Tensor, Tensor)",
     TORCH_BOX(&stack_backward)},
    {"superposition_step(SymInt height, SymInt next, bool sigmoid, Tensor controls, Tensor(a!) now, "
     "Tensor(b!) weights, Tensor(c!) after, Tensor(d!) reading) -> ()",
     TORCH_BOX(&step)},
    {"superposition_step_backward(SymInt height, SymInt next, Tensor d_reading, Tensor slabs, Tensor weights, "
     "Tensor slopes, Tensor(a!) adjoints, Tensor(b!) before, Tensor(c!) d_controls) -> ()",
     TORCH_BOX(&step_backward)},
    {}};

}  // namespace seqstruct::LEVEL
