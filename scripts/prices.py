#!/usr/bin/env python3
"""Makes the list of prices and context sizes that Stepwell ships.

Prices come from the data set of genai-prices, context sizes from the model list of litellm; both
are under the MIT licence, and their notices stand in the file that is made. To make it anew:

    python3 -m venv /tmp/prices && /tmp/prices/bin/pip install genai-prices
    /tmp/prices/bin/pip download --no-deps --dest /tmp/prices litellm
    /tmp/prices/bin/python scripts/prices.py /tmp/prices/litellm-*.whl > new.json
    mv new.json crates/stepwell-catalog/prices.json

A user takes a newer list without a newer Stepwell: stepwell models prices --update FILE.
"""

import datetime
import json
import re
import sys
import zipfile
from decimal import Decimal
from importlib import metadata

from genai_prices.data import providers
from genai_prices.types import ClauseEquals, ClauseOr, ClauseStartsWith, TieredPrices

# Who sells models that talk, by the names that Stepwell has for them.
SOLD_BY = {
    "anthropic": "anthropic",
    "aws": "bedrock",
    "azure": "azure",
    "cerebras": "cerebras",
    "cohere": "cohere",
    "deepseek": "deepseek",
    "fireworks": "fireworks",
    "google": "gemini",
    "groq": "groq",
    "minimax": "minimax",
    "mistral": "mistral",
    "moonshotai": "moonshotai",
    "novita": "novita",
    "openai": "openai",
    "openrouter": "openrouter",
    "perplexity": "perplexity",
    "together": "together",
    "x-ai": "xai",
    "zai": "zai",
}

# What litellm calls them, where that differs.
LITELLM = {"fireworks": "fireworks_ai", "together": "together_ai", "moonshotai": "moonshot"}

# Models that draw, speak, listen, rank or only embed are none that an agent asks.
OTHER_KINDS = re.compile(
    r"embed|image|imagen|veo|tts|whisper|transcribe|speech|audio|realtime|moderation|dall-e|sora"
    r"|rerank|lyria|-live|ocr|search-api|computer-use"
)

MOST_NAME = 100


def names(model):
    """The names by which a model is asked for, each spelled out."""
    found = [model.id]

    def walk(clause):
        if isinstance(clause, ClauseEquals):
            found.append(clause.equals)
        elif isinstance(clause, ClauseStartsWith):
            found.append(clause.starts_with)
        elif isinstance(clause, ClauseOr):
            for one in clause.or_:
                walk(one)

    walk(model.match)
    good = (name.strip() for name in found)
    return [n for n in dict.fromkeys(good) if n and not n.endswith(("-", ".")) and len(n) <= MOST_NAME]


def text(number):
    """A price as text, to a millionth of a dollar per million tokens."""
    rounded = round(number, 6) if number.as_tuple().exponent < -6 else number
    return format(rounded.normalize(), "f")


def at(price, place):
    """A price below all tiers, or in one of them."""
    if isinstance(price, TieredPrices):
        return price.base if place is None else price.tiers[min(place, len(price.tiers) - 1)].price
    return price


def tiers(prices):
    """From how many tokens sent each tier begins."""
    kinds = (prices.input_mtok, prices.output_mtok)
    starts = {tier.start for kind in kinds if isinstance(kind, TieredPrices) for tier in kind.tiers}
    return sorted(starts)


def line(prices, place=None):
    """What tokens cost: sent, received, read from the cache, written to it."""
    kinds = (prices.input_mtok, prices.output_mtok, prices.cache_read_mtok, prices.cache_write_mtok)
    values = [at(kind, place) for kind in kinds]
    while len(values) > 2 and values[-1] is None:
        values.pop()
    return [None if value is None else text(Decimal(value)) for value in values]


def price(model, now):
    prices = model.get_prices(now)
    if prices.input_mtok is None or prices.output_mtok is None:
        return None
    entry = {"price": line(prices)}
    steps = tiers(prices)
    if steps:
        entry["over"] = [[start, *line(prices, place)] for place, start in enumerate(steps)]
    return entry


class Sizes:
    """How much fits a model, by litellm's list."""

    def __init__(self, wheel):
        with zipfile.ZipFile(wheel) as archive:
            with archive.open("litellm/model_prices_and_context_window_backup.json") as file:
                self.models = json.load(file)
            about = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
            lines = archive.read(about).decode().splitlines()
            self.version = next(l for l in lines if l.startswith("Version: ")).split(": ")[1]

    def of(self, provider, name):
        theirs = LITELLM.get(provider, provider)
        for key in (f"{theirs}/{name}", name):
            found = self.models.get(key)
            if found and found.get("max_input_tokens"):
                most = found.get("max_output_tokens")
                return int(found["max_input_tokens"]), int(most) if most else None
        return None, None


def main():
    now = datetime.datetime.now(datetime.timezone.utc)
    sizes = Sizes(sys.argv[1])
    models = {"ollama": {"*": {"price": ["0", "0"]}}}
    for provider in providers:
        name = SOLD_BY.get(provider.id)
        if name is None:
            continue
        entries = models.setdefault(name, {})
        for model in provider.models:
            entry = None if OTHER_KINDS.search(model.id) else price(model, now)
            if entry is None:
                continue
            for known_as in names(model):
                context, most = sizes.of(name, known_as)
                size = {"context": context or model.context_window, "max_output": most}
                whole = {**entry, **{key: value for key, value in size.items() if value}}
                entries.setdefault(known_as, whole)
    sources = [
        {
            "name": "genai-prices",
            "version": metadata.version("genai-prices"),
            "gives": "prices",
            "licence": "MIT, Copyright (c) Pydantic Services Inc. 2025 to present",
        },
        {
            "name": "litellm",
            "version": sizes.version,
            "gives": "context sizes",
            "licence": "MIT, Copyright (c) 2023 Berri AI",
        },
    ]
    write(now.date().isoformat(), sources, models)


def write(made, sources, models):
    """One model a line, so that a newer list reads as a difference."""
    compact = {"ensure_ascii": False, "separators": (",", ":")}
    print('{"about":"Made by scripts/prices.py. Dollars per million tokens: sent, received, read from '
          "the cache, written to it; over: the same for calls that send more than so many. They "
          'change, and contracts differ: your own go first.",')
    print(f'"made":{json.dumps(made)},')
    print('"sources":[')
    print(",\n".join(json.dumps(source, **compact) for source in sources))
    print('],\n"models":{')
    parts = []
    for provider in sorted(models):
        entries = models[provider]
        rows = (f"{json.dumps(n)}:{json.dumps(entries[n], **compact)}" for n in sorted(entries))
        parts.append(f"{json.dumps(provider)}:{{\n" + ",\n".join(rows) + "\n}")
    print(",\n".join(parts))
    print("}}")


if __name__ == "__main__":
    main()
