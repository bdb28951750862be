"""Runs ONNX models in onnxruntime and OpenVINO, in an environment that has them.

    run_onnx.py FOLDER ENGINE...

FOLDER/NAME.onnx with FOLDER/NAME.npz, its inputs by name, gives FOLDER/NAME.ENGINE.npz, the outputs
by name, or FOLDER/NAME.ENGINE.error; an engine is onnxruntime or openvino. A model that onnx's checker
does not accept is an error of every engine.
"""

import pathlib
import sys

import numpy as np
import onnx


def run_onnxruntime(file, inputs):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    given = {one.name: inputs[one.name] for one in session.get_inputs()}
    return dict(zip([one.name for one in session.get_outputs()], session.run(None, given)))


def run_openvino(file, inputs):
    import openvino

    graph = onnx.load(file, load_external_data=False).graph  # its names, which OpenVINO may merge
    # By itself it makes integers of what is multiplied with weights that are integers.
    exact = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}
    compiled = openvino.Core().compile_model(file, "CPU", exact)
    results = compiled([inputs[one.name] for one in graph.input])
    return {one.name: results[i] for i, one in enumerate(graph.output)}


ENGINES = {"onnxruntime": run_onnxruntime, "openvino": run_openvino}
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.onnx")):
    for engine in sys.argv[2:]:
        try:
            onnx.checker.check_model(str(path), full_check=True)
            inputs = np.load(path.with_suffix(".npz"))
            np.savez(path.with_suffix(f".{engine}.npz"), **ENGINES[engine](str(path), inputs))
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            path.with_suffix(f".{engine}.error").write_text(" ".join(text.split()))
