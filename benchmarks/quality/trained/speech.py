"""Silero: whether 32 ms of sound have speech.

Clips of 8 seconds: voices of flite (made of recordings of people) read sentences of Debian's texts, among noise, hums
and chords. What is speech is known since the clips are mixed here; frames at its borders do not count. The model
reads a frame, with 64 samples of the one before, and a state that the frame before left.
"""

import os
import re
import subprocess
import wave
from pathlib import Path

import numpy as np

MODEL = "silero_vad/data/silero_vad_op18_ifless.onnx"
RATE, FRAME, BEFORE = 16000, 512, 64
FRAMES = 250  # of a clip
CLIPS, CALIBRATION = 96, 32  # CALIBRATION is the size of a batch, too
VOICES = ("slt", "rms", "awb", "kal16")
EXAMPLES = 16  # frames of the calibration's clips, over their length
GROUPS = (32, 128)  # of weights of 4 bits
ODD = ()  # products whose inputs no group divides
LAYERS = "0.3 million weights: six convolutions, two products of a recurrent cell"


def say(debian, voice, text, file):
    """Sound of a voice at 16 kHz."""
    libraries = {"LD_LIBRARY_PATH": str(debian / "usr/lib/x86_64-linux-gnu")}
    subprocess.run([debian / "usr/bin/flite", "-voice", voice, "-t", text, "-o", file], check=True,
                   env=os.environ | libraries)
    with wave.open(str(file)) as sound:
        assert sound.getframerate() == RATE and sound.getnchannels() == 1
        return np.frombuffer(sound.readframes(sound.getnframes()), np.int16) / 32768


def sentences():
    text = b" ".join(path.read_bytes() for path in sorted(Path("/usr/share").glob("vim/vim*/doc/usr_*.txt")))
    text = text.decode("utf-8", "ignore").replace("\n", " ")
    found = re.findall(r"(?<=[.] )\s*([A-Z][a-z]+(?: [a-z]+){5,12})[.]", text)
    return list(dict.fromkeys(found))


def noise(kind, draw):
    """A second clip's worth of sound without speech, of power 1."""
    count = FRAMES * FRAME
    time = np.arange(count) / RATE
    if kind == "hum":
        sound = sum(np.sin(2 * np.pi * 50 * k * time + draw.uniform(0, 6)) / k for k in range(1, 9))
    elif kind == "chords":
        sound = np.zeros(count)
        for begin in range(0, count, RATE // 2):
            for step in draw.choice([0, 3, 4, 7, 10, 12, 16, 19], 3, replace=False):
                part = np.arange(min(RATE, count - begin)) / RATE
                pitch = 220 * 2 ** (step / 12)
                sound[begin:begin + len(part)] += np.exp(-3 * part) * sum(
                    np.sin(2 * np.pi * pitch * k * part) / k ** 1.5 for k in range(1, 6))
    else:  # noise whose power falls with frequency
        spectrum = np.fft.rfft(draw.standard_normal(count))
        frequencies = np.maximum(np.fft.rfftfreq(count, 1 / RATE), 20)
        sound = np.fft.irfft(spectrum * frequencies ** -{"white": 0, "pink": 0.5, "brown": 1}[kind], count)
    return sound / np.sqrt(np.mean(sound ** 2))


def clip(number, debian, texts, file):
    """Sound, which frames are speech, and which have neither all nor none of it (left out of scores)."""
    draw = np.random.default_rng(number)
    count = FRAMES * FRAME
    speech, active = np.zeros(count), np.zeros(count, bool)
    at = int(draw.uniform(0.3, 1.5) * RATE)
    for part in range(2):
        sound = say(debian, VOICES[number % len(VOICES)], texts[(2 * number + part) % len(texts)], file)
        sound = sound[:max(0, count - at)]
        if len(sound) > RATE // 4:
            speech[at:at + len(sound)] += sound
            loud = np.convolve(sound ** 2, np.ones(800) / 800, "same")
            active[at:at + len(sound)] = np.convolve(loud > 1e-3 * loud.max(), np.ones(4800), "same") > 0
        at += len(sound) + int(draw.uniform(0.8, 2) * RATE)
    power = np.sqrt(np.mean(speech[active] ** 2))
    kind = ("white", "pink", "brown", "hum", "chords")[number % 5]
    ratio = draw.choice([25, 15, 10, 5])  # dB
    mixed = speech / power + noise(kind, draw) * 10 ** (-ratio / 20)
    mixed *= draw.uniform(0.02, 0.1)
    share = active.reshape(FRAMES, FRAME).mean(1)
    edge = (share > 0) & (share < 1)
    edge |= np.roll(edge, 1) | np.roll(edge, -1)
    return mixed.astype(np.float32), share == 1, edge


def prepare(home, debian):
    texts = sentences()
    if len(texts) < 50:
        raise SystemExit("too little text: install vim-runtime")
    made = [clip(number, debian, texts, home / "voice.wav") for number in range(CLIPS + CALIBRATION)]
    sound, speech, edge = (np.stack(part) for part in zip(*made))
    return {"sound": sound[:CLIPS], "speech": speech[:CLIPS], "edge": edge[:CLIPS], "examples": sound[CLIPS:]}


def sizes(data):
    return {"batch": CALIBRATION, "sequence": BEFORE + FRAME, "sr": RATE}


def steps(call, sound):
    """For each frame: what the model reads, and the probability."""
    state = np.zeros((2, len(sound), 128), np.float32)
    padded = np.pad(sound, ((0, 0), (BEFORE, 0)))
    for frame in range(FRAMES):
        arguments = padded[:, frame * FRAME:(frame + 1) * FRAME + BEFORE].copy(), state
        speech, state = call(*arguments)
        yield arguments, speech[:, 0]


def examples(call, data):
    read = [arguments for arguments, _ in steps(call, data["examples"])]
    return read[FRAMES // EXAMPLES // 2::FRAMES // EXAMPLES][:EXAMPLES]


def run(call, data):
    parts = np.split(data["sound"], CLIPS // CALIBRATION)
    return np.concatenate([np.stack([speech for _, speech in steps(call, part)], 1) for part in parts])


def decisions(outputs):
    return outputs > 0.5


def score(outputs, data):
    """Per clip: the part of its frames that are told right."""
    right = (decisions(outputs) == data["speech"]) & ~data["edge"]
    return right.sum(1) / (~data["edge"]).sum(1)
