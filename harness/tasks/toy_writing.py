"""toy_writing: short stories about given characters, for speed only: many continuations are equally good.

Every sentence offers choices that nothing before it decides, so verifier and drafter are as uncertain as on free
text; only names, places and objects of the prompt recur.
"""

import random

from harness.tasks.toy import ToyExample

ANIMALS = ["fox", "owl", "bear", "hare", "crow", "frog", "mole", "wolf", "goat", "duck"]
TRAITS = ["brave", "quiet", "clever", "tired", "happy", "lonely", "curious", "gentle"]
PLACES = ["forest", "harbor", "garden", "valley", "market", "castle", "desert", "village"]
OBJECTS = ["lantern", "map", "key", "drum", "boat", "mirror", "feather", "clock"]
MOODS = ["sad", "funny", "warm", "strange"]
OPENINGS = (
    "Once a {trait} {animal} lived near the {place}.",
    "In the {place} there was a {trait} {animal}.",
    "Nobody in the {place} knew the {trait} {animal}.",
)
MIDDLES = (
    "Every {time} the {animal} looked for the {thing}.",
    "One {time} it found a {thing} under the {spot}.",
    "The {thing} was {look}, and the {animal} was {trait}.",
    "A {other} came by and asked about the {thing}.",
    "They walked to the {spot} and waited for the {time}.",
    "The {other} laughed, but the {animal} stayed {trait}.",
    "It hid the {thing} behind the {spot}.",
    "Soon the whole {place} talked about the {thing}.",
)
ENDINGS = {
    "sad": "In the end the {thing} was lost, and the {animal} cried.",
    "funny": "In the end the {thing} was upside down, and everybody laughed.",
    "warm": "In the end the {animal} and the {other} shared the {thing}.",
    "strange": "In the end the {thing} began to sing, and nobody knew why.",
}
TIMES = ["morning", "evening", "night", "winter"]
SPOTS = ["bridge", "tree", "tower", "river", "stone"]
LOOKS = ["old", "golden", "broken", "heavy", "tiny"]


def generate(rng: random.Random) -> ToyExample:
    """One request for a story, and a story."""
    animal, other = rng.sample(ANIMALS, 2)
    words = {
        "animal": animal,
        "other": other,
        "trait": rng.choice(TRAITS),
        "place": rng.choice(PLACES),
        "thing": rng.choice(OBJECTS),
    }
    mood = rng.choice(MOODS)
    prompt = ("Write a {mood} story about a {trait} {animal}, a {other} and a {thing} in the {place}.").format(
        mood=mood, **words
    )
    templates = [rng.choice(OPENINGS), *rng.sample(MIDDLES, rng.randint(4, 6)), ENDINGS[mood]]
    sentences = [
        template.format(time=rng.choice(TIMES), spot=rng.choice(SPOTS), look=rng.choice(LOOKS), **words)
        for template in templates
    ]
    return ToyExample(content=prompt, prompt=prompt, response=" ".join(sentences), reference={})
