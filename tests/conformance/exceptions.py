"""Operators of which less is asked, each with its reason."""

# name in the database -> why its values are not compared
UNDEFINED = {
    "empty": "memory as it is found",
    "empty_like": "memory as it is found",
    "empty_permuted": "memory as it is found",
    "empty_strided": "memory as it is found",
    "new_empty": "memory as it is found",
    "new_empty_strided": "memory as it is found",
}


def ignores_values(name):
    return name in UNDEFINED


_DRAWS = "draws of torch's generator"
_SPARSE = "sparse tensors"
# name in the database -> why no runtime of ONNX can give what torch gives
BEYOND_ONNX = {
    **dict.fromkeys([
        "bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal",
        "normal.in_place", "normal.number_mean", "pca_lowrank", "rand_like", "randint",
        "randint_like", "randn", "randn_like", "svd_lowrank", "uniform", "nn.functional.dropout2d",
        "nn.functional.dropout3d", "nn.functional.feature_alpha_dropout.with_train",
        "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d",
        "nn.functional.multi_head_attention_forward", "nn.functional.rrelu",
        "nn.functional.scaled_dot_product_attention",
    ], _DRAWS),
    **dict.fromkeys(["sparse.mm.reduce", "sparse.sampled_addmm", "to_sparse"], _SPARSE),
    "as_strided.partial_views": "memory that is read as another tensor",
    "bfloat16": "results of bfloat16, which onnxruntime does not hand over",
    "broadcast_shapes": "no tensors among the results",
    "equal": "no tensors among the results",
    "torch._scaled_mm": "products of 8-bit floats with scales",
    "torch._scaled_mm_v2": "products of 8-bit floats with scales",
}  # fmt: skip
