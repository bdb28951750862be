// Gives new nodes the module scope and source line of another node, as a derivative lies in the
// module of its forward node.
//
//   const AnnotationScope scope(forward);     // nodes made on this thread until the block ends
//
// Such a node gets the annotations `scope` and `source` of `forward` unless it has its own. Scopes
// nest; the innermost counts.
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
