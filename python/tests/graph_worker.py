"""A process that runs a graph until it is killed, and says what was acknowledged.

    graph_worker.py STORE THREAD TURNS

After each turn it prints how many messages the state has: by then they must be durable.
"""

import sys
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages

from stepwell.langgraph import StepwellSaver


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def graph(saver: StepwellSaver) -> Any:
    """Two nodes, so that a kill may fall between them."""
    builder = StateGraph(State)
    builder.add_node("think", lambda state: {"messages": [AIMessage("thought")]})
    builder.add_node("act", lambda state: {"messages": [AIMessage(f"{len(state['messages'])}")]})
    builder.add_edge(START, "think")
    builder.add_edge("think", "act")
    return builder.compile(checkpointer=saver)


if __name__ == "__main__":
    store, thread, turns = sys.argv[1:]
    made = graph(StepwellSaver(store))
    config = {"configurable": {"thread_id": thread}}
    for turn in range(int(turns)):
        state = made.invoke({"messages": [("user", f"turn {turn}")]}, config, durability="sync")
        print(len(state["messages"]), flush=True)
