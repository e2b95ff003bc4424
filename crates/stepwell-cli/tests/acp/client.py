"""Drives `stepwell acp` with the protocol's Python SDK, a client that others wrote.

client.py STEPWELL FOLDER SCENARIO: fails with a traceback, or says nothing.
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import acp
from acp.schema import (
    ClientCapabilities,
    Implementation,
    McpServerStdio,
    RequestPermissionResponse,
)

STEPWELL, FOLDER, SCENARIO = sys.argv[1:4]


class Client:
    """Notes what it is told, and answers as it is bidden: an option's name, None for never."""

    def __init__(self, answer="allow_once"):
        self.answer, self.asked, self.updates = answer, [], []
        self.was_asked = asyncio.Event()

    def on_connect(self, conn):
        pass

    async def request_permission(self, session_id, tool_call, options, **kwargs):
        self.asked.append((tool_call, options))
        self.was_asked.set()
        if self.answer is None:
            await asyncio.Event().wait()
        if self.answer == "cancelled":
            return RequestPermissionResponse(outcome={"outcome": "cancelled"})
        return RequestPermissionResponse(outcome={"outcome": "selected", "optionId": self.answer})

    async def session_update(self, session_id, update, **kwargs):
        self.updates.append(update)

    def of(self, kind):
        return [it for it in self.updates if it.session_update == kind]

    def text(self, kind="agent_message_chunk"):
        return "".join(it.content.text for it in self.of(kind))


class Agent:
    """A process of `stepwell acp` that a client talks to."""

    def __init__(self, client):
        self.client = client

    async def __aenter__(self):
        self.spawned = acp.spawn_agent_process(
            self.client, STEPWELL, "acp", "--unstable", cwd=FOLDER, env=dict(os.environ)
        )
        self.conn, self.process = await self.spawned.__aenter__()
        self.ready = await self.conn.initialize(
            protocol_version=acp.PROTOCOL_VERSION,
            client_capabilities=ClientCapabilities(),
            client_info=Implementation(name="test", version="1"),
        )
        return self

    async def __aexit__(self, *error):
        await self.spawned.__aexit__(*error)

    async def new(self, script):
        made = await self.conn.new_session(cwd=FOLDER, mcp_servers=[])
        await self.use(made.session_id, script)
        return made.session_id

    async def use(self, session, script):
        path = Path(FOLDER) / f"{len(script)}-{abs(hash(script))}.yaml"
        path.write_text(script)
        await self.conn.set_config_option("model", session, f"script:{path}")

    async def say(self, session, text):
        said = await self.conn.prompt(session_id=session, prompt=[acp.text_block(text)])
        return said.stop_reason

    async def raw(self, method, **params):
        return await self.conn._conn.send_request(method, params)


def stepwell(*words):
    ran = subprocess.run([STEPWELL, *words, "--json"], cwd=FOLDER, capture_output=True, text=True)
    assert ran.returncode in (0, 8), (words, ran)
    return [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]


def status(session):
    return next(it for it in stepwell("sessions") if it["id"] == session)["status"]


WRITES = """
- {text: I write it., calls: [{tool: write_file, arguments: {path: made.txt, content: "hello\\n"}}]}
- {text: Written.}
"""

TALKS = "- {text: Hello there.}\n- {text: And again.}\n- {text: Still here.}\n"

WAITS = "- {text: I wait., calls: [{tool: run_command, arguments: {command: sleep 600}}]}\n"


async def talk():
    """New, prompt, load, resume, list, close, delete."""
    async with Agent(Client()) as agent:
        assert agent.ready.protocol_version == 1 and agent.ready.agent_info.name == "stepwell"
        session = await agent.new(TALKS)
        assert await agent.say(session, "hi") == "end_turn"
        assert agent.client.text() == "Hello there.", agent.client.updates
        assert agent.client.of("available_commands_update")[0].available_commands
        assert agent.client.of("session_info_update")[-1].title == "hi"
        listed = await agent.conn.list_sessions(cwd=FOLDER)
        assert [it.session_id for it in listed.sessions] == [session], listed
        await agent.conn.close_session(session)
    loader = Client()
    async with Agent(loader) as agent:
        loaded = await agent.conn.load_session(cwd=FOLDER, session_id=session, mcp_servers=[])
        assert loaded.modes.current_mode_id == "confirm-sensitive", loaded
        assert loader.text("user_message_chunk") == "hi" and loader.text() == "Hello there."
        assert await agent.say(session, "more") == "end_turn"
        assert loader.text() == "Hello there.And again.", loader.updates
    resumer = Client()
    async with Agent(resumer) as agent:
        await agent.conn.resume_session(cwd=FOLDER, session_id=session, mcp_servers=[])
        assert resumer.text() == "", "no history comes with a resume"
        assert await agent.say(session, "/status") == "end_turn"
        assert session in resumer.text(), resumer.updates
        forked = await agent.raw("session/fork", sessionId=session, cwd=FOLDER, mcpServers=[])
        assert forked["sessionId"] != session
        found = await agent.raw("_stepwell/search", query="again", cwd=FOLDER)
        assert found["hits"][0]["session"] == session, found
        assert (await agent.raw("_stepwell/verify", sessionId=session))["sound"]
        for _ in range(2):
            await agent.raw("session/delete", sessionId=session)
        listed = await agent.conn.list_sessions(cwd=FOLDER)
        assert session not in [it.session_id for it in listed.sessions]
        try:
            await agent.conn.load_session(cwd=FOLDER, session_id=session, mcp_servers=[])
        except acp.RequestError as error:
            assert error.code == -32002, error
        else:
            raise AssertionError("a session in the trash was loaded")


async def permission():
    """A tool with a diff, allowed and denied."""
    async with Agent(Client("allow_once")) as agent:
        session = await agent.new(WRITES)
        assert await agent.say(session, "write it") == "end_turn"
        call, options = agent.client.asked[0]
        assert call.content[0].type == "diff" and call.content[0].new_text == "hello\n", call
        assert [it.kind for it in options][:2] == ["allow_once", "allow_always"], options
        start = agent.client.of("tool_call")[0]
        assert (start.kind, start.title) == ("edit", "Write made.txt") and start.locations
        done = agent.client.of("tool_call_update")[-1]
        assert done.status == "completed", done
        diff = next(it for it in done.content if it.type == "diff")
        assert diff.new_text == "hello\n" and diff.path.endswith("made.txt"), diff
        assert (Path(FOLDER) / "made.txt").read_text() == "hello\n"
        changed = await agent.raw("_stepwell/diff", sessionId=session)
        assert changed["files"][0]["path"] == "made.txt", changed
    (Path(FOLDER) / "made.txt").unlink()
    async with Agent(Client("reject_once")) as agent:
        session = await agent.new(WRITES)
        assert await agent.say(session, "write it") == "end_turn"
        assert agent.client.of("tool_call_update")[-1].status == "failed"
        assert not (Path(FOLDER) / "made.txt").exists()


async def cancel():
    """A turn that is cancelled in the middle of a command, and goes on later."""
    client = Client("allow_once")
    async with Agent(client) as agent:
        session = await agent.new(WAITS)
        turn = asyncio.create_task(agent.say(session, "wait"))
        await client.was_asked.wait()
        while not any(it.status == "in_progress" for it in client.of("tool_call_update")):
            await asyncio.sleep(0.02)
        await agent.conn.cancel(session)
        assert await turn == "cancelled"
        assert status(session) == "interrupted"
        await agent.use(session, "- {text: x}\n" + TALKS)
        assert await agent.say(session, "go on") == "end_turn"


async def two():
    """Two clients on one session: the second one follows, answers, and is heard."""
    first, second = Client(None), Client("allow_once")
    async with Agent(first) as one, Agent(second) as other:
        session = await one.new(WRITES)
        turn = asyncio.create_task(one.say(session, "write it"))
        await first.was_asked.wait()
        await other.conn.load_session(cwd=FOLDER, session_id=session, mcp_servers=[])
        said = asyncio.create_task(other.say(session, "and be quick"))
        assert await turn == "end_turn"
        assert await said == "end_turn"
        assert second.asked, "the second client was asked, too"
        assert "Written." in second.text(), second.updates
        while "and be quick" not in first.text("user_message_chunk"):
            await asyncio.sleep(0.02)
    said = [it for it in stepwell("log", session) if it["kind"] == "said"]
    assert said[0]["body"]["text"] == "and be quick", said


async def killed():
    """A client that dies at a permission leaves a gate, which the command line answers."""
    client = Client(None)
    agent = Agent(client)
    await agent.__aenter__()
    session = await agent.new(WRITES)
    turn = asyncio.create_task(agent.say(session, "write it"))
    await client.was_asked.wait()
    # As when an editor dies: its end of the pipe closes.
    agent.process.stdin.close()
    assert await agent.process.wait() == 0
    turn.cancel()
    assert status(session) == "paused", status(session)
    gate = stepwell("gates")[0]
    assert gate["session_id"] == session, gate
    stepwell("gates", "answer", gate["id"], "yes")
    stepwell("resume", session)
    assert (Path(FOLDER) / "made.txt").read_text() == "hello\n"
    assert status(session) == "success", status(session)


async def brought():
    """The client's MCP servers and folders, for that connection only and never on record."""
    secret = "s3cr3t-of-the-editor"
    server = McpServerStdio(
        name="the past", command=STEPWELL, args=["mcp"], env=[{"name": "EDITOR_KEY", "value": secret}]
    )
    other = Path(FOLDER).parent / "other"
    other.mkdir()
    (other / "notes.txt").write_text("what the notes say\n")
    script = f"""
- {{text: I look., calls: [{{tool: the_past__list_sessions, arguments: {{}}}}]}}
- {{text: I read., calls: [{{tool: read_file, arguments: {{path: {other / "notes.txt"}}}}}]}}
- {{text: I try., calls: [{{tool: write_file, arguments: {{path: {other / "mine.txt"}, content: x}}}}]}}
- {{text: Done.}}
"""
    async with Agent(Client("allow_once")) as agent:
        made = await agent.conn.new_session(
            cwd=FOLDER, mcp_servers=[server], additional_directories=[str(other)]
        )
        await agent.use(made.session_id, script)
        assert await agent.say(made.session_id, "look around") == "end_turn"
        done = [it for it in agent.client.of("tool_call_update") if it.status != "in_progress"]
        assert [it.status for it in done] == ["completed", "completed", "failed"], done
        assert "what the notes say" in done[1].content[0].content.text, done
        assert not (other / "mine.txt").exists()
    for file in (Path(FOLDER) / ".stepwell").iterdir():
        assert file.is_dir() or secret.encode() not in file.read_bytes(), file


async def imported():
    """A session of another agent goes on here, with any model."""
    stepwell("import", sys.argv[4])
    client = Client()
    async with Agent(client) as agent:
        listed = await agent.conn.list_sessions(cwd=FOLDER)
        session = listed.sessions[0].session_id
        assert listed.sessions[0].field_meta["stepwell"]["importedFrom"], listed
        await agent.conn.load_session(cwd=FOLDER, session_id=session, mcp_servers=[])
        assert client.text("user_message_chunk") and client.text(), client.updates
        await agent.use(session, "- {text: Gone on with.}\n" * 50)
        assert await agent.say(session, "go on") == "end_turn"
        assert "Gone on with." in client.text(), client.updates


asyncio.run(asyncio.wait_for(globals()[SCENARIO](), 60))
