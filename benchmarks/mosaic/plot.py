"""A picture of what `./dev bench mosaic` measured: times in units of the fastest peer's.

    plot(json.loads(Path("benchmarks/results/mosaic.json").read_text()), Path("benchmarks/results/mosaic.svg"))
"""

from xml.sax.saxutils import escape

OURS = "mosaic"
COLOURS = {OURS: "#d1495b", "openvino": "#30638e", "onnxruntime": "#5b8e7d", "torch_compile": "#edae49",
           "torch_compile_autotuned": "#c98b2b", "libtorch": "#8d96a3"}
NAMES, UNIT, LABEL, BAR, GAP = 200, 300, 190, 13, 16  # pixels
LONGEST = 2.6  # longer bars are cut


def ratios(contest):
    """Times by engine, in units of the fastest peer's."""
    times = {engine: row["least"] for engine, row in contest["milliseconds"].items()}
    fastest = min((time for engine, time in times.items() if engine != OURS), default=min(times.values()))
    return {engine: time / fastest for engine, time in times.items()}


def bars(contest, y):
    title = f"{contest['case']}, {contest['threads']} thread" + "s" * (contest["threads"] > 1)
    yield f'<text x="{NAMES - 12}" y="{y + BAR}" text-anchor="end">{escape(title)}</text>'
    for i, (engine, ratio) in enumerate(ratios(contest).items()):
        top, time = y + i * BAR, contest["milliseconds"][engine]["least"]
        length = UNIT * min(ratio, LONGEST)
        yield (f'<rect x="{NAMES}" y="{top}" width="{length:.1f}" height="{BAR - 2}" '
               f'fill="{COLOURS.get(engine, "#555")}"/>')
        yield (f'<text x="{NAMES + length + 5:.1f}" y="{top + BAR - 3}" font-size="10" stroke="white" '
               f'stroke-width="4" paint-order="stroke">'
               f'{escape(engine)} {time:.4g} ms, {ratio:.2f}</text>')


def plot(raw, file):
    contests = [contest for contest in raw["contests"] if contest["milliseconds"]]
    if not contests:  # all turns were disturbed
        return
    lines, y = [], 40
    for contest in contests:
        lines += bars(contest, y)
        y += BAR * len(contest["milliseconds"]) + GAP
    longest = max(min(ratio, LONGEST) for contest in contests for ratio in ratios(contest).values())
    width = NAMES + UNIT * longest + LABEL
    title = f"Time of a call in units of the fastest peer's; {raw['cpu']}, float32"
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{y}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{width:.0f}" height="{y}" fill="white"/>',
           f'<text x="{NAMES}" y="20" font-size="14">{escape(title)}</text>',
           f'<line x1="{NAMES + UNIT}" y1="32" x2="{NAMES + UNIT}" y2="{y - GAP}" '
           'stroke="#333" stroke-dasharray="3 3"/>',
           *lines,
           "</svg>"]
    file.write_text("\n".join(svg) + "\n")
