-- Version 2: what changed in a whole store can be asked for; sessions are listed by system and
-- scope; keyed events are found by their key; the server itself notes who wrote an event and who
-- holds a lease, and who began a session; a session's number comes with its row; how long the
-- trash keeps sessions is a setting of the store. Digests carry their algorithm: one of BLAKE3
-- has 33 bytes.

-- The transaction that last changed a head, as the number of the change. Numbers below the oldest
-- transaction that still runs are final: none will be added there any more.
ALTER TABLE stepwell.heads ADD COLUMN change xid8 NOT NULL DEFAULT pg_current_xact_id();
CREATE INDEX heads_change ON stepwell.heads (namespace, change);

-- Sessions that were purged.
CREATE TABLE stepwell.removed (
    namespace int NOT NULL,
    change    xid8 NOT NULL DEFAULT pg_current_xact_id(),
    id        text COLLATE "C" NOT NULL
);
CREATE INDEX removed_change ON stepwell.removed (namespace, change);
ALTER TABLE stepwell.removed ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_namespace ON stepwell.removed
    USING (namespace = ANY ((SELECT stepwell.own_namespaces())::int[]));

ALTER TABLE stepwell.sessions ADD COLUMN system bytea;
ALTER TABLE stepwell.sessions ADD COLUMN scope bytea;
CREATE INDEX sessions_system ON stepwell.sessions (namespace, system) WHERE system IS NOT NULL;
CREATE INDEX sessions_scope ON stepwell.sessions (namespace, scope) WHERE scope IS NOT NULL;
DO $$
DECLARE
    known record;
BEGIN
    FOR known IN SELECT session, head FROM stepwell.heads
        WHERE position('"source":'::bytea IN head) > 0
    LOOP
        -- A head that is damaged says nothing here.
        BEGIN
            UPDATE stepwell.sessions SET system = convert_to(
                convert_from(known.head, 'UTF8')::jsonb #>> '{source,system}', 'UTF8')
            WHERE key = known.session AND
                length(convert_from(known.head, 'UTF8')::jsonb #>> '{source,system}') <= 250;
        EXCEPTION WHEN others THEN
            NULL;
        END;
    END LOOP;
END $$;

-- An entry of an index has at most a third of a page, and a path may be longer.
DROP INDEX stepwell.events_facts;
CREATE INDEX events_facts ON stepwell.events (session, kind, substr(key, 1, 1024), seq)
    WHERE key IS NOT NULL;

-- The login that wrote an event. Roles may not name this column: it is the server that fills it in.
ALTER TABLE stepwell.events ADD COLUMN login text COLLATE "C";
ALTER TABLE stepwell.events ALTER COLUMN login SET DEFAULT session_user;
-- Was the event copied from elsewhere? Then its login says who copied it, not who did it.
ALTER TABLE stepwell.events ADD COLUMN copied boolean NOT NULL DEFAULT false;

-- The login that holds a lease.
ALTER TABLE stepwell.leases ADD COLUMN login text COLLATE "C";
CREATE FUNCTION stepwell.sign_lease() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.login := session_user;
    RETURN NEW;
END $$;
CREATE TRIGGER signed BEFORE INSERT OR UPDATE ON stepwell.leases
    FOR EACH ROW EXECUTE FUNCTION stepwell.sign_lease();

-- The login that began a session, or brought it here; absent, nobody noted it. Roles may not name
-- this column either.
ALTER TABLE stepwell.sessions ADD COLUMN login text COLLATE "C";
ALTER TABLE stepwell.sessions ALTER COLUMN login SET DEFAULT session_user;

-- How long a namespace keeps what is in its trash, and after how long without activity sessions
-- go there by themselves. Only the owner of the schema writes it.
CREATE TABLE stepwell.policies (
    namespace          int PRIMARY KEY REFERENCES stepwell.namespaces,
    retention_days     int NOT NULL CHECK (retention_days >= 1),
    cleanup_after_days int CHECK (cleanup_after_days >= 1)
);
ALTER TABLE stepwell.policies ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_namespace ON stepwell.policies
    USING (namespace = ANY ((SELECT stepwell.own_namespaces())::int[]));

-- A session gets its number with its row. Roles could call bear() for numbers alone, and each
-- 50,000 of those made a partition. Numbers that were drawn in vain, by a transaction that was
-- taken back, now make none: there is the partition that is needed, and the one ahead.
CREATE OR REPLACE FUNCTION stepwell.grow(upto bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    stride CONSTANT bigint := 50000;
    parent text;
    made bigint;
BEGIN
    LOCK TABLE stepwell.partitions IN EXCLUSIVE MODE;
    FOR made IN greatest(upto - 1, 0) .. upto LOOP
        CONTINUE WHEN EXISTS (SELECT 1 FROM stepwell.partitions p WHERE p.n = made);
        FOREACH parent IN ARRAY ARRAY['events', 'docs'] LOOP
            EXECUTE format(
                'CREATE TABLE stepwell.%I (LIKE stepwell.%I INCLUDING ALL)',
                parent || '_' || made, parent);
            EXECUTE format(
                'ALTER TABLE stepwell.%I ATTACH PARTITION stepwell.%I FOR VALUES FROM (%s) TO (%s)',
                parent, parent || '_' || made, made * stride, (made + 1) * stride);
        END LOOP;
        INSERT INTO stepwell.partitions VALUES (made);
    END LOOP;
END $$;
CREATE FUNCTION stepwell.number_session() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    stride CONSTANT bigint := 50000;
    taken bigint;
    home bigint;
BEGIN
    -- A row that is refused because its id is taken draws no number.
    SELECT s.key INTO taken FROM stepwell.sessions s
        WHERE s.namespace = NEW.namespace AND s.id = NEW.id;
    IF FOUND THEN
        NEW.key := taken;
        RETURN NEW;
    END IF;
    NEW.key := nextval('stepwell.births');
    home := NEW.key / stride;
    IF (SELECT count(*) FROM stepwell.partitions p WHERE p.n IN (home, home + 1)) < 2 THEN
        PERFORM stepwell.grow(home + 1);
    END IF;
    RETURN NEW;
END $$;
-- Who may not execute it cannot make a trigger of it on a table of their own either.
REVOKE EXECUTE ON FUNCTION stepwell.number_session() FROM PUBLIC;
ALTER TABLE stepwell.sessions ALTER COLUMN key DROP DEFAULT;
DROP FUNCTION stepwell.bear();
-- Only the owner may name a number, as a restored backup does.
CREATE TRIGGER numbered BEFORE INSERT ON stepwell.sessions
    FOR EACH ROW WHEN (NEW.key IS NULL) EXECUTE FUNCTION stepwell.number_session();

-- Roles that were let in before may do with what is new as those that are let in now (role.sql).
DO $$
DECLARE
    member name;
BEGIN
    FOR member IN SELECT DISTINCT m.role FROM stepwell.members m
        JOIN pg_catalog.pg_roles r ON r.rolname = m.role
    LOOP
        EXECUTE format('GRANT SELECT, INSERT, DELETE ON stepwell.removed TO %I', member);
        EXECUTE format('GRANT SELECT ON stepwell.policies TO %I', member);
        EXECUTE format('GRANT INSERT (system, scope), UPDATE (system, scope) ON stepwell.sessions '
            'TO %I', member);
        EXECUTE format('REVOKE INSERT, UPDATE ON stepwell.events FROM %I', member);
        EXECUTE format('GRANT INSERT (session, seq, namespace, at, version, spilled, kind, chain, '
            'id, mark, key, erased, body, copied), UPDATE (session, spilled, key, erased, body) '
            'ON stepwell.events TO %I', member);
    END LOOP;
END $$;
