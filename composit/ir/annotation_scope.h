// Where nodes come from that stand for another one: those of its derivative lie in its module.
//
//   const AnnotationScope scope(forward);     // nodes made on this thread until the block ends
//
// They get `scope` and `source` of `forward`, where they have none of their own. Scopes nest; the
// innermost counts.
#pragma once

#include "composit/ir/node.h"

namespace composit {

class AnnotationScope {
 public:
  explicit AnnotationScope(const Node& node);  // which has to outlive it
  ~AnnotationScope();
  AnnotationScope(const AnnotationScope&) = delete;
  AnnotationScope& operator=(const AnnotationScope&) = delete;

 private:
  const Node* outer_;
};

}  // namespace composit
