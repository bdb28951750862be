"""Runs ONNX models in onnxruntime and OpenVINO, in an environment that has them.

    run_onnx.py FOLDER ENGINE...

FOLDER/NAME.onnx with FOLDER/NAME.npz, its inputs by name, gives FOLDER/NAME.ENGINE.npz, the outputs
by name, or FOLDER/NAME.ENGINE.error; an engine is onnxruntime or openvino. The same for each
FOLDER/NAME.call0.npz, …, of a model that is called several times. A model that onnx's checker does not
accept is an error of every engine.
"""

import pathlib
import sys

import numpy as np
import onnx


def onnxruntime_session(file):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]

    def run(inputs):
        given = {one.name: inputs[one.name] for one in session.get_inputs()}
        return dict(zip(names, session.run(None, given)))

    return run


def openvino_session(file):
    import openvino

    graph = onnx.load(file, load_external_data=False).graph  # its names, which OpenVINO may merge
    # By itself it makes integers of what is multiplied with weights that are integers.
    exact = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}
    compiled = openvino.Core().compile_model(file, "CPU", exact)

    def run(inputs):
        results = compiled([inputs[one.name] for one in graph.input])
        return {one.name: results[i] for i, one in enumerate(graph.output)}

    return run


SESSIONS = {"onnxruntime": onnxruntime_session, "openvino": openvino_session}


def calls_of(path):
    """The files of inputs."""
    return [one for one in [path.with_suffix(".npz")] if one.exists()] + sorted(
        path.parent.glob(f"{path.stem}.call*[0-9].npz"))


for path in sorted(pathlib.Path(sys.argv[1]).glob("*.onnx")):
    for engine in sys.argv[2:]:
        session = None
        for call in calls_of(path):
            try:
                if session is None:
                    onnx.checker.check_model(str(path), full_check=True)
                    session = SESSIONS[engine](str(path))
                np.savez(call.with_suffix(f".{engine}.npz"), **session(np.load(call)))
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
                call.with_suffix(f".{engine}.error").write_text(" ".join(text.split()))
