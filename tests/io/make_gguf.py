"""Writes formats.gguf, and what its blocks stand for by the dequantisers of the package `gguf`, which is no part
of the project's environments:

    pip install gguf safetensors; python make_gguf.py FOLDER
"""

import pathlib
import sys

import gguf
import numpy
from safetensors.numpy import save_file

# Where the blocks of a type have float16s: their other bytes may be anything.
FLOAT16 = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q4_K": [0, 2], "Q5_K": [0, 2],
           "Q6_K": [208], "Q2_K": [80, 82], "Q3_K": [108], "IQ4_NL": [0], "IQ4_XS": [0]}
SPECIAL = [0x0001, 0x03FF, 0x8000, 0x0400, 0x7BFF, 0xFBFF]  # the smallest and largest of each kind
ROWS, COLUMNS = 2, 768


def blocks_of(rng, kind, places):
    columns, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (ROWS * COLUMNS // columns, size), dtype=numpy.uint8)
    for place in places:
        scales = rng.uniform(-2, 2, len(blocks)).astype(numpy.float16)
        scales[:len(SPECIAL)] = numpy.array(SPECIAL, numpy.uint16).view(numpy.float16)[:len(blocks)]
        blocks[:, place:place + 2] = scales.view(numpy.uint8).reshape(-1, 2)
    return blocks.reshape(ROWS, -1)


def main(folder):
    rng = numpy.random.default_rng(5)
    writer = gguf.GGUFWriter(folder / "formats.gguf", "llama")
    writer.add_string("test.text", "grüße")
    writer.add_bool("test.yes", True)
    writer.add_uint8("test.uint8", 200)
    writer.add_int8("test.int8", -100)
    writer.add_uint16("test.uint16", 60000)
    writer.add_int16("test.int16", -30000)
    writer.add_uint32("test.uint32", 4000000000)
    writer.add_int32("test.int32", -2000000000)
    writer.add_uint64("test.uint64", 1 << 62)
    writer.add_int64("test.int64", -(1 << 62))
    writer.add_float32("test.float32", 0.5)
    writer.add_float64("test.float64", 0.1)
    writer.add_array("test.words", ["a", "", "ccc"])
    writer.add_array("test.numbers", [1, -2, 3])
    expected = {}
    for name, places in FLOAT16.items():
        kind = gguf.GGMLQuantizationType[name]
        data = blocks_of(rng, kind, places)
        writer.add_tensor(name.lower(), data, raw_dtype=kind)
        with numpy.errstate(all="ignore"):
            expected[name.lower()] = gguf.quants.dequantize(data, kind)
    for name, dtype in (("f32", "f4"), ("f16", "f2"), ("i8", "i1"), ("i32", "i4"), ("f64", "f8")):
        array = (rng.standard_normal((2, 3, 4)) * 50).astype(dtype)
        writer.add_tensor(name, array)
        expected[name] = array
    numbers = rng.standard_normal((2, 3, 4)).astype(numpy.float32)
    rounded = gguf.quants.quantize(numbers, gguf.GGMLQuantizationType.BF16)
    writer.add_tensor("bf16", rounded, raw_dtype=gguf.GGMLQuantizationType.BF16)
    expected["bf16"] = gguf.quants.dequantize(rounded, gguf.GGMLQuantizationType.BF16)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    save_file(expected, folder / "formats.safetensors")


main(pathlib.Path(sys.argv[1]))
