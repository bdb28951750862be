// The backend as a shared library:
//
//   flashlight compile CAPTURE --plugin libstack.so --backend stack --comment "mine" -o FOLDER
#include <composit/op/plugin.h>
#include <stack/stack.h>

COMPOSIT_BACKEND_PLUGIN(StackBackend)
