"""A conversation that begins in LangGraph and goes on in OpenAI Agents, then in Pydantic AI."""

import asyncio
import sys
from typing import Annotated, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages

import stepwell
from stepwell.langgraph import StepwellSaver
from stepwell.openai import StepwellSession
from stepwell.pydantic_ai import StepwellConversationStore


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


async def main() -> None:
    well = stepwell.open(sys.argv[1] if len(sys.argv) > 1 else ".stepwell")
    builder = StateGraph(State)
    builder.add_node("answer", lambda state: {"messages": [AIMessage("from the graph")]})
    builder.add_edge(START, "answer")
    graph = builder.compile(checkpointer=StepwellSaver(well))
    await graph.ainvoke({"messages": [("user", "begin")]}, {"configurable": {"thread_id": "h"}})
    session = StepwellSession.continuing(well.session("langgraph.h"), "h")
    await session.add_items([{"role": "user", "content": "go on"}])
    print(await session.get_items())
    store = StepwellConversationStore(well)
    conversation = await store.continuing(session.session, "h")
    print(len(conversation.messages), "messages in Pydantic AI")


asyncio.run(main())
