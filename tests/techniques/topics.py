"""A small library of three collections that have nothing to do with each other."""

from __future__ import annotations

from pathlib import Path

from ragistry import Workspace, open_workspace
from ragistry.techniques.routing.technique import CollectionRoutedTechnique

DESCRIPTIONS = {
    "kitchen": "Recipes: baking, cooking, and what belongs in a pantry.",
    "garage": "Repair of cars: engines, brakes and tyres.",
    "garden": "Plants: sowing, watering, soil and pests.",
}
TEXTS = {
    "kitchen": [
        "Knead the dough for ten minutes, then let the bread rise in a warm place.",
        "Simmer the tomato sauce with basil until it thickens, and salt the pasta water.",
        "Whisk the egg whites until they are stiff and fold them into the chocolate cake batter.",
        "Roast the potatoes with rosemary in a hot oven until their skin is crisp.",
    ],
    "garage": [
        "Change the engine oil every ten thousand kilometres and replace the oil filter.",
        "Worn brake pads squeal; lift the car, take off the wheel and replace the pads.",
        "Check the pressure of the tyres when they are cold, the spare tyre as well.",
        "A flat battery is started with jumper cables, the red clamp first.",
    ],
    "garden": [
        "Sow the tomato seeds indoors in March and plant the seedlings out after the last frost.",
        "Water the roses in the evening and mulch the soil around their roots.",
        "Aphids on the leaves are washed off with soapy water or eaten by ladybirds.",
        "Prune the apple tree in winter, above a bud that looks outwards.",
    ],
}
QUESTIONS = {
    "kitchen": "how long must bread dough rise?",
    "garage": "my brakes squeal, which pads do I replace?",
    "garden": "what helps against aphids on leaves?",
}
PAGES = {
    "chess.md": "# Openings\n\nThe Sicilian defence answers the king's pawn with the pawn of the queen's bishop.\n",
    "clock.md": "# Clocks\n\nA player whose clock has run out has lost the game of chess.\n",
}
STRANGE = "who won the chess championship of 1972?"


def library(root: Path) -> Workspace:
    """A workspace that holds the collections."""
    opened = open_workspace(root)
    for name, description in DESCRIPTIONS.items():
        opened.library.create_collection(name, description)
        for number, text in enumerate(TEXTS[name]):
            opened.library.ingest_text(text, f"{name}-{number}.txt", name)
    return opened


def routed(opened: Workspace, base: str = "naive", **config: object) -> CollectionRoutedTechnique:
    """A routed technique over the workspace's own parts."""
    return CollectionRoutedTechnique(
        config, base=opened.technique(base), store=opened.store, embedder=opened.embedder, library=opened.library
    )
