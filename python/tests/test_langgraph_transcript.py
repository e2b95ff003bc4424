"""The conversation of a thread is what its graph has at its head."""

from __future__ import annotations

import operator
import random
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph")
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langgraph.channels import DeltaChannel
from langgraph.graph import START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, _messages_delta_reducer, add_messages

import stepwell
from stepwell.langgraph import StepwellSaver


class Plain(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


class Delta(TypedDict):
    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer)]


class Seldom(TypedDict):
    messages: Annotated[
        list[AnyMessage], DeltaChannel(_messages_delta_reducer, snapshot_frequency=3)
    ]


class Dicts(TypedDict):
    messages: Annotated[list[dict[str, str]], operator.add]


def joined(state: list[str], writes: Any) -> list[str]:
    return [*state, *(it for write in writes for it in write)]


class Words(TypedDict):
    words: Annotated[list[str], DeltaChannel(joined, snapshot_frequency=2)]


class Two(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    notes: Annotated[list[AnyMessage], add_messages]


def graph_of(state: type, well: stepwell.Well) -> Any:
    """A graph that answers; a new saver remembers nothing."""

    def answer(given: Any) -> Any:
        text = f"answer {len(given['messages'])}"
        as_dict = {"role": "assistant", "content": text}
        return {"messages": [as_dict if state is Dicts else AIMessage(text)]}

    builder = StateGraph(state)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    return builder.compile(checkpointer=StepwellSaver(well))


def text_of(message: Any) -> str:
    return str(message["content"] if isinstance(message, dict) else message.text)


def shown(well: stepwell.Well, thread: str) -> list[str]:
    return [it.text for it in well.session(f"langgraph.{thread}").messages()]


def config_of(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def edit(rng: random.Random, messages: list[Any], number: int) -> list[Any]:
    """Something that graphs do to their messages."""
    some = rng.sample(messages, min(len(messages), rng.randrange(1, 3)))
    match rng.randrange(6):
        case 0:
            return [AIMessage(f"instead {number}", id=it.id) for it in some]
        case 1:
            return [RemoveMessage(id=it.id) for it in some]
        case 2:
            return [RemoveMessage(id=it.id) for it in messages[:-3]]
        case 3:
            summary = [HumanMessage(f"summary {number}"), *messages[-2:]]
            return [RemoveMessage(id=REMOVE_ALL_MESSAGES), *summary]
        case 4:
            return [RemoveMessage(id=REMOVE_ALL_MESSAGES)]
    return [HumanMessage(f"more {number}")]


@pytest.mark.parametrize("state", [Plain, Delta, Seldom])
@pytest.mark.on_a_server
def test_whatever_a_graph_does_to_its_messages(well: stepwell.Well, state: type) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    graph, config = graph_of(state, well), config_of("t")
    for number in range(40):
        if rng.random() < 0.3:
            graph = graph_of(state, well)
        messages = graph.get_state(config).values.get("messages", [])
        if not messages or rng.random() < 0.5:
            graph.invoke({"messages": [HumanMessage(f"said {number}")]}, config)
        elif rng.random() < 0.2:
            # Somewhere in the past.
            past = rng.choice([it for it in graph.get_state_history(config, limit=9)])
            messages = past.values.get("messages", [])
            if messages:
                graph.update_state(past.config, {"messages": edit(rng, messages, number)}, "answer")
        else:
            graph.update_state(config, {"messages": edit(rng, messages, number)}, "answer")
        head = graph.get_state(config).values.get("messages", [])
        assert shown(well, "t") == [text_of(it) for it in head], number


def test_messages_that_are_dicts_are_shown(well: stepwell.Well) -> None:
    graph, config = graph_of(Dicts, well), config_of("d")
    for number in range(2):
        graph.invoke({"messages": [{"role": "user", "content": f"said {number}"}]}, config)
    assert shown(well, "d") == ["said 0", "answer 1", "said 1", "answer 3"]
    assert [it.role for it in well.session("langgraph.d").messages()][:2] == ["user", "assistant"]


def test_a_delta_channel_of_words_is_no_conversation(well: stepwell.Well) -> None:
    builder = StateGraph(Words)
    builder.add_node("add", lambda state: {"words": ["more"]})
    builder.add_edge(START, "add")
    graph: Any = builder.compile(checkpointer=StepwellSaver(well))
    for _ in range(3):
        graph.invoke({"words": ["one"]}, config_of("w"))
    assert shown(well, "w") == []
    assert len(graph.get_state(config_of("w")).values["words"]) == 6


def test_a_message_that_is_in_two_channels_is_shown_once(well: stepwell.Well) -> None:
    graph, config = graph_of(Two, well), config_of("two")
    graph.invoke({"messages": [HumanMessage("one", id="1")], "notes": []}, config)
    graph.update_state(config, {"notes": [HumanMessage("one", id="1"), AIMessage("note", id="n")]})
    assert sorted(shown(well, "two")) == ["answer 1", "note", "one"]
    graph.update_state(config, {"messages": [RemoveMessage(id="1")]})
    graph.update_state(config, {"notes": [RemoveMessage(id="n")]})
    assert sorted(shown(well, "two")) == ["answer 1", "one"]


def test_a_prune_empties_what_was_removed(well: stepwell.Well) -> None:
    saver_graph, config = graph_of(Plain, well), config_of("p")
    saver_graph.invoke({"messages": [HumanMessage("the secret cistern", id="s")]}, config)
    saver_graph.invoke({"messages": [HumanMessage("go on")]}, config)
    saver_graph.update_state(config, {"messages": [RemoveMessage(id="s")]}, "answer")
    assert "the secret cistern" not in shown(well, "p")
    assert well.search("cistern")
    StepwellSaver(well).prune(["p"])
    assert shown(well, "p") == ["answer 1", "go on", "answer 3"]
    session = well.session("langgraph.p")
    said = [it for it in session.events() if it.kind == "message"]
    assert "cistern" not in str([it.body for it in said])
    assert session.verify().sound
    # What is kept goes on as before.
    graph_of(Plain, well).invoke({"messages": [HumanMessage("more")]}, config)
    assert shown(well, "p") == ["answer 1", "go on", "answer 3", "more", "answer 4"]
