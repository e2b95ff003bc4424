-- Lets a role, and those who are members of it, use one namespace of a Stepwell store and
-- nothing else. Run it as the owner of the schema. It can be run again.
BEGIN;
-- Two of these at once would change the same privileges, which the server refuses: one waits.
LOCK TABLE stepwell.members IN SHARE ROW EXCLUSIVE MODE;
INSERT INTO stepwell.namespaces (name) VALUES (:namespace) ON CONFLICT DO NOTHING;
INSERT INTO stepwell.guards SELECT id FROM stepwell.namespaces WHERE name = :namespace
    ON CONFLICT DO NOTHING;
INSERT INTO stepwell.members SELECT id, :role FROM stepwell.namespaces WHERE name = :namespace
    ON CONFLICT DO NOTHING;
GRANT USAGE ON SCHEMA stepwell TO :"role";
GRANT SELECT ON stepwell.meta, stepwell.namespaces, stepwell.members, stepwell.policies TO :"role";
GRANT SELECT, UPDATE ON stepwell.guards TO :"role";
GRANT SELECT, INSERT, UPDATE, DELETE ON stepwell.heads, stepwell.docs, stepwell.indexed,
    stepwell.lanes, stepwell.leases, stepwell.snapshots, stepwell.blobs,
    stepwell.refs TO :"role";
GRANT SELECT, INSERT, DELETE ON stepwell.removed TO :"role";
-- Who wrote an event is the server's to say, and nobody's to change.
REVOKE INSERT, UPDATE ON stepwell.events FROM :"role";
GRANT SELECT, DELETE,
    INSERT (session, seq, namespace, at, version, spilled, kind, chain, id, mark, key, erased, body,
        copied),
    UPDATE (session, spilled, key, erased, body)
    ON stepwell.events TO :"role";
-- The number of a session is not a role's to choose, nor to change.
REVOKE INSERT, UPDATE ON stepwell.sessions FROM :"role";
GRANT SELECT, DELETE,
    INSERT (namespace, id, parent, subagent, external, created, base_key, base_at, label, tags,
        task, agent, workspace, rewinding, system, scope),
    UPDATE (base_key, base_at, label, tags, task, agent, workspace, rewinding, system, scope)
    ON stepwell.sessions TO :"role";
GRANT EXECUTE ON FUNCTION stepwell.own_namespaces() TO :"role";
COMMIT;
