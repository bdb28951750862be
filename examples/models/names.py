"""Where the names of parameters differ between examples/models and the Python originals.

    weights = {torchvision_name(name): tensor for name, tensor in transformers_resnet.state_dict().items()}
"""

import re


def torchvision_name(name):
    """The name that torchvision gives to a parameter of transformers' ResNet."""
    name = name.replace("resnet.embedder.embedder.convolution", "conv1")
    name = name.replace("resnet.embedder.embedder.normalization", "bn1")
    name = name.replace("classifier.1", "fc")
    name = re.sub(r"resnet\.encoder\.stages\.(\d+)\.layers\.",
                  lambda match: f"layer{int(match[1]) + 1}.", name)
    name = name.replace("shortcut.convolution", "downsample.0")
    name = name.replace("shortcut.normalization", "downsample.1")
    name = re.sub(r"layer\.(\d+)\.convolution", lambda match: f"conv{int(match[1]) + 1}", name)
    return re.sub(r"layer\.(\d+)\.normalization", lambda match: f"bn{int(match[1]) + 1}", name)
