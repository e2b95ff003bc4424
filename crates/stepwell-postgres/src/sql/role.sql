-- Lets a role, and the roles that are members of it, use one namespace of a Stepwell store and
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
REVOKE ALL ON ALL TABLES IN SCHEMA stepwell FROM :"role";
GRANT SELECT ON stepwell.meta, stepwell.namespaces, stepwell.members, stepwell.policies TO :"role";
-- Locking a row takes the right to update it. There is nothing else in it.
GRANT SELECT, UPDATE ON stepwell.guards TO :"role";
GRANT SELECT, DELETE,
    INSERT (namespace, id, parent, subagent, external, created, base_key, base_at, label, tags,
        task, agent, workspace, rewinding, system, scope),
    UPDATE (base_key, base_at, label, tags, task, agent, workspace, rewinding, system, scope)
    ON stepwell.sessions TO :"role";
GRANT SELECT, DELETE,
    INSERT (namespace, session, version, seq, fence, updated, status, cost, steps, bytes, unindexed,
        chain, sum, model, lane, head),
    UPDATE (version, seq, fence, updated, status, cost, steps, bytes, trashed, damage_at, damage,
        unindexed, chain, sum, model, lane, head, change)
    ON stepwell.heads TO :"role";
-- The server says who wrote an event, and that stays.
GRANT SELECT, DELETE,
    INSERT (namespace, session, seq, at, version, spilled, kind, chain, id, mark, key, body, copied),
    UPDATE (session, spilled, key, erased, body)
    ON stepwell.events TO :"role";
GRANT SELECT, DELETE, INSERT (namespace, session, seq, at, words, whole), UPDATE (session)
    ON stepwell.docs TO :"role";
GRANT SELECT, DELETE, INSERT (namespace, session, seq), UPDATE (seq) ON stepwell.indexed TO :"role";
GRANT SELECT, DELETE, INSERT (namespace, session, lane, state), UPDATE (state)
    ON stepwell.lanes TO :"role";
-- Neither may a lease be deleted, nor is there any right on epochs: the server keeps both.
GRANT SELECT, INSERT (namespace, session, epoch, holder, expires), UPDATE (epoch, holder, expires)
    ON stepwell.leases TO :"role";
GRANT SELECT, DELETE, INSERT (namespace, session, seq, state), UPDATE (session, state)
    ON stepwell.snapshots TO :"role";
GRANT SELECT, DELETE, INSERT (namespace, digest, size, stored, touched, data),
    UPDATE (size, stored, touched, data)
    ON stepwell.blobs TO :"role";
GRANT SELECT, DELETE, INSERT (namespace, digest, session, seq), UPDATE (session)
    ON stepwell.refs TO :"role";
GRANT SELECT, DELETE, INSERT (namespace, change, id) ON stepwell.removed TO :"role";
GRANT EXECUTE ON FUNCTION stepwell.own_namespaces() TO :"role";
COMMIT;
