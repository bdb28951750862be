#include "flashlight/backends/cpp.h"
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

const OptionFields<Mosaic>& Mosaic::fields() {
  static const OptionFields<Mosaic> fields(
      {{{.name = "threads", .help = "of a call; 0: one per core"}, &Mosaic::threads},
       {{.name = "winograd", .help = "convolutions may be computed by Winograd's algorithm"},
        &Mosaic::winograd},
       {{.name = "strassen",
         .help = "products of matrices may be computed by Strassen's algorithm"},
        &Mosaic::strassen},
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
