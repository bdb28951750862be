// Convolutions with windows of 3x3 and stride 1, with 2.25 (kOut = 2) or 4 (kOut = 4) times fewer
// products than there are, at the price of as many times 16/9 or 4 the weights.
//
//   Winograd<float> of = {56, 56, 56, 56, 1, 1, 56, 64, 64, 64};
//   convolve_winograd<4>(team, of, x, weights,
//                        [&](int64_t y, int64_t x, int pixels, int64_t column, int columns,
//                            const float (*sums)[kPanel<float>]) { ... });
//
// Tiles of kOut x kOut pixels are transformed in blocks; at each of the points what is left is a
// product of matrices, tiles by channels times channels by outputs, and its results are transformed
// back panel by panel. See winograd_points.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "flashlight/runtime/contraction.hpp"
#include "flashlight/runtime/lanes.hpp"
#include "flashlight/runtime/pack.hpp"
#include "flashlight/runtime/winograd_points.hpp"

namespace fl {

// Pixel (y, x) of the input has its channels at (y * row_pitch + x) * pixel_pitch, and around it
// there are zeros, which are not in memory: `top` rows before the first, `left` pixels before each
// row's first, and as many behind as the result needs.
template <class T>
struct Winograd {
  int64_t height, width;  // of the result
  int64_t input_height, input_width, top, left;
  int64_t row_pitch, pixel_pitch;
  int64_t channels, columns;
  // rows: each thread has tiles of its own. columns, for images of few tiles: each thread has
  // outputs of its own, and transforms all of the input for itself, which takes less than to read
  // what another core has written.
  Split split = Split::rows;
  // The weights are not transformed but packed for `contract`: [panel][tap][channel][kPanel]. They
  // are transformed for every block, some channels at a time: where they come from memory, to read
  // fewer of them is worth more than that costs.
  bool plain_weights = false;
  Upcoming next = {};                   // what is read next by this thread, as in Contraction
  int64_t images = 1, image_pitch = 0;  // number of images, at equal distances
};

namespace detail {

// Blocks whose transformed input stays in about half of the second level of the cache, unless they
// had so few tiles that reading the weights took longer: from memory, or to transform them.
constexpr int64_t kBlockBytes = int64_t{1} << 19, kFarWeights = int64_t{1} << 23;
constexpr int64_t kMostBlockBytes = int64_t{1} << 23;
// Plain weights are transformed in pieces of this number of bytes, which stay in the second-level
// cache as well.
constexpr int64_t kTransformedBytes = int64_t{1} << 18;
// Rounding errors grow where results are transformed back: sums are shorter than elsewhere.
constexpr int kChannelsInARow = 128;

template <class T>
int64_t block_tiles(const Winograd<T>& of, int64_t tile_bytes, int64_t weight_bytes) {
  const int64_t least = kMostRows * (of.plain_weights ? 8 : weight_bytes > kFarWeights ? 4 : 2);
  const int64_t most = std::max<int64_t>(kMostRows, kMostBlockBytes / tile_bytes);
  return std::min(most, std::max(least, kBlockBytes / tile_bytes / kMostRows * kMostRows));
}

template <int kOut, class T, class Element = T>
class WinogradBlocks {
 public:
  static constexpr int kSide = kOut + 2, kPoints = kSide * kSide, kLanes = Vectors<T>::kLanes;
  // Tiles beside each other whose results are given together.
  static constexpr int kGroup = std::max(1, kMostRows / kOut);

  WinogradBlocks(const Winograd<T>& of, int threads)
      : of_(of),
        across_((of.width + kOut - 1) / kOut),
        per_image_(across_ * ((of.height + kOut - 1) / kOut)),
        tiles_(of.images * per_image_) {
    const int64_t sharers = of.split == Split::rows ? threads : 1;
    const int64_t mine = (tiles_ + sharers - 1) / sharers;
    pitch_ = row_pitch<T>(of.channels);
    const int64_t bytes = kPoints * pitch_ * int64_t{sizeof(T)};
    const int64_t limit = block_tiles(of, bytes, of.columns * bytes);
    const int64_t blocks = std::max<int64_t>(1, (mine + limit - 1) / limit);
    block_ = (mine + blocks - 1) / blocks;
    input_plane_ = plane(block_ * pitch_), result_plane_ = plane(block_ * kPanel<T>);
    chunk_ = std::min<int64_t>(of.channels,
                               kTransformedBytes / (kPoints * kPanel<T> * int64_t{sizeof(T)}));
    weight_plane_ = plane(chunk_ * kPanel<T>);
  }

  int64_t tiles() const { return tiles_; }
  // Elements that a thread works in.
  int64_t memory() const {
    return kPoints * (input_plane_ + result_plane_) +
           (of_.plain_weights ? kPoints * weight_plane_ : int64_t{0});
  }

  void use(const Element* x, const T* weights, T* memory) {
    x_ = x, weights_ = weights, input_ = memory;
    results_ = input_ + kPoints * input_plane_;
    transformed_ = results_ + kPoints * result_plane_;
  }
  int64_t block() const { return block_; }

  // Transforms the input of a block.
  void transform(Part tiles) const {
    for (int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
      const int64_t image = tile / per_image_, place = tile % per_image_;
      const int64_t y = place / across_ * kOut - of_.top, x = place % across_ * kOut - of_.left;
      const Window at = {std::max<int64_t>(0, -y), std::min<int64_t>(kSide, of_.input_height - y),
                         std::max<int64_t>(0, -x), std::min<int64_t>(kSide, of_.input_width - x)};
      const Element* const from = x_ + image * of_.image_pitch;
      transform_tile(from + (y * of_.row_pitch + x) * of_.pixel_pitch, at,
                     input_ + (tile - tiles.begin) * pitch_);
    }
  }

  // All outputs of a panel, for the tiles of a block, while what comes next is fetched: panel
  // `next`, or what the caller reads then, if there is none.
  void multiply(int64_t panel, Part tiles, std::optional<int64_t> next, const Upcoming& then,
                FinishOf<T> finish) const {
    const int64_t column = panel * kPanel<T>;
    const int columns = static_cast<int>(std::min<int64_t>(kPanel<T>, of_.columns - column));
    if (of_.plain_weights)
      multiply_plain(panel, tiles.size(), columns, next, then);
    else
      multiply_transformed(panel, tiles.size(), columns, next, then);
    if (columns > kLanes)
      finish_groups<2>(tiles, column, columns, finish);
    else
      finish_groups<1>(tiles, column, columns, finish);
  }

 private:
  // The part of a tile's input that is in memory.
  struct Window {
    int64_t top, bottom, left, right;
  };

  const T* weights(int64_t panel) const {
    return weights_ + panel * of_.channels * kPanel<T> * (of_.plain_weights ? 9 : kPoints);
  }

  // Apart in the cache, however long: points of a tile are used together.
  static int64_t plane(int64_t size) {
    constexpr int64_t kPage = 4096 / int64_t{sizeof(T)}, kShift = 320 / int64_t{sizeof(T)};
    return (size + kPage - 1) / kPage * kPage + kShift;
  }

  // The last vector overlaps the one before.
  void transform_tile(const Element* from, const Window& at, T* to) const {
    const bool whole = at.top == 0 && at.left == 0 && at.bottom == kSide && at.right == kSide;
    const int lanes = static_cast<int>(std::min<int64_t>(kLanes, of_.channels));
    alignas(kVectorBytes) T copy[kSide * kSide][kLanes];
    if (!whole || lanes < kLanes) std::fill_n(copy[0], kSide * kSide * kLanes, T(0));
    for (int64_t c = 0; c < of_.channels; c += kLanes) {
      const int64_t begin = std::min(c, of_.channels - lanes);
      if (whole && lanes == kLanes) {
        transform_lanes(from + begin, of_.row_pitch * of_.pixel_pitch, of_.pixel_pitch, to + begin);
      } else {
        copy_window(from + begin, at, lanes, copy);
        transform_lanes(copy[0], kSide * kLanes, kLanes, to + begin);
      }
    }
  }

  // Elements outside of the image stay zero.
  void copy_window(const Element* from, const Window& at, int lanes, T (*copy)[kLanes]) const {
    for (int64_t i = at.top; i < at.bottom; ++i)
      for (int64_t j = at.left; j < at.right; ++j) {
        const Element* const pixel = from + (i * of_.row_pitch + j) * of_.pixel_pitch;
        T* const to = copy[i * kSide + j];
        if (lanes == kLanes)
          store<T>(load_as<T>(pixel), to);
        else
          std::copy_n(pixel, lanes, to);
      }
  }

  // Not inlined, like its reverse: long, and slow to compile.
  template <class From>
  [[gnu::noinline]] void transform_lanes(const From* from, int64_t line, int64_t pixel,
                                         T* to) const {
    Vector<T> half[kSide][kSide];  // [x][point]
#pragma GCC unroll 6
    for (int j = 0; j < kSide; ++j) {
      Vector<T> column[kSide];
#pragma GCC unroll 6
      for (int i = 0; i < kSide; ++i) column[i] = load_as<T>(from + i * line + j * pixel);
      Points<kOut, T>::input(column, half[j]);
    }
#pragma GCC unroll 6
    for (int i = 0; i < kSide; ++i) {
      Vector<T> row[kSide], points[kSide];
#pragma GCC unroll 6
      for (int j = 0; j < kSide; ++j) row[j] = half[j][i];
      Points<kOut, T>::input(row, points);
#pragma GCC unroll 6
      for (int j = 0; j < kSide; ++j) store<T>(points[j], to + (i * kSide + j) * input_plane_);
    }
  }

  void multiply_transformed(int64_t panel, int64_t tiles, int columns, std::optional<int64_t> next,
                            const Upcoming& then) const {
    const int64_t size = of_.channels * kPanel<T>;
    const T* const from = weights(panel);
    for (int point = 0; point < kPoints; ++point) {
      Upcoming upcoming = then;
      if (point + 1 < kPoints)
        upcoming = Upcoming::of(from + (point + 1) * size, size);
      else if (next)
        upcoming = Upcoming::of(weights(*next), size);
      multiply_point(point, tiles, {0, of_.channels}, columns, from + point * size, upcoming);
    }
  }

  // Channels in chunks. While one is multiplied at the first points, the taps of the next are
  // fetched.
  void multiply_plain(int64_t panel, int64_t tiles, int columns, std::optional<int64_t> next,
                      const Upcoming& then) const {
    const int64_t plane = of_.channels * kPanel<T>;
    const T* const from = weights(panel);
    for (int64_t first = 0; first < of_.channels; first += chunk_) {
      const Part channels = {first, std::min(first + chunk_, of_.channels)};
      transform_channels<kOut>(channels.size(), from + first * kPanel<T>, plane, transformed_,
                               weight_plane_);
      const T* taps = next ? weights(*next) : nullptr;
      if (channels.end < of_.channels) taps = from + channels.end * kPanel<T>;
      for (int point = 0; point < kPoints; ++point) {
        Upcoming upcoming;
        if (taps == nullptr)
          upcoming = point + 1 == kPoints ? then : Upcoming();
        else if (point < 9)
          upcoming = Upcoming::of(
              taps + point * plane,
              std::min(chunk_, of_.channels - channels.end % of_.channels) * kPanel<T>);
        multiply_point(point, tiles, channels, columns, transformed_ + point * weight_plane_,
                       upcoming);
      }
    }
  }

  void multiply_point(int point, int64_t tiles, Part channels, int columns, const T* weights,
                      const Upcoming& upcoming) const {
    const int32_t offset = 0;
    const int vectors = columns > kLanes ? 2 : 1;
    const int pieces = static_cast<int>((tiles + kMostRows - 1) / kMostRows);
    for (int piece = 0; piece < pieces; ++piece) {
      const int64_t begin = tiles * piece / pieces, end = tiles * (piece + 1) / pieces;
      Tile<T> tile = {input_ + point * input_plane_ + begin * pitch_ + channels.begin,
                      pitch_,
                      {&offset, 1, static_cast<int>(channels.size())},
                      weights};
      tile.add = channels.begin > 0;
      tile.terms_in_a_row = kChannelsInARow;
      upcoming.add_to(tile, piece, pieces);
      multiply_tile<T>(
          static_cast<int>(end - begin), vectors, tile,
          reinterpret_cast<T(*)[kPanel<T>]>(results_ + point * result_plane_ + begin * kPanel<T>));
    }
  }

  template <int kVectors>
  void finish_groups(Part tiles, int64_t column, int columns, FinishOf<T> finish) const {
    alignas(kVectorBytes) T pixels[kOut][kGroup * kOut][kPanel<T>];
    for (int64_t tile = tiles.begin, count; tile < tiles.end; tile += count) {
      const int64_t image = tile / per_image_, place = tile % per_image_;
      const int64_t y = place / across_ * kOut, x = place % across_ * kOut;
      count = std::min({int64_t{kGroup}, tiles.end - tile, across_ - place % across_});
      for (int64_t i = 0; i < count; ++i)
        for (int v = 0; v < kVectors; ++v)
          transform_back(results_ + (tile - tiles.begin + i) * kPanel<T> + v * kLanes,
                         &pixels[0][i * kOut][v * kLanes]);
      const int width = static_cast<int>(std::min(count * kOut, of_.width - x));
      for (int64_t row = 0; row < std::min<int64_t>(kOut, of_.height - y); ++row)
        finish(image * of_.height + y + row, x, width, column, columns, pixels[row]);
    }
  }

  [[gnu::noinline]] void transform_back(const T* from, T* to) const {
    constexpr int64_t kRow = kGroup * kOut * kPanel<T>;
    Vector<T> half[kSide][kOut];
#pragma GCC unroll 6
    for (int j = 0; j < kSide; ++j) {
      Vector<T> column[kSide];
#pragma GCC unroll 6
      for (int i = 0; i < kSide; ++i) column[i] = load(from + (i * kSide + j) * result_plane_);
      Points<kOut, T>::output(column, half[j]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < kOut; ++i) {
      Vector<T> row[kSide], pixels[kOut];
#pragma GCC unroll 6
      for (int j = 0; j < kSide; ++j) row[j] = half[j][i];
      Points<kOut, T>::output(row, pixels);
#pragma GCC unroll 4
      for (int j = 0; j < kOut; ++j) store<T>(pixels[j], to + i * kRow + j * kPanel<T>);
    }
  }

  const Winograd<T>& of_;
  int64_t across_, per_image_, tiles_;  // tiles of a line, of an image, of all
  int64_t block_, pitch_;               // tiles of a block, elements from one to the next
  int64_t chunk_;                       // channels of plain weights that are transformed together
  // Elements from one point to the next.
  int64_t input_plane_, result_plane_, weight_plane_;
  const Element* x_ = nullptr;
  const T* weights_ = nullptr;
  T *input_ = nullptr, *results_ = nullptr, *transformed_ = nullptr;
};

}  // namespace detail

// The number of elements of the memory, aligned to 64 bytes, in which each of the threads works.
template <int kOut, class T>
int64_t winograd_memory(const Winograd<T>& of, int threads) {
  return detail::WinogradBlocks<kOut, T>(of, threads).memory();
}

// From weights where they lie (terms: ky, kx, channels), to those that convolve_winograd takes.
// Column c is multiplied by factors[c], if there are any.
template <int kOut, class T, class From>
void pack_winograd(const Team& team, const Packing& of, const From* from, T* transformed,
                   const T* factors = nullptr) {
  const int64_t panels = (of.columns.extent + kPanel<T> - 1) / kPanel<T>,
                channels = of.term_count() / 9, size = transformed_size<kOut, T>(channels, 1);
  T* packed = detail::aligned_scratch<T, 9>(of.term_count() * kPanel<T>);
  const Part mine = team.part(panels);
  for (int64_t panel = mine.begin; panel < mine.end; ++panel) {
    const int64_t first = panel * kPanel<T>;
    Packing one = of;
    one.columns.extent = std::min<int64_t>(kPanel<T>, of.columns.extent - first);
    pack_panels(Team::solo(), one, from + first * of.columns.stride, packed,
                factors == nullptr ? nullptr : factors + first);
    transform_weights<kOut>(Team::solo(), channels, one.columns.extent, packed,
                            transformed + panel * size);
  }
}

// finish(y, x, pixels, column, columns, sums) is called once for every run of pixels of a line and
// panel of columns, as by `contract`: sums[i][c] belongs to pixel x + i, and column `column` + c.
// There are at most kMostRows pixels; lines of all images are counted on. Nothing here waits. An
// image of 16-bit floats is widened where it is transformed.
// `memory` is this thread's; without, it is some that the thread keeps.
template <int kOut, class T, class Element>
void convolve_winograd(const Team& team, const Winograd<T>& of, const Element* x,
                       const T* weights, T* memory, FinishOf<T> finish) {
  detail::WinogradBlocks<kOut, T, Element> blocks(of, team.threads());
  const bool by_rows = of.split == Split::rows;
  const int64_t all = (of.columns + kPanel<T> - 1) / kPanel<T>;
  const Part tiles = by_rows ? team.part(blocks.tiles()) : Part{0, blocks.tiles()};
  const Part panels = by_rows ? Part{0, all} : team.part(all);
  if (panels.size() == 0) return;
  blocks.use(x, weights, memory);
  for (int64_t first = tiles.begin; first < tiles.end; first += blocks.block()) {
    const Part block = {first, std::min(first + blocks.block(), tiles.end)};
    blocks.transform(block);
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
      std::optional<int64_t> next;
      if (panel + 1 < panels.end)
        next = panel + 1;
      else if (block.end < tiles.end)
        next = panels.begin;
      blocks.multiply(panel, block, next, of.next, finish);
    }
  }
}
template <int kOut, class T, class Element>
void convolve_winograd(const Team& team, const Winograd<T>& of, const Element* x,
                       const T* weights, FinishOf<T> finish) {
  T* memory = detail::aligned_scratch<T, 9>(winograd_memory<kOut>(of, team.threads()));
  convolve_winograd<kOut>(team, of, x, weights, memory, finish);
}

}  // namespace fl
