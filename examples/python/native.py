"""Sessions by hand: record, fork, rewind, search."""

import sys

import stepwell
from stepwell import Message

with stepwell.open(sys.argv[1] if len(sys.argv) > 1 else ".stepwell") as well:
    session = well.create("fix the login", messages=[Message.user("fix the login")])
    session.step(
        Message.assistant("I look at the code.", [("c1", "read_file", '{"path": "a.py"}')]),
        Message.tool_result("c1", "def login(): ..."),
    )
    before = session.info().seq
    session.append(Message.assistant("Done."))
    other = session.fork(at=before)
    session.rewind(before)
    session.undo()
    for message in session.messages():
        print(message.role, message.text)
    print("fork", len(other.messages()), "of", len(session.messages()))
    print("found", [hit.session == session.id for hit in well.search("look at the code")])
    print("sound", session.verify().sound)
