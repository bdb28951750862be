// Weights from where they lie to panels, and back.
//
//   Packing of = {{{1, 0}, {3, 3 * channels}, {3, channels}, {channels, 1}}, {out, 9 * channels}};
//   std::vector<float> panels(packed_size<float>(of));
//   pack_panels<float>(team, of, weight, panels.data());  // [panel][ky, kx, channel][kPanel]
//
// Terms are counted by four nested loops, the last one fastest.
#pragma once

#include <algorithm>
#include <cstdint>

#include "flashlight/mosaic/runtime/microkernel.hpp"
#include "flashlight/mosaic/runtime/team.hpp"

namespace fl {

// A loop over memory; the stride is in elements.
struct Loop {
  int64_t extent = 1, stride = 0;
};

struct Packing {
  Loop terms[4];
  Loop columns;
  int64_t term_count() const {
    return terms[0].extent * terms[1].extent * terms[2].extent * terms[3].extent;
  }
};

// Elements of the panels.
template <class T>
int64_t packed_size(const Packing& of) {
  return (of.columns.extent + kPanel<T> - 1) / kPanel<T> * kPanel<T> * of.term_count();
}

namespace detail {

// Calls visit(panel, term, offset) for this thread's share of the last loops of terms: those with
// the numbers `term`, ... of columns whose first element is at `offset`.
template <class T, class Visit>
void visit_runs(const Team& team, const Packing& of, const Visit& visit) {
  const Loop(&terms)[4] = of.terms;
  const int64_t panels = (of.columns.extent + kPanel<T> - 1) / kPanel<T>;
  const int64_t runs = terms[0].extent * terms[1].extent * terms[2].extent;
  const Part mine = team.part(panels * runs);
  for (int64_t i = mine.begin; i < mine.end; ++i) {
    const int64_t panel = i / runs, run = i % runs;
    const int64_t first = run / terms[2].extent / terms[1].extent,
                  second = run / terms[2].extent % terms[1].extent, third = run % terms[2].extent;
    visit(panel, run * terms[3].extent,
          panel * kPanel<T> * of.columns.stride + first * terms[0].stride +
              second * terms[1].stride + third * terms[2].stride);
  }
}

template <class T>
int columns_of(const Packing& of, int64_t panel) {
  return static_cast<int>(std::min<int64_t>(kPanel<T>, of.columns.extent - panel * kPanel<T>));
}

// Columns that lie side by side are copied line by line; of others, a line of the cache is used up
// before the next.
template <class T, class From>
void pack_run(const Packing& of, const From* from, int columns, const T* factors, T* to) {
  const Loop& terms = of.terms[3];
  const int64_t stride = of.columns.stride;
  if (stride == 1) {
    for (int64_t k = 0; k < terms.extent; ++k, from += terms.stride, to += kPanel<T>) {
      for (int c = 0; c < columns; ++c) to[c] = static_cast<T>(from[c]);
      for (int c = 0; factors != nullptr && c < columns; ++c) to[c] *= factors[c];
      std::fill(to + columns, to + kPanel<T>, T(0));
    }
    return;
  }
  constexpr int64_t kBlock = 64 / int64_t{sizeof(From)};
  for (int64_t begin = 0; begin < terms.extent; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, terms.extent);
    for (int c = 0; c < columns; ++c)
      for (int64_t k = begin; k < end; ++k) {
        const T x = static_cast<T>(from[k * terms.stride + c * stride]);
        to[k * kPanel<T> + c] = factors == nullptr ? x : x * factors[c];
      }
    for (int64_t k = begin; k < end; ++k)
      std::fill(to + k * kPanel<T> + columns, to + (k + 1) * kPanel<T>, T(0));
  }
}

}  // namespace detail

// Packs what starts at `from`, column c times factors[c] if there are any. The threads of the team
// share the work; nobody waits.
template <class T, class From>
void pack_panels(const Team& team, const Packing& of, const From* from, T* panels,
                 const T* factors = nullptr) {
  const int64_t count = of.term_count();
  detail::visit_runs<T>(team, of, [&](int64_t panel, int64_t term, int64_t offset) {
    detail::pack_run(of, from + offset, detail::columns_of<T>(of, panel),
                     factors == nullptr ? nullptr : factors + panel * kPanel<T>,
                     panels + (panel * count + term) * kPanel<T>);
  });
}

// The reverse, without factors.
template <class T, class To>
void unpack_panels(const Team& team, const Packing& of, const T* panels, To* to) {
  const int64_t count = of.term_count();
  const Loop& terms = of.terms[3];
  detail::visit_runs<T>(team, of, [&](int64_t panel, int64_t term, int64_t offset) {
    const T* from = panels + (panel * count + term) * kPanel<T>;
    const int columns = detail::columns_of<T>(of, panel);
    for (int64_t k = 0; k < terms.extent; ++k)
      for (int c = 0; c < columns; ++c)
        to[offset + k * terms.stride + c * of.columns.stride] =
            static_cast<To>(from[k * kPanel<T> + c]);
  });
}

}  // namespace fl
