#include "composit/numpy/operation.h"

namespace composit::numpy {

Symbol detail::add_wrapped(std::string_view schema, Row row) {
  row.schema = Symbol(schema).str();  // interned text lasts as long as the process
  const Symbol name = parse_schema(row.schema).name;
  add_operation(std::move(row));
  return name;
}

}  // namespace composit::numpy
