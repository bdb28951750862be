"""A model of models.py as a GGUF file of random weights: what llama.cpp reads.

    gguf_file.write(CONFIGURATIONS["llama_1b"], "q4_0", Path("build/llm/llama_1b.q4_0.gguf"))
"""

import numpy as np

FORMATS = {"f32": "F32", "f16": "F16", "bf16": "BF16", "q8_0": "Q8_0", "q4_0": "Q4_0"}
BITS = {"f32": 32, "f16": 16, "bf16": 16, "q8_0": 8.5, "q4_0": 4.5}  # of a weight, scales included


def write(of, format, file):
    import gguf

    kind = gguf.GGMLQuantizationType[FORMATS[format]]
    writer = gguf.GGUFWriter(file, "qwen2" if of.bias else "llama", use_temp_file=False)
    writer.add_context_length(2048 * 8)
    writer.add_embedding_length(of.width)
    writer.add_block_count(of.layers)
    writer.add_feed_forward_length(of.hidden)
    writer.add_head_count(of.heads)
    writer.add_head_count_kv(of.key_heads)
    writer.add_rope_dimension_count(of.head_width)
    writer.add_rope_freq_base(of.theta)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(of.vocabulary)
    writer.add_tokenizer_model("no_vocab")
    random = np.random.default_rng(5)

    def add(name, *sizes):
        if len(sizes) == 1:
            return writer.add_tensor(name, np.ones(sizes, np.float32))
        x = random.standard_normal(sizes, np.float32) * np.float32(0.02)
        if format == "f32":
            return writer.add_tensor(name, x)
        return writer.add_tensor(name, gguf.quants.quantize(x, kind), raw_dtype=kind)

    queries, keys = of.heads * of.head_width, of.key_heads * of.head_width
    add("token_embd.weight", of.vocabulary, of.width)
    for i in range(of.layers):
        name = lambda part: f"blk.{i}.{part}"
        add(name("attn_norm.weight"), of.width)
        add(name("ffn_norm.weight"), of.width)
        for part, size in (("q", queries), ("k", keys), ("v", keys)):
            add(name(f"attn_{part}.weight"), size, of.width)
            if of.bias:
                add(name(f"attn_{part}.bias"), size)
        add(name("attn_output.weight"), of.width, queries)
        add(name("ffn_gate.weight"), of.hidden, of.width)
        add(name("ffn_up.weight"), of.hidden, of.width)
        add(name("ffn_down.weight"), of.width, of.hidden)
    add("output_norm.weight", of.width)
    if not of.shares_head:
        add("output.weight", of.vocabulary, of.width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
