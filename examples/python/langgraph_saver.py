"""A LangGraph graph whose thread survives the process, and long-term memory beside it."""

import sys
from typing import Annotated, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages

import stepwell
from stepwell.langgraph import StepwellSaver, StepwellStore


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def answer(state: State) -> dict[str, list[AnyMessage]]:
    """Stands in for a model."""
    return {"messages": [AIMessage(f"You said: {state['messages'][-1].text}")]}


well = stepwell.open(sys.argv[1] if len(sys.argv) > 1 else ".stepwell")
saver, memory = StepwellSaver(well), StepwellStore(well)
builder = StateGraph(State)
builder.add_node("answer", answer)
builder.add_edge(START, "answer")
graph = builder.compile(checkpointer=saver, store=memory)
config = {"configurable": {"thread_id": "demo"}}
graph.invoke({"messages": [("user", "hello")]}, config)
graph.invoke({"messages": [("user", "and again")]}, config)
memory.put(("users", "ann"), "likes", {"food": "curry"})
saver.copy_thread("demo", "copy")
saver.prune(["demo"])
print(
    len(list(saver.list(config))),
    "checkpoint left,",
    len(list(saver.list({"configurable": {"thread_id": "copy"}}))),
    "in the copy",
)
print([message.text for message in well.session("langgraph.demo").messages()])
print(memory.search(("users",), query="curry")[0].value)
