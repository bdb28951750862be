"""PP-OCRv4's recognizer: the text of a picture of a line.

Lines of Debian's texts, drawn in many fonts and sizes, turned a little, blurred and with noise; all pictures have one
width, since the model's sizes are numbers.
"""

import re
from pathlib import Path

import numpy as np

MODEL = "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx"
HEIGHT, WIDTH = 48, 480
BATCH, LINES, EXAMPLES = 8, 320, 4
GROUPS = (40, 120)  # of weights of 4 bits
ODD = ()  # products whose inputs no group divides
LAYERS = "2.7 million weights: 38 convolutions, 13 products"


def fonts(debian):
    found = [Path("/usr/share/fonts/truetype/dejavu"), debian / "usr/share/fonts/truetype"]
    return sorted(path for folder in found for path in folder.rglob("*.ttf")
                  if re.match("DejaVuS|Liberation|Free", path.name) and "Math" not in path.name)


def texts():
    text = b"\n".join(path.read_bytes() for path in sorted(Path("/usr/share").glob("vim/vim*/doc/usr_*.txt")))
    for line in text.decode("utf-8", "ignore").splitlines():
        if re.fullmatch(r"[A-Z][ -~]{19,}", line) and not re.search(r"\s{2}|[|*`~_^\\<>{}]", line):
            words = line.split()
            yield " ".join(words[:next((n for n in range(1, len(words)) if len(" ".join(words[:n])) > 20), len(words))])


def picture(text, font, draw):
    """Grey [1, 1, HEIGHT, WIDTH], of -1 to 1."""
    from PIL import Image, ImageDraw, ImageFilter, ImageFont

    letters = ImageFont.truetype(str(font), int(draw.integers(18, 40)))
    left, top, right, bottom = letters.getbbox(text)
    edge = int(draw.integers(3, 9))
    dark, light = int(draw.integers(0, 90)), int(draw.integers(160, 256))
    image = Image.new("L", (right - left + 2 * edge, bottom - top + 2 * edge), light)
    ImageDraw.Draw(image).text((edge - left, edge - top), text, fill=dark, font=letters)
    image = image.rotate(draw.uniform(-1, 1), Image.BICUBIC, fillcolor=light)
    image = image.filter(ImageFilter.GaussianBlur(draw.uniform(0, 1.6)))
    width = min(WIDTH, round(image.width * HEIGHT / image.height))
    grey = np.asarray(image.resize((width, HEIGHT), Image.BILINEAR), np.float32)
    grey = np.clip(grey + draw.normal(0, draw.uniform(0, 24), grey.shape), 0, 255)
    row = np.zeros((1, 1, HEIGHT, WIDTH), np.float32)
    row[..., :width] = grey / 127.5 - 1
    return row


def prepare(home, debian):
    lines = list(dict.fromkeys(texts()))
    count = LINES + EXAMPLES * BATCH
    if len(lines) < count:
        raise SystemExit("too little text: install vim-runtime")
    draw, kinds = np.random.default_rng(0), fonts(debian)
    chosen = [lines[k] for k in draw.permutation(len(lines))[:count]]
    grey = np.concatenate([picture(text, kinds[k % len(kinds)], draw) for k, text in enumerate(chosen)])
    return {"inputs": grey[:LINES], "texts": np.array(chosen[:LINES]), "examples": grey[LINES:],
            "characters": np.array(["", *characters(home), " "])}


def characters(home):
    import onnx

    values = {entry.key: entry.value for entry in onnx.load(home / MODEL).metadata_props}
    return values["character"].splitlines()


def sizes(data):
    return {"p2o.DynamicDimension.0": BATCH, "x.2": HEIGHT, "p2o.DynamicDimension.1": WIDTH}


def colored(grey):
    return np.ascontiguousarray(np.repeat(grey, 3, 1))


def examples(call, data):
    return [(colored(batch),) for batch in np.split(data["examples"], EXAMPLES)]


def run(call, data):
    return np.concatenate([call(colored(batch))[0].argmax(2) for batch in np.split(data["inputs"], LINES // BATCH)])


def decisions(outputs):
    """One number per line that stands for its text."""
    return np.array([hash(tuple(kept(line))) for line in outputs])


def kept(line):
    """Classes of a line: of equal neighbours one, without blanks."""
    return [one for one, before in zip(line, [0, *line]) if one not in (0, before)]


def distance(a, b):
    """Levenshtein's."""
    row = list(range(len(b) + 1))
    for x in a:
        corner, row[0] = row[0], row[0] + 1
        for j, y in enumerate(b, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (x != y))
    return row[-1]


def score(outputs, data):
    """Per line: the part of its characters that is right."""
    read = ["".join(data["characters"][kept(line)]) for line in outputs]
    return np.array([max(0, 1 - distance(one, text) / len(text)) for one, text in zip(read, data["texts"])])
