/* LibTorch as a C program sees it: functions of its own C interface
   (torch/csrc/inductor/aoti_torch), whose header is C++. Operators go through the dispatcher, so
   that a scope sees them. */
#ifndef TORCH_IN_C_H_
#define TORCH_IN_C_H_

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef void* Tensor; /* AtenTensorHandle: a pointer to an at::Tensor */
typedef uint64_t StableIValue;

int32_t aoti_torch_device_type_cpu(void);
int32_t aoti_torch_dtype_float32(void);
int32_t aoti_torch_dtype_float64(void);
int32_t aoti_torch_create_tensor_from_blob(void* data, int64_t dimensions, const int64_t* sizes,
                                           const int64_t* strides, int64_t offset, int32_t dtype,
                                           int32_t device, int32_t index, Tensor* tensor);
int32_t aoti_torch_clone(Tensor tensor, Tensor* copy);
int32_t aoti_torch_delete_tensor_object(Tensor tensor);
int32_t aoti_torch_new_tensor_handle(Tensor tensor, Tensor* another);
int32_t aoti_torch_get_data_ptr(Tensor tensor, void** data);
int32_t aoti_torch_get_numel(Tensor tensor, int64_t* count);
int32_t aoti_torch_call_dispatcher(const char* op, const char* overload, StableIValue* stack);
int32_t torch_new_stable_ivalue(StableIValue** value);

#define OK(call)                                                        \
  do {                                                                  \
    if ((call) != 0) {                                                  \
      fprintf(stderr, "%s:%d: %s failed\n", __FILE__, __LINE__, #call); \
      exit(1);                                                          \
    }                                                                   \
  } while (0)

/* Of these elements, in memory of its own. `columns` of 0: one axis. */
static Tensor tensor_of(const void* elements, int32_t dtype, int64_t rows, int64_t columns) {
  const int64_t sizes[2] = {rows, columns}, strides[2] = {columns == 0 ? 1 : columns, 1};
  Tensor view = NULL, tensor = NULL;
  OK(aoti_torch_create_tensor_from_blob((void*)elements, columns == 0 ? 1 : 2, sizes, strides, 0,
                                        dtype, aoti_torch_device_type_cpu(), 0, &view));
  OK(aoti_torch_clone(view, &tensor));
  OK(aoti_torch_delete_tensor_object(view));
  return tensor;
}

/* A call takes its arguments, so it gets handles of their own. */
static StableIValue argument(Tensor tensor) {
  Tensor another = NULL;
  OK(aoti_torch_new_tensor_handle(tensor, &another));
  return (StableIValue)(uintptr_t)another;
}

static StableIValue optional(Tensor tensor) {
  StableIValue* place = NULL;
  OK(torch_new_stable_ivalue(&place));
  *place = argument(tensor);
  return (StableIValue)(uintptr_t)place;
}

static Tensor call(const char* op, const char* overload, StableIValue* stack) {
  OK(aoti_torch_call_dispatcher(op, overload, stack));
  return (Tensor)(uintptr_t)stack[0];
}

static Tensor linear(Tensor x, Tensor weight, Tensor bias) {
  StableIValue stack[3] = {argument(x), argument(weight), optional(bias)};
  return call("aten::linear", "", stack);
}

static Tensor relu(Tensor x) {
  StableIValue stack[1] = {argument(x)};
  return call("aten::relu", "", stack);
}

static Tensor softmax(Tensor x, int64_t axis) {
  StableIValue stack[3] = {argument(x), (StableIValue)axis, 0};
  return call("aten::softmax", "int", stack);
}

static Tensor mul(Tensor a, Tensor b) {
  StableIValue stack[2] = {argument(a), argument(b)};
  return call("aten::mul", "Tensor", stack);
}

static Tensor mean(Tensor x) {
  StableIValue stack[2] = {argument(x), 0};
  return call("aten::mean", "", stack);
}

static void delete_tensor(Tensor tensor) { OK(aoti_torch_delete_tensor_object(tensor)); }

static void* data_of(Tensor tensor) {
  void* data = NULL;
  OK(aoti_torch_get_data_ptr(tensor, &data));
  return data;
}

static int64_t count_of(Tensor tensor) {
  int64_t count = 0;
  OK(aoti_torch_get_numel(tensor, &count));
  return count;
}

#endif /* TORCH_IN_C_H_ */
