CREATE TABLE stepwell.namespaces (
    id   int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE
);

-- Which roles see which namespace; the owner of the schema sees all.
CREATE TABLE stepwell.members (
    namespace int NOT NULL REFERENCES stepwell.namespaces,
    role      name NOT NULL,
    PRIMARY KEY (namespace, role)
);

-- Whoever moves sessions about (trash, purge, scrub, repair) holds a namespace's row.
CREATE TABLE stepwell.guards (
    namespace int PRIMARY KEY REFERENCES stepwell.namespaces
);

-- What seldom changes of a session; the indexes are here.
CREATE TABLE stepwell.sessions (
    key       bigint PRIMARY KEY,
    namespace int NOT NULL REFERENCES stepwell.namespaces,
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
    UNIQUE (namespace, id)
);
CREATE INDEX sessions_parent ON stepwell.sessions (namespace, parent) WHERE parent IS NOT NULL;
CREATE INDEX sessions_base ON stepwell.sessions (base_key, base_at) WHERE base_key IS NOT NULL;
CREATE INDEX sessions_rewinding ON stepwell.sessions (namespace) WHERE rewinding;
CREATE INDEX sessions_label ON stepwell.sessions (namespace, label) WHERE label IS NOT NULL;

-- What every append changes, with as few indexes as lists can do with.
CREATE TABLE stepwell.heads (
    session   bigint PRIMARY KEY,
    namespace int NOT NULL,
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
    head      bytea NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX heads_updated ON stepwell.heads (namespace, updated, session) WHERE trashed IS NULL;
CREATE INDEX heads_trashed ON stepwell.heads (namespace, trashed) WHERE trashed IS NOT NULL;
CREATE INDEX heads_unindexed ON stepwell.heads (namespace, session) WHERE unindexed;

CREATE TABLE stepwell.events (
    session   bigint NOT NULL,
    seq       bigint NOT NULL,
    namespace int NOT NULL,
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
    PRIMARY KEY (session, seq)
) PARTITION BY RANGE (session);
CREATE UNIQUE INDEX events_id ON stepwell.events (session, id) WHERE id IS NOT NULL;
CREATE INDEX events_facts ON stepwell.events (session, kind, seq) WHERE key IS NOT NULL;

CREATE TABLE stepwell.docs (
    session   bigint NOT NULL,
    seq       bigint NOT NULL,
    namespace int NOT NULL,
    at        bigint NOT NULL,
    words     tsvector NOT NULL,
    whole     boolean NOT NULL,
    PRIMARY KEY (session, seq)
) PARTITION BY RANGE (session);
CREATE INDEX docs_words ON stepwell.docs USING gin (words);
CREATE INDEX docs_at ON stepwell.docs (namespace, at, session, seq);
CREATE INDEX docs_part ON stepwell.docs (namespace) WHERE NOT whole;

-- How far a session is in the search index.
CREATE TABLE stepwell.indexed (
    session   bigint PRIMARY KEY,
    namespace int NOT NULL,
    seq       bigint NOT NULL
);

CREATE TABLE stepwell.lanes (
    session   bigint NOT NULL,
    namespace int NOT NULL,
    lane      bytea NOT NULL,
    state     bytea NOT NULL,
    PRIMARY KEY (session, lane)
);

CREATE TABLE stepwell.leases (
    session   bigint PRIMARY KEY,
    namespace int NOT NULL,
    epoch     bigint NOT NULL,
    holder    bytea,
    expires   bigint
);
CREATE INDEX leases_held ON stepwell.leases (namespace, expires) WHERE holder IS NOT NULL;

CREATE TABLE stepwell.snapshots (
    session   bigint NOT NULL,
    seq       bigint NOT NULL,
    namespace int NOT NULL,
    state     bytea NOT NULL,
    PRIMARY KEY (session, seq)
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
CREATE INDEX refs_place ON stepwell.refs (session, seq);

-- Sessions are numbered by birth. So many share a partition of events and docs.
CREATE SEQUENCE stepwell.births;
CREATE TABLE stepwell.partitions (
    n bigint PRIMARY KEY
);

-- Makes the partitions up to and with number n. Attaching locks out nobody who reads or writes.
CREATE FUNCTION stepwell.grow(upto bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    stride CONSTANT bigint := 50000;
    parent text;
    made bigint;
BEGIN
    LOCK TABLE stepwell.partitions IN EXCLUSIVE MODE;
    SELECT coalesce(max(n), -1) + 1 INTO made FROM stepwell.partitions;
    WHILE made <= upto LOOP
        FOREACH parent IN ARRAY ARRAY['events', 'docs'] LOOP
            EXECUTE format(
                'CREATE TABLE stepwell.%I (LIKE stepwell.%I INCLUDING ALL)',
                parent || '_' || made, parent);
            EXECUTE format(
                'ALTER TABLE stepwell.%I ATTACH PARTITION stepwell.%I FOR VALUES FROM (%s) TO (%s)',
                parent, parent || '_' || made, made * stride, (made + 1) * stride);
        END LOOP;
        INSERT INTO stepwell.partitions VALUES (made);
        made := made + 1;
    END LOOP;
END $$;

-- The number of a session that is born now. There is always one partition ahead.
CREATE FUNCTION stepwell.bear() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    stride CONSTANT bigint := 50000;
    born bigint := nextval('stepwell.births');
BEGIN
    IF born / stride >= (SELECT max(n) FROM stepwell.partitions) THEN
        PERFORM stepwell.grow(born / stride + 1);
    END IF;
    RETURN born;
END $$;
SELECT stepwell.grow(1);

-- Drops the partitions, but for the newest, that no session has a number in: no pinned one,
-- and none that a fork shares events with, since those are sessions too. For the owner.
CREATE FUNCTION stepwell.drop_empty_partitions() RETURNS SETOF bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    stride CONSTANT bigint := 50000;
    newest bigint;
    empty bigint;
BEGIN
    SELECT last_value / stride INTO newest FROM stepwell.births;
    FOR empty IN
        SELECT n FROM stepwell.partitions p WHERE n < newest AND NOT EXISTS (
            SELECT 1 FROM stepwell.sessions s
            WHERE s.key >= p.n * stride AND s.key < (p.n + 1) * stride)
        ORDER BY n
    LOOP
        EXECUTE format('DROP TABLE stepwell.%I', 'events_' || empty);
        EXECUTE format('DROP TABLE stepwell.%I', 'docs_' || empty);
        DELETE FROM stepwell.partitions WHERE n = empty;
        RETURN NEXT empty;
    END LOOP;
END $$;
REVOKE EXECUTE ON FUNCTION stepwell.grow(bigint), stepwell.bear(), stepwell.drop_empty_partitions()
    FROM PUBLIC;

-- Teams may not name a number: theirs come from here.
ALTER TABLE stepwell.sessions ALTER COLUMN key SET DEFAULT stepwell.bear();

-- A role sees where it, or a role that it is a member of, is listed; of others' it learns nothing.
ALTER TABLE stepwell.members ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_role ON stepwell.members USING (EXISTS (
    SELECT 1 FROM pg_catalog.pg_roles r
    WHERE r.rolname = role AND pg_catalog.pg_has_role(r.oid, 'MEMBER')));
CREATE FUNCTION stepwell.own_namespaces() RETURNS int[]
LANGUAGE sql STABLE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(array_agg(namespace), '{}') FROM stepwell.members
$$;

-- The owner of the schema is not held to what follows, and pays nothing for it. Whoever is
-- sees the rows of its namespaces, and writes them only for sessions of the same namespace:
-- numbers are unique over all teams, so a row under another team's number would be in its way.
DO $$
DECLARE
    mine text;
    seen CONSTANT text := 'namespace = ANY ((SELECT stepwell.own_namespaces())::int[])';
BEGIN
    FOREACH mine IN ARRAY ARRAY['guards', 'blobs', 'sessions', 'heads', 'events', 'docs', 'indexed',
        'lanes', 'leases', 'snapshots', 'refs']
    LOOP
        EXECUTE format('ALTER TABLE stepwell.%I ENABLE ROW LEVEL SECURITY', mine);
        EXECUTE format('CREATE POLICY own_namespace ON stepwell.%I USING (%s)', mine, seen);
    END LOOP;
    FOREACH mine IN ARRAY ARRAY['heads', 'events', 'docs', 'indexed', 'lanes', 'leases', 'snapshots',
        'refs']
    LOOP
        EXECUTE format(
            'ALTER POLICY own_namespace ON stepwell.%1$I WITH CHECK (%2$s AND EXISTS ('
            'SELECT 1 FROM stepwell.sessions s '
            'WHERE s.key = %1$I.session AND s.namespace = %1$I.namespace))', mine, seen);
    END LOOP;
    -- By the head, since a policy cannot ask the table that it is for.
    EXECUTE format(
        'ALTER POLICY own_namespace ON stepwell.sessions WITH CHECK (%s AND (base_key IS NULL '
        'OR EXISTS (SELECT 1 FROM stepwell.heads h '
        'WHERE h.session = base_key AND h.namespace = sessions.namespace)))', seen);
END $$;
ALTER TABLE stepwell.namespaces ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_namespace ON stepwell.namespaces
    USING (id = ANY ((SELECT stepwell.own_namespaces())::int[]));
