//! A program in Rust that captures a perceptron and writes it as an ONNX model, with the standard
//! library alone.
//!
//!     perceptron FOLDER
//!
//! LibTorch is called by its own C functions, in which a tensor is what it is in tch-rs: an
//! `at::Tensor*`. The binding of Flashlight is the module `flashlight`.
use std::ffi::c_void;

mod torch {
    use std::ffi::{c_char, c_void, CString};

    #[link(name = "torch_cpu")]
    #[link(name = "c10")]
    extern "C" {
        fn aoti_torch_device_type_cpu() -> i32;
        fn aoti_torch_dtype_float32() -> i32;
        fn aoti_torch_create_tensor_from_blob(
            data: *const c_void, dimensions: i64, sizes: *const i64, strides: *const i64, offset: i64,
            dtype: i32, device: i32, index: i32, tensor: *mut *mut c_void,
        ) -> i32;
        fn aoti_torch_clone(tensor: *mut c_void, copy: *mut *mut c_void) -> i32;
        fn aoti_torch_delete_tensor_object(tensor: *mut c_void) -> i32;
        fn aoti_torch_new_tensor_handle(tensor: *mut c_void, another: *mut *mut c_void) -> i32;
        fn aoti_torch_get_data_ptr(tensor: *mut c_void, data: *mut *mut c_void) -> i32;
        fn aoti_torch_get_numel(tensor: *mut c_void, count: *mut i64) -> i32;
        fn aoti_torch_call_dispatcher(op: *const c_char, overload: *const c_char, stack: *mut u64) -> i32;
        fn torch_new_stable_ivalue(value: *mut *mut u64) -> i32;
    }

    /// Owns an `at::Tensor*`, as `tch::Tensor` does.
    pub struct Tensor(*mut c_void);

    impl Drop for Tensor {
        fn drop(&mut self) {
            unsafe { aoti_torch_delete_tensor_object(self.0) };
        }
    }

    impl Tensor {
        pub fn new(elements: &[f32], rows: i64, columns: i64) -> Tensor {
            let (sizes, strides) = ([rows, columns], [columns, 1]);
            let mut view = std::ptr::null_mut();
            let mut copy = std::ptr::null_mut();
            unsafe {
                aoti_torch_create_tensor_from_blob(
                    elements.as_ptr().cast(), 2, sizes.as_ptr(), strides.as_ptr(), 0,
                    aoti_torch_dtype_float32(), aoti_torch_device_type_cpu(), 0, &mut view,
                );
                aoti_torch_clone(view, &mut copy);
                aoti_torch_delete_tensor_object(view);
            }
            Tensor(copy)
        }

        /// Takes ownership of a new `at::Tensor*`.
        pub fn from_ptr(pointer: *mut c_void) -> Tensor {
            Tensor(pointer)
        }

        pub fn as_ptr(&self) -> *mut c_void {
            self.0
        }

        pub fn elements(&self) -> Vec<f32> {
            let (mut data, mut count) = (std::ptr::null_mut(), 0);
            unsafe {
                aoti_torch_get_data_ptr(self.0, &mut data);
                aoti_torch_get_numel(self.0, &mut count);
                std::slice::from_raw_parts(data.cast::<f32>(), count as usize).to_vec()
            }
        }

        fn argument(&self) -> u64 {
            let mut another = std::ptr::null_mut();
            unsafe { aoti_torch_new_tensor_handle(self.0, &mut another) };
            another as u64
        }

        fn optional(&self) -> u64 {
            let mut place = std::ptr::null_mut();
            unsafe {
                torch_new_stable_ivalue(&mut place);
                *place = self.argument();
            }
            place as u64
        }

        fn call(op: &str, overload: &str, mut stack: Vec<u64>) -> Tensor {
            let (op, overload) = (CString::new(op).unwrap(), CString::new(overload).unwrap());
            let failed =
                unsafe { aoti_torch_call_dispatcher(op.as_ptr(), overload.as_ptr(), stack.as_mut_ptr()) };
            assert_eq!(failed, 0, "{op:?}");
            Tensor(stack[0] as *mut c_void)
        }

        pub fn linear(&self, weight: &Tensor, bias: &Tensor) -> Tensor {
            Tensor::call("aten::linear", "", vec![self.argument(), weight.argument(), bias.optional()])
        }

        pub fn relu(&self) -> Tensor {
            Tensor::call("aten::relu", "", vec![self.argument()])
        }

        pub fn softmax(&self, axis: i64) -> Tensor {
            Tensor::call("aten::softmax", "int", vec![self.argument(), axis as u64, 0])
        }
    }
}

mod flashlight {
    use crate::torch::Tensor;
    use std::ffi::{c_char, c_void, CStr, CString};

    #[link(name = "flashlight_c")]
    extern "C" {
        fn flashlight_last_error() -> *const c_char;
        fn flashlight_scope_begin(options: *const c_void, scope: *mut *mut c_void) -> i32;
        fn flashlight_scope_input(scope: *mut c_void, tensor: *mut c_void, name: *const c_char) -> i32;
        fn flashlight_scope_parameter(scope: *mut c_void, tensor: *mut c_void, name: *const c_char) -> i32;
        fn flashlight_scope_output(scope: *mut c_void, tensor: *mut c_void, name: *const c_char) -> i32;
        fn flashlight_scope_end(scope: *mut c_void, capture: *mut *mut c_void) -> i32;
        fn flashlight_scope_cancel(scope: *mut c_void) -> i32;
        fn flashlight_capture_replay(
            capture: *mut c_void, inputs: *const *mut c_void, input_count: usize,
            outputs: *mut *mut c_void, output_count: usize,
        ) -> i32;
        fn flashlight_capture_export(
            capture: *mut c_void, file: *const c_char, options: *const c_void,
        ) -> i32;
        fn flashlight_capture_free(capture: *mut c_void) -> i32;
    }

    type Result<T> = std::result::Result<T, String>;

    fn check(status: i32) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        Err(unsafe { CStr::from_ptr(flashlight_last_error()) }.to_string_lossy().into_owned())
    }

    /// Not Send: a scope belongs to its thread.
    pub struct Scope(*mut c_void);

    impl Drop for Scope {
        fn drop(&mut self) {
            unsafe { flashlight_scope_cancel(self.0) };
        }
    }

    impl Scope {
        pub fn begin() -> Result<Scope> {
            let mut scope = std::ptr::null_mut();
            check(unsafe { flashlight_scope_begin(std::ptr::null(), &mut scope) })?;
            Ok(Scope(scope))
        }

        pub fn input(&self, tensor: &Tensor, name: &str) -> Result<()> {
            let name = CString::new(name).unwrap();
            check(unsafe { flashlight_scope_input(self.0, tensor.as_ptr(), name.as_ptr()) })
        }

        pub fn parameter(&self, tensor: &Tensor, name: &str) -> Result<()> {
            let name = CString::new(name).unwrap();
            check(unsafe { flashlight_scope_parameter(self.0, tensor.as_ptr(), name.as_ptr()) })
        }

        pub fn output(&self, tensor: &Tensor, name: &str) -> Result<()> {
            let name = CString::new(name).unwrap();
            check(unsafe { flashlight_scope_output(self.0, tensor.as_ptr(), name.as_ptr()) })
        }

        pub fn end(self) -> Result<Capture> {
            let mut capture = std::ptr::null_mut();
            check(unsafe { flashlight_scope_end(self.0, &mut capture) })?;
            Ok(Capture(capture))
        }
    }

    pub struct Capture(*mut c_void);

    impl Drop for Capture {
        fn drop(&mut self) {
            unsafe { flashlight_capture_free(self.0) };
        }
    }

    impl Capture {
        /// The one result.
        pub fn replay(&self, x: &Tensor) -> Result<Tensor> {
            let (inputs, mut output) = ([x.as_ptr()], std::ptr::null_mut());
            check(unsafe { flashlight_capture_replay(self.0, inputs.as_ptr(), 1, &mut output, 1) })?;
            Ok(Tensor::from_ptr(output))
        }

        pub fn export(&self, file: &str) -> Result<()> {
            let file = CString::new(file).unwrap();
            check(unsafe { flashlight_capture_export(self.0, file.as_ptr(), std::ptr::null()) })
        }
    }
}

use flashlight::Scope;
use torch::Tensor;

/// Numbers between -1 and 1 that repeat nothing.
fn made(seed: i32, rows: i64, columns: i64) -> Tensor {
    let element = |i| (12.9898 * i as f64 + 78.233 * f64::from(seed)).sin() as f32;
    Tensor::new(&(0..rows * columns).map(element).collect::<Vec<f32>>(), rows, columns)
}

struct Perceptron {
    parameters: Vec<(&'static str, Tensor)>,
}

impl Perceptron {
    fn forward(&self, x: &Tensor) -> Tensor {
        let p = |i: usize| &self.parameters[i].1;
        x.linear(p(0), p(1)).relu().linear(p(2), p(3)).softmax(1)
    }
}

fn write(folder: &str, name: &str, tensor: &Tensor) {
    let bytes: Vec<u8> = tensor.elements().iter().flat_map(|x| x.to_le_bytes()).collect();
    std::fs::write(format!("{folder}/{name}.bin"), bytes).unwrap();
}

fn main() -> Result<(), String> {
    let folder = std::env::args().nth(1).expect("usage: perceptron FOLDER");
    let model = Perceptron {
        parameters: vec![
            ("fc1.weight", made(1, 5, 3)),
            ("fc1.bias", made(2, 1, 5)),
            ("fc2.weight", made(3, 2, 5)),
            ("fc2.bias", made(4, 1, 2)),
        ],
    };
    let x = made(5, 4, 3);
    let scope = Scope::begin()?;
    scope.input(&x, "x")?;
    for (name, tensor) in &model.parameters {
        scope.parameter(tensor, name)?;
    }
    scope.output(&model.forward(&x), "y")?;
    let capture = scope.end()?;

    let other = made(6, 4, 3);
    let y = model.forward(&other);
    assert_eq!(capture.replay(&other)?.elements(), y.elements());
    let refusal = capture.replay(&made(6, 5, 3)).err().unwrap();
    assert!(refusal.contains("[4, 3]"), "{refusal}");
    let abandoned = Scope::begin()?;
    drop(abandoned); // ends it
    assert_eq!(Scope::begin()?.end().err(), None);

    capture.export(&format!("{folder}/rust.onnx"))?;
    write(&folder, "x", &other);
    write(&folder, "y", &y);
    println!("all is well");
    Ok(())
}

const _: () = assert!(std::mem::size_of::<*mut c_void>() == 8);
