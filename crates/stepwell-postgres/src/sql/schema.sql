-- Every key begins with the namespace: a team can be dropped, moved or put on a server of its own,
-- and no row of one team can be in the way of another's.
-- Every role can listen to every channel whose name it knows: `channel` is known to a namespace's
-- members alone.
CREATE TABLE stepwell.namespaces (
    id      int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name    text COLLATE "C" NOT NULL UNIQUE,
    channel uuid NOT NULL DEFAULT gen_random_uuid()
);

-- Which roles see which namespace; the owner of the schema sees all.
CREATE TABLE stepwell.members (
    namespace int NOT NULL REFERENCES stepwell.namespaces,
    role      name NOT NULL,
    PRIMARY KEY (namespace, role)
);

-- A transaction that moves sessions about (trash, purge, scrub, repair) holds a namespace's row.
CREATE TABLE stepwell.guards (
    namespace int PRIMARY KEY REFERENCES stepwell.namespaces
);

-- How long a namespace keeps its trash, and after how many days without activity sessions go there
-- by themselves. Only the owner of the schema writes it.
CREATE TABLE stepwell.policies (
    namespace          int PRIMARY KEY REFERENCES stepwell.namespaces,
    retention_days     int NOT NULL CHECK (retention_days >= 1),
    cleanup_after_days int CHECK (cleanup_after_days >= 1)
);

-- The columns of a session that seldom change; the indexes are here. Roles may name neither `key`
-- nor `login`: the server fills them in. `login` began the session, or copied it here.
CREATE TABLE stepwell.sessions (
    namespace int NOT NULL REFERENCES stepwell.namespaces,
    key       bigint GENERATED ALWAYS AS IDENTITY,
    id        text COLLATE "C" NOT NULL,
    parent    text COLLATE "C",
    subagent  boolean NOT NULL,
    external  boolean NOT NULL,
    created   bigint NOT NULL,
    base_key  bigint,
    base_at   bigint,
    label     bytea,
    tags      bytea[] NOT NULL,
    task      bytea NOT NULL,
    agent     bytea NOT NULL,
    workspace bytea NOT NULL,
    rewinding boolean NOT NULL,
    system    bytea,
    scope     bytea,
    login     text COLLATE "C" DEFAULT session_user,
    PRIMARY KEY (namespace, key),
    UNIQUE (namespace, id)
);
CREATE INDEX sessions_parent ON stepwell.sessions (namespace, parent) WHERE parent IS NOT NULL;
CREATE INDEX sessions_base ON stepwell.sessions (namespace, base_key, base_at)
    WHERE base_key IS NOT NULL;
CREATE INDEX sessions_rewinding ON stepwell.sessions (namespace) WHERE rewinding;
CREATE INDEX sessions_label ON stepwell.sessions (namespace, label) WHERE label IS NOT NULL;
CREATE INDEX sessions_system ON stepwell.sessions (namespace, system) WHERE system IS NOT NULL;
CREATE INDEX sessions_scope ON stepwell.sessions (namespace, scope) WHERE scope IS NOT NULL;

-- The columns that every append changes, with as few indexes as lists can do with. `change` is the
-- transaction that last changed the row. Numbers below the oldest transaction that still runs are
-- final: none will be added there any more. A head goes with its session's row, however that goes: a
-- runner that knew it finds no head to move on.
CREATE TABLE stepwell.heads (
    namespace int NOT NULL,
    session   bigint NOT NULL,
    version   bigint NOT NULL,
    seq       bigint NOT NULL,
    fence     bigint NOT NULL,
    updated   bigint NOT NULL,
    status    text NOT NULL,
    cost      bigint NOT NULL,
    steps     bigint NOT NULL,
    bytes     bigint NOT NULL,
    trashed   bigint,
    damage_at bigint,
    damage    bytea,
    unindexed boolean NOT NULL,
    chain     bytea NOT NULL,
    sum       bytea NOT NULL,
    model     bytea NOT NULL,
    lane      bytea,
    head      bytea NOT NULL,
    change    xid8 NOT NULL DEFAULT pg_current_xact_id(),
    PRIMARY KEY (namespace, session),
    FOREIGN KEY (namespace, session) REFERENCES stepwell.sessions ON DELETE CASCADE
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX heads_updated ON stepwell.heads (namespace, updated, session);
CREATE INDEX heads_trashed ON stepwell.heads (namespace, trashed) WHERE trashed IS NOT NULL;
CREATE INDEX heads_unindexed ON stepwell.heads (namespace, session) WHERE unindexed;
CREATE INDEX heads_change ON stepwell.heads (namespace, change);

-- Sessions that were purged.
CREATE TABLE stepwell.removed (
    namespace int NOT NULL,
    change    xid8 NOT NULL DEFAULT pg_current_xact_id(),
    id        text COLLATE "C" NOT NULL
);
CREATE INDEX removed_change ON stepwell.removed (namespace, change);

-- `login` wrote the event. Roles may not name this column: the server fills it in. A copied event
-- was not said by the login that copied it. A session's events lie in one partition.
CREATE TABLE stepwell.events (
    namespace int NOT NULL,
    session   bigint NOT NULL,
    seq       bigint NOT NULL,
    at        bigint NOT NULL,
    version   int NOT NULL,
    spilled   boolean NOT NULL,
    kind      bytea NOT NULL,
    chain     bytea NOT NULL,
    id        bytea,
    mark      bytea,
    key       bytea,
    erased    bytea,
    body      bytea NOT NULL,
    login     text COLLATE "C" DEFAULT session_user,
    copied    boolean NOT NULL DEFAULT false,
    PRIMARY KEY (namespace, session, seq)
) PARTITION BY HASH (session);
CREATE UNIQUE INDEX events_id ON stepwell.events (namespace, session, id) WHERE id IS NOT NULL;
-- An entry of an index has at most a third of a page, and a path may be longer.
CREATE INDEX events_facts ON stepwell.events (namespace, session, kind, substr(key, 1, 1024), seq)
    WHERE key IS NOT NULL;

CREATE TABLE stepwell.docs (
    namespace int NOT NULL,
    session   bigint NOT NULL,
    seq       bigint NOT NULL,
    at        bigint NOT NULL,
    words     tsvector NOT NULL,
    whole     boolean NOT NULL,
    PRIMARY KEY (namespace, session, seq)
) PARTITION BY HASH (session);
CREATE INDEX docs_words ON stepwell.docs USING gin (words);
CREATE INDEX docs_at ON stepwell.docs (namespace, at, session, seq);
CREATE INDEX docs_part ON stepwell.docs (namespace) WHERE NOT whole;

-- There are as many partitions from the first day on: making one later would lock out every team
-- until the transaction that makes it ends.
DO $$
DECLARE
    partitions CONSTANT int := 8;
    parent text;
BEGIN
    FOREACH parent IN ARRAY ARRAY['events', 'docs'] LOOP
        FOR n IN 0 .. partitions - 1 LOOP
            EXECUTE format(
                'CREATE TABLE stepwell.%I PARTITION OF stepwell.%I '
                'FOR VALUES WITH (MODULUS %s, REMAINDER %s)',
                parent || '_' || n, parent, partitions, n);
        END LOOP;
    END LOOP;
END $$;

-- How far a session is in the search index.
CREATE TABLE stepwell.indexed (
    namespace int NOT NULL,
    session   bigint NOT NULL,
    seq       bigint NOT NULL,
    PRIMARY KEY (namespace, session)
);

CREATE TABLE stepwell.lanes (
    namespace int NOT NULL,
    session   bigint NOT NULL,
    lane      bytea NOT NULL,
    state     bytea NOT NULL,
    PRIMARY KEY (namespace, session, lane)
);

-- A lease's row lives as long as its session. Roles may not delete it.
CREATE TABLE stepwell.leases (
    namespace int NOT NULL,
    session   bigint NOT NULL,
    epoch     bigint NOT NULL,
    holder    bytea,
    expires   bigint,
    login     text COLLATE "C",
    PRIMARY KEY (namespace, session),
    FOREIGN KEY (namespace, session) REFERENCES stepwell.sessions ON DELETE CASCADE
);
CREATE INDEX leases_held ON stepwell.leases (namespace, expires) WHERE holder IS NOT NULL;

-- The newest epoch that was ever given under an id. Roles have no rights here: whatever becomes of
-- a session's rows, another session of the same id goes on with the epochs of the one before.
CREATE TABLE stepwell.epochs (
    namespace int NOT NULL,
    id        text COLLATE "C" NOT NULL,
    epoch     bigint NOT NULL,
    PRIMARY KEY (namespace, id)
);

-- The server says which login holds a lease.
CREATE FUNCTION stepwell.sign_lease() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.login := session_user;
    RETURN NEW;
END $$;
CREATE TRIGGER signed BEFORE INSERT OR UPDATE ON stepwell.leases
    FOR EACH ROW EXECUTE FUNCTION stepwell.sign_lease();

-- A lease that is renewed or given back keeps its epoch. One that is taken gets the next, which is
-- noted apart.
CREATE FUNCTION stepwell.note_epoch() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text;
    last bigint;
BEGIN
    SELECT s.id, coalesce(e.epoch, 0) INTO name, last FROM stepwell.sessions s
        LEFT JOIN stepwell.epochs e ON e.namespace = s.namespace AND e.id = s.id
        WHERE s.namespace = NEW.namespace AND s.key = NEW.session;
    IF TG_OP = 'INSERT' AND NEW.epoch = last AND NEW.holder IS NULL THEN
        RETURN NULL;
    END IF;
    IF NEW.epoch <> last + 1 THEN
        RAISE EXCEPTION 'the epoch of a lease does not go back, nor on by more than one';
    END IF;
    INSERT INTO stepwell.epochs (namespace, id, epoch) VALUES (NEW.namespace, name, NEW.epoch)
        ON CONFLICT (namespace, id) DO UPDATE SET epoch = excluded.epoch;
    RETURN NULL;
END $$;
CREATE TRIGGER noted AFTER INSERT ON stepwell.leases
    FOR EACH ROW EXECUTE FUNCTION stepwell.note_epoch();
CREATE TRIGGER raised AFTER UPDATE OF epoch ON stepwell.leases
    FOR EACH ROW WHEN (NEW.epoch IS DISTINCT FROM OLD.epoch)
    EXECUTE FUNCTION stepwell.note_epoch();

-- A session whose id was there before begins with the last epoch of that one, held by nobody.
CREATE FUNCTION stepwell.keep_epoch() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO stepwell.leases (namespace, session, epoch)
        SELECT namespace, NEW.key, epoch FROM stepwell.epochs
        WHERE namespace = NEW.namespace AND id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER kept AFTER INSERT ON stepwell.sessions
    FOR EACH ROW EXECUTE FUNCTION stepwell.keep_epoch();

CREATE TABLE stepwell.snapshots (
    namespace int NOT NULL,
    session   bigint NOT NULL,
    seq       bigint NOT NULL,
    state     bytea NOT NULL,
    PRIMARY KEY (namespace, session, seq)
);

CREATE TABLE stepwell.blobs (
    namespace int NOT NULL,
    digest    bytea NOT NULL,
    size      bigint NOT NULL,
    stored    bigint NOT NULL,
    touched   bigint NOT NULL,
    data      bytea NOT NULL,
    PRIMARY KEY (namespace, digest)
);
ALTER TABLE stepwell.blobs ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE TABLE stepwell.refs (
    namespace int NOT NULL,
    digest    bytea NOT NULL,
    session   bigint NOT NULL,
    seq       bigint NOT NULL,
    PRIMARY KEY (namespace, digest, session, seq),
    FOREIGN KEY (namespace, digest) REFERENCES stepwell.blobs
);
CREATE INDEX refs_place ON stepwell.refs (namespace, session, seq);

-- A role sees where it, or a role that it is a member of, is listed; of others' it learns nothing.
ALTER TABLE stepwell.members ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_role ON stepwell.members USING (EXISTS (
    SELECT 1 FROM pg_catalog.pg_roles r
    WHERE r.rolname = role AND pg_catalog.pg_has_role(r.oid, 'MEMBER')));
CREATE FUNCTION stepwell.own_namespaces() RETURNS int[]
LANGUAGE sql STABLE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(array_agg(namespace), '{}') FROM stepwell.members
$$;
ALTER TABLE stepwell.namespaces ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_namespace ON stepwell.namespaces
    USING (id = ANY ((SELECT stepwell.own_namespaces())::int[]));

-- A role sees and writes the rows of its namespaces. The owner of the schema is not held to this,
-- and pays nothing for it.
DO $$
DECLARE
    one text;
BEGIN
    FOREACH one IN ARRAY ARRAY['guards', 'policies', 'sessions', 'heads', 'removed', 'events',
        'docs', 'indexed', 'lanes', 'leases', 'epochs', 'snapshots', 'blobs', 'refs']
    LOOP
        EXECUTE format('ALTER TABLE stepwell.%I ENABLE ROW LEVEL SECURITY', one);
        EXECUTE format(
            'CREATE POLICY own_namespace ON stepwell.%I '
            'USING (namespace = ANY ((SELECT stepwell.own_namespaces())::int[]))', one);
    END LOOP;
END $$;

-- Triggers call theirs without being asked for rights; the policies call theirs as the role.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA stepwell FROM PUBLIC;
