#include "flashlight/backends/cpp.h"
#include "flashlight/backends/cuda.h"
#include "flashlight/backends/devices.h"
#include "flashlight/backends/mosaic.h"

namespace flashlight {

using composit::Option;
using composit::OptionFields;

const OptionFields<Cpp>& Cpp::fields() {
  static const OptionFields<Cpp> fields(
      {{{.name = "link_aten",
         .help = "operations without a definition become calls of LibTorch",
         .flag = "--link aten"},
        &Cpp::link_aten}});
  return fields;
}

const OptionFields<Cuda>& Cuda::fields() {
  static const OptionFields<Cuda> fields(
      {{{.name = "link_aten",
         .help = "products, convolutions, attention, sorting and draws are calls of LibTorch",
         .flag = "--link aten"},
        &Cuda::link_aten},
       {{.name = "graph", .help = "a function that captures a call in a CUDA graph, too"},
        &Cuda::graph}});
  return fields;
}

const OptionFields<Devices>& Devices::fields() {
  static const OptionFields<Devices> fields(
      {{{.name = "choices",
         .help = "what runs where, as in 'encoder.layer.3: on aten' or '*: on mosaic'",
         .use = Option::Use::calls,
         .is_file = true},
        &Devices::choices},
       {{.name = "propose",
         .help = "devices, as in 'mosaic,aten', for modules that no choice covers, by their speed",
         .use = Option::Use::calls},
        &Devices::propose},
       {{.name = "overlap",
         .help = "parts that need not wait for each other run at the same time",
         .use = Option::Use::calls},
        &Devices::overlap},
       {{.name = "lenient",
         .help = "choices may name what the program does not have",
         .use = Option::Use::calls},
        &Devices::lenient}});
  return fields;
}

const OptionFields<Mosaic>& Mosaic::fields() {
  static const OptionFields<Mosaic> fields(
      {{{.name = "threads", .help = "of a call; 0: one per core"}, &Mosaic::threads},
       {{.name = "winograd", .help = "convolutions may be computed by Winograd's algorithm"},
        &Mosaic::winograd},
       {{.name = "strassen",
         .help = "products of matrices may be computed by Strassen's algorithm"},
        &Mosaic::strassen},
       {{.name = "products",
         .help = "what products of float32 are computed of: float32 or bfloat16"},
        &Mosaic::products},
       {{.name = "values",
         .help = "what values of float32 between kernels are stored as: float32 or bfloat16"},
        &Mosaic::values},
       {{.name = "freeze",
         .help = "parameters and buffers are packed once, not in each call",
         .use = Option::Use::calls},
        &Mosaic::freeze},
       {{.name = "choices",
         .help = "decisions about values by name, as for plan",
         .of_one_graph = true,
         .is_file = true},
        &Mosaic::choices},
       {{.name = "march",
         .help = "the processor to prepare weights for; native: this one",
         .use = Option::Use::programs},
        &Mosaic::march}});
  return fields;
}

}  // namespace flashlight
