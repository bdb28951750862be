// A program of several translation units instantiates these templates in one of them, since that
// takes a while. That unit says FLASHLIGHT_TILES(float) and, if it needs them,
// FLASHLIGHT_STRASSEN(float), FLASHLIGHT_WINOGRAD(4, float, float), FLASHLIGHT_DEPTHWISE(float) and
// FLASHLIGHT_ATTENTION(float, float, float), or for 16-bit floats FLASHLIGHT_PANELS_OF(float, fl::bfloat16) and
// FLASHLIGHT_TILES_OF(float, fl::bfloat16, fl::bfloat16), for weights of integers
// FLASHLIGHT_COMPRESSED_PANELS(4, fl::float16, false) and FLASHLIGHT_COMPRESSED_TILES(float, float),
// for bytes FLASHLIGHT_BYTES(int32_t). All others define FLASHLIGHT_TILES_ELSEWHERE before they
// include this.
#pragma once

#include "flashlight/runtime/attention.hpp"
#include "flashlight/runtime/border.hpp"
#include "flashlight/runtime/compressed.hpp"
#include "flashlight/runtime/bytes.hpp"
#include "flashlight/runtime/contraction.hpp"
#include "flashlight/runtime/depthwise.hpp"
#include "flashlight/runtime/microkernel.hpp"
#include "flashlight/runtime/pack.hpp"
#include "flashlight/runtime/strassen.hpp"
#include "flashlight/runtime/winograd.hpp"

#define FLASHLIGHT_DECLARE_TILES(KIND, T)                                                        \
  KIND template fl::detail::Multiply<T> fl::detail::multiplication<T>(int rows, int vectors);    \
  KIND template void fl::contract<T>(const Team&, const Contraction<T>&, BaseOf<T>, const T*,    \
                                     FinishOf<T>);                                               \
  KIND template fl::Upcoming fl::first_panel<T>(const Team&, Split, const T*, int64_t, int64_t); \
  KIND template void fl::pack_panels<T, T>(const Team&, const Packing&, const T*, T*, const T*)

// Panels of type O, of which sums of type T are made; and rows of type E that are rounded to O.
#define FLASHLIGHT_DECLARE_PANELS_OF(KIND, T, O)                                                 \
  KIND template fl::detail::Multiply<T, O, fl::detail::WordOf<T, O, O>>                          \
  fl::detail::multiplication<T, O, fl::detail::WordOf<T, O, O>>(int rows, int vectors);          \
  KIND template fl::Upcoming fl::first_panel<O>(const Team&, Split, const O*, int64_t, int64_t); \
  KIND template void fl::pack_panels<O, O>(const Team&, const Packing&, const O*, O*, const O*)
#define FLASHLIGHT_DECLARE_TILES_OF(KIND, T, E, O)                                           \
  KIND template void fl::contract<T, E, O, O>(const Team&, const Contraction<T>&, BaseOf<E>, \
                                              const O*, FinishOf<T>)

// Panels of integers: BITS, SCALE and OFFSETS of compressed.hpp. And rows of type E that are rounded
// to O, times any of them.
#define FLASHLIGHT_DECLARE_COMPRESSED_PANELS(KIND, BITS, SCALE, OFFSETS)                           \
  KIND template const fl::CodeFormat& fl::code_format<BITS, SCALE, OFFSETS>();                     \
  KIND template void fl::pack_compressed<BITS, SCALE, OFFSETS>(                                    \
      const Team&, const CompressedPacking&, const int8_t*, const SCALE*, const SCALE*, uint8_t*)
#define FLASHLIGHT_DECLARE_COMPRESSED_TILES(KIND, E, O)                                 \
  KIND template void fl::contract_compressed<float, E, O>(                              \
      const Team&, const Contraction<float>&, BaseOf<E>, CompressedPanels, FinishOf<float>)

#define FLASHLIGHT_DECLARE_STRASSEN(KIND, T)                                                   \
  KIND template fl::detail::Multiply<T> fl::detail::multiplication_by_difference<T>(int rows); \
  KIND template void fl::contract_strassen<T>(const Team&, const Contraction<T>&, BaseOf<T>,   \
                                              const T*, FinishOf<T>)

// Images and weights of type E.
#define FLASHLIGHT_DECLARE_WINOGRAD(KIND, OUT, T, E)                                          \
  KIND template void fl::convolve_winograd<OUT, T, E>(const Team&, const Winograd<T>&,        \
                                                      const E*, const T*, FinishOf<T>);       \
  KIND template void fl::pack_winograd<OUT, T, E>(const Team&, const Packing&, const E*, T*,  \
                                                  const T*)

#define FLASHLIGHT_DECLARE_DEPTHWISE(KIND, T)                                                 \
  KIND template void fl::contract_depthwise<T>(const Team&, const Contraction<T>&, BaseOf<T>, \
                                               const T*, FinishOf<T>)

// Of elements of type E, which are rounded to O.
#define FLASHLIGHT_DECLARE_ATTENTION(KIND, T, E, O)                                           \
  KIND template void fl::attend<T, E, O, fl::NoBias>(const Attention<T>&, const E*, const E*, \
                                                     const E*, E*, int64_t, int64_t, const NoBias&)

// Products of bytes, summed in T.
#define FLASHLIGHT_DECLARE_BYTES(KIND, T)                                                          \
  KIND template fl::detail::MultiplyBytes fl::detail::byte_multiplication<T>(int rows,             \
                                                                             int vectors);         \
  KIND template void fl::contract_bytes<T>(const Team&, const Contraction<T>&, T, BaseOf<uint8_t>, \
                                           const T*, FinishOf<T>);                                 \
  KIND template fl::Upcoming fl::first_panel<T>(const Team&, Split, const T*, int64_t, int64_t);   \
  KIND template void fl::pack_bytes<T>(const Team&, const Packing&, const int8_t*, T*)

#if defined(FLASHLIGHT_TILES_ELSEWHERE)
FLASHLIGHT_DECLARE_BYTES(extern, int32_t);
FLASHLIGHT_DECLARE_TILES(extern, float);
FLASHLIGHT_DECLARE_TILES(extern, double);
FLASHLIGHT_DECLARE_TILES_OF(extern, float, fl::float16, fl::float16);
FLASHLIGHT_DECLARE_TILES_OF(extern, float, fl::bfloat16, fl::bfloat16);
FLASHLIGHT_DECLARE_PANELS_OF(extern, float, fl::float16);
FLASHLIGHT_DECLARE_PANELS_OF(extern, float, fl::bfloat16);
FLASHLIGHT_DECLARE_COMPRESSED_PANELS(extern, 4, float, false);
FLASHLIGHT_DECLARE_COMPRESSED_PANELS(extern, 4, float, true);
FLASHLIGHT_DECLARE_COMPRESSED_PANELS(extern, 4, fl::float16, false);
FLASHLIGHT_DECLARE_COMPRESSED_PANELS(extern, 4, fl::bfloat16, false);
FLASHLIGHT_DECLARE_COMPRESSED_PANELS(extern, 8, float, false);
FLASHLIGHT_DECLARE_COMPRESSED_PANELS(extern, 8, float, true);
FLASHLIGHT_DECLARE_COMPRESSED_PANELS(extern, 8, fl::float16, false);
FLASHLIGHT_DECLARE_COMPRESSED_PANELS(extern, 8, fl::bfloat16, false);
FLASHLIGHT_DECLARE_COMPRESSED_TILES(extern, float, float);
FLASHLIGHT_DECLARE_COMPRESSED_TILES(extern, float, fl::bfloat16);
FLASHLIGHT_DECLARE_COMPRESSED_TILES(extern, fl::bfloat16, fl::bfloat16);
FLASHLIGHT_DECLARE_COMPRESSED_TILES(extern, fl::float16, fl::float16);
FLASHLIGHT_DECLARE_STRASSEN(extern, float);
FLASHLIGHT_DECLARE_STRASSEN(extern, double);
FLASHLIGHT_DECLARE_WINOGRAD(extern, 2, float, float);
FLASHLIGHT_DECLARE_WINOGRAD(extern, 2, float, fl::float16);
FLASHLIGHT_DECLARE_WINOGRAD(extern, 2, float, fl::bfloat16);
FLASHLIGHT_DECLARE_WINOGRAD(extern, 2, double, double);
FLASHLIGHT_DECLARE_WINOGRAD(extern, 4, float, float);
FLASHLIGHT_DECLARE_WINOGRAD(extern, 4, float, fl::float16);
FLASHLIGHT_DECLARE_WINOGRAD(extern, 4, float, fl::bfloat16);
FLASHLIGHT_DECLARE_WINOGRAD(extern, 4, double, double);
FLASHLIGHT_DECLARE_DEPTHWISE(extern, float);
FLASHLIGHT_DECLARE_DEPTHWISE(extern, double);
FLASHLIGHT_DECLARE_ATTENTION(extern, float, float, float);
FLASHLIGHT_DECLARE_ATTENTION(extern, float, float, fl::bfloat16);
FLASHLIGHT_DECLARE_ATTENTION(extern, double, double, double);
FLASHLIGHT_DECLARE_ATTENTION(extern, float, fl::float16, fl::float16);
FLASHLIGHT_DECLARE_ATTENTION(extern, float, fl::bfloat16, fl::bfloat16);
#endif

#define FLASHLIGHT_TILES(T) FLASHLIGHT_DECLARE_TILES(, T)
#define FLASHLIGHT_TILES_OF(T, E, O) FLASHLIGHT_DECLARE_TILES_OF(, T, E, O)
#define FLASHLIGHT_PANELS_OF(T, O) FLASHLIGHT_DECLARE_PANELS_OF(, T, O)
#define FLASHLIGHT_COMPRESSED_PANELS(BITS, SCALE, OFFSETS) \
  FLASHLIGHT_DECLARE_COMPRESSED_PANELS(, BITS, SCALE, OFFSETS)
#define FLASHLIGHT_COMPRESSED_TILES(E, O) FLASHLIGHT_DECLARE_COMPRESSED_TILES(, E, O)
#define FLASHLIGHT_BYTES(T) FLASHLIGHT_DECLARE_BYTES(, T)
#define FLASHLIGHT_STRASSEN(T) FLASHLIGHT_DECLARE_STRASSEN(, T)
#define FLASHLIGHT_WINOGRAD(OUT, T, E) FLASHLIGHT_DECLARE_WINOGRAD(, OUT, T, E)
#define FLASHLIGHT_DEPTHWISE(T) FLASHLIGHT_DECLARE_DEPTHWISE(, T)
#define FLASHLIGHT_ATTENTION(T, E, O) FLASHLIGHT_DECLARE_ATTENTION(, T, E, O)
