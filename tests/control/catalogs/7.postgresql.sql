CREATE TABLE penstock_contacts (
    node character varying(200) NOT NULL,
    life character varying(40) NOT NULL,
    address character varying(200) NOT NULL,
    heard json NOT NULL,
    heard_s double precision NOT NULL
);
CREATE TABLE penstock_events (
    id integer NOT NULL,
    at_s double precision NOT NULL,
    kind character varying(40) NOT NULL,
    subject character varying(200) NOT NULL,
    text text NOT NULL,
    numbers json NOT NULL
);
CREATE SEQUENCE penstock_events_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE penstock_events_id_seq OWNED BY penstock_events.id;
CREATE TABLE penstock_meta (
    key character varying(40) NOT NULL,
    value text NOT NULL
);
CREATE TABLE penstock_moves (
    id integer NOT NULL,
    unit character varying(200) NOT NULL,
    source character varying(200) NOT NULL,
    target character varying(200) NOT NULL,
    state character varying(20) NOT NULL,
    is_warm boolean NOT NULL,
    created_s double precision NOT NULL,
    ended_s double precision,
    pause_s double precision,
    reason text NOT NULL,
    numbers json NOT NULL,
    error text NOT NULL
);
CREATE SEQUENCE penstock_moves_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE penstock_moves_id_seq OWNED BY penstock_moves.id;
CREATE TABLE penstock_nodes (
    name character varying(200) NOT NULL,
    cores integer NOT NULL,
    memory_bytes bigint NOT NULL,
    incarnation character varying(40) NOT NULL,
    pid integer NOT NULL,
    version character varying(40) NOT NULL,
    lease_until_s double precision NOT NULL,
    joined_s double precision NOT NULL,
    parent character varying(200)
);
CREATE TABLE penstock_plans (
    submission integer NOT NULL,
    plan text NOT NULL
);
CREATE TABLE penstock_samples (
    id integer NOT NULL,
    node character varying(200) NOT NULL,
    at_s double precision NOT NULL,
    numbers json NOT NULL
);
CREATE SEQUENCE penstock_samples_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE penstock_samples_id_seq OWNED BY penstock_samples.id;
CREATE TABLE penstock_submissions (
    id integer NOT NULL,
    name character varying(200) NOT NULL,
    kind character varying(10) NOT NULL,
    text text NOT NULL,
    folder text NOT NULL,
    max_latency_us bigint,
    begun json NOT NULL
);
CREATE SEQUENCE penstock_submissions_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE penstock_submissions_id_seq OWNED BY penstock_submissions.id;
CREATE TABLE penstock_units (
    name character varying(200) NOT NULL,
    kind character varying(10) NOT NULL,
    submission integer NOT NULL,
    node character varying(200),
    epoch integer NOT NULL,
    previous character varying(200),
    released_epoch integer NOT NULL,
    state character varying(20) NOT NULL,
    reported_epoch integer NOT NULL,
    error text NOT NULL,
    restarts integer NOT NULL,
    pinned character varying(200),
    planned character varying(200),
    belongs character varying(200),
    returns integer NOT NULL,
    is_dropped boolean NOT NULL,
    is_unread boolean NOT NULL,
    assigned_s double precision,
    lost_s double precision,
    since_s double precision,
    released_s double precision,
    measured json NOT NULL
);
ALTER TABLE ONLY penstock_events ALTER COLUMN id SET DEFAULT nextval('penstock_events_id_seq'::regclass);
ALTER TABLE ONLY penstock_moves ALTER COLUMN id SET DEFAULT nextval('penstock_moves_id_seq'::regclass);
ALTER TABLE ONLY penstock_samples ALTER COLUMN id SET DEFAULT nextval('penstock_samples_id_seq'::regclass);
ALTER TABLE ONLY penstock_submissions ALTER COLUMN id SET DEFAULT nextval('penstock_submissions_id_seq'::regclass);
INSERT INTO penstock_contacts VALUES ('a', 'a-1', '127.0.0.1:5000', '{"b": 0.5}', 950);
INSERT INTO penstock_events VALUES (1, 1795023955.9316838, 'submit', 'ami', 'submitted with 3 units', '{}');
INSERT INTO penstock_events VALUES (2, 1795023955.9506934, 'submit', 'top', 'submitted with 1 units', '{}');
INSERT INTO penstock_meta VALUES ('changes', '8');
INSERT INTO penstock_meta VALUES ('life', '998d5672');
INSERT INTO penstock_meta VALUES ('version', '7');
INSERT INTO penstock_meta VALUES ('penstock', '0.1.0');
INSERT INTO penstock_moves VALUES (1, 'peaks', 'b', 'a', 'done', true, 950, 951, NULL, 'asked for', '{"by": "people"}', '');
INSERT INTO penstock_nodes VALUES ('a', 2, 1073741824, 'a-1', 12, '0.1.0', 1000, 900, NULL);
INSERT INTO penstock_nodes VALUES ('b', 1, 1073741824, 'b-1', 13, '0.1.0', 1000, 900, NULL);
INSERT INTO penstock_plans VALUES (1, '{"deployment": {"name": "ami", "network": {"streams": [{"name": "readings", "source": {"generator": "meters", "options": {"days": 1}, "is": "GeneratorSource"}, "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}, "lateness_us": 120000000, "idle_timeout_us": null, "ahead_us": null, "parsing": {"columns": [], "time_format": "", "event_time": null}, "on": null}], "operators": [{"name": "hourly_aggregate", "input": {"stream": "readings", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "window": {"size_us": 3600000000, "slide_us": 3600000000, "is": "Window"}, "keys": [["home", {"name": "home", "is": "Column"}]], "aggregates": [["total", {"function": "sum", "arguments": [{"name": "kwh", "is": "Column"}]}]], "is": "Aggregate"}, {"name": "peaks_filter", "input": {"stream": "readings", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "predicate": {"function": ">", "arguments": [{"name": "kwh", "is": "Column"}, {"value": 3, "is": "Literal"}], "is": "Call"}, "is": "Filter"}, {"name": "hourly", "input": {"stream": "hourly_aggregate", "shape": {"schema": {"fields": [{"name": "home", "type": "string"}, {"name": "window_start", "type": "timestamp"}, {"name": "window_end", "type": "timestamp"}, {"name": "total", "type": "double"}]}, "times": [{"column": "window_end", "behind_us": 0}, {"column": "window_start", "behind_us": 3600000000}], "watermarked": true}}, "columns": [["home", {"name": "home", "is": "Column"}], ["ended", {"name": "window_end", "is": "Column"}], ["total", {"name": "total", "is": "Column"}]], "is": "Map"}, {"name": "peaks", "input": {"stream": "peaks_filter", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "columns": [["ts", {"name": "ts", "is": "Column"}], ["home", {"name": "home", "is": "Column"}], ["kwh", {"name": "kwh", "is": "Column"}]], "is": "Map"}], "queries": [{"name": "peaks", "stream": "peaks", "sink": {"is": "ConsoleSink"}, "max_latency_us": null, "on": null, "text": "SELECT ts, home, kwh FROM readings WHERE kwh > 3", "groups": null, "engine": null, "join": null}, {"name": "hourly", "stream": "hourly", "sink": {"is": "ConsoleSink"}, "max_latency_us": 5000000, "on": null, "text": "SELECT home, window.end AS ended, sum(kwh) AS total FROM readings GROUP BY home, window(ts, ''1 hour'')", "groups": null, "engine": null, "join": null}]}, "nodes": [], "placement": "", "balance": {"policy": "correlation", "every": "20s"}, "devices": null, "whole": null}, "units": [{"name": "readings", "fragment": null, "stream": {"name": "readings", "source": {"generator": "meters", "options": {"days": 1}, "is": "GeneratorSource"}, "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}, "lateness_us": 120000000, "idle_timeout_us": null, "ahead_us": null, "parsing": {"columns": [], "time_format": "", "event_time": null}, "on": null}, "on": null, "is_unread": false, "again": null, "repeats": []}, {"name": "hourly", "fragment": {"name": "hourly", "inputs": ["readings"], "operators": [{"name": "hourly_aggregate", "input": {"stream": "readings", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "window": {"size_us": 3600000000, "slide_us": 3600000000, "is": "Window"}, "keys": [["home", {"name": "home", "is": "Column"}]], "aggregates": [["total", {"function": "sum", "arguments": [{"name": "kwh", "is": "Column"}]}]], "is": "Aggregate"}, {"name": "hourly", "input": {"stream": "hourly_aggregate", "shape": {"schema": {"fields": [{"name": "home", "type": "string"}, {"name": "window_start", "type": "timestamp"}, {"name": "window_end", "type": "timestamp"}, {"name": "total", "type": "double"}]}, "times": [{"column": "window_end", "behind_us": 0}, {"column": "window_start", "behind_us": 3600000000}], "watermarked": true}}, "columns": [["home", {"name": "home", "is": "Column"}], ["ended", {"name": "window_end", "is": "Column"}], ["total", {"name": "total", "is": "Column"}]], "is": "Map"}], "output": "hourly", "writes": [], "queries": ["hourly"], "is_read": true, "beginning": {"start": "start", "since_us": null, "inputs": {}, "is_untimed": false}}, "stream": null, "on": null, "is_unread": false, "again": null, "repeats": []}, {"name": "peaks", "fragment": {"name": "peaks", "inputs": ["readings"], "operators": [{"name": "peaks_filter", "input": {"stream": "readings", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "predicate": {"function": ">", "arguments": [{"name": "kwh", "is": "Column"}, {"value": 3, "is": "Literal"}], "is": "Call"}, "is": "Filter"}, {"name": "peaks", "input": {"stream": "peaks_filter", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "columns": [["ts", {"name": "ts", "is": "Column"}], ["home", {"name": "home", "is": "Column"}], ["kwh", {"name": "kwh", "is": "Column"}]], "is": "Map"}], "output": "peaks", "writes": [], "queries": ["peaks"], "is_read": true, "beginning": {"start": "start", "since_us": null, "inputs": {}, "is_untimed": false}}, "stream": null, "on": null, "is_unread": false, "again": null, "repeats": []}], "offered": [{"name": "readings", "source": {"is": "RunningSource"}, "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}, "lateness_us": 0, "idle_timeout_us": null, "ahead_us": null, "parsing": {"columns": [], "time_format": "", "event_time": null}, "on": null}, {"name": "hourly", "source": {"is": "RunningSource"}, "shape": {"schema": {"fields": [{"name": "home", "type": "string"}, {"name": "ended", "type": "timestamp"}, {"name": "total", "type": "double"}]}, "times": [{"column": "ended", "behind_us": 0}], "watermarked": true}, "lateness_us": 0, "idle_timeout_us": null, "ahead_us": null, "parsing": {"columns": [], "time_format": "", "event_time": null}, "on": null}, {"name": "peaks", "source": {"is": "RunningSource"}, "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}, "lateness_us": 0, "idle_timeout_us": null, "ahead_us": null, "parsing": {"columns": [], "time_format": "", "event_time": null}, "on": null}]}');
INSERT INTO penstock_plans VALUES (2, '{"deployment": {"name": "top", "network": {"streams": [{"name": "peaks", "source": {"is": "RunningSource"}, "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}, "lateness_us": 0, "idle_timeout_us": null, "ahead_us": null, "parsing": {"columns": [], "time_format": "", "event_time": null}, "on": null}], "operators": [{"name": "top_filter", "input": {"stream": "peaks", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "predicate": {"function": ">", "arguments": [{"name": "kwh", "is": "Column"}, {"value": 9, "is": "Literal"}], "is": "Call"}, "is": "Filter"}, {"name": "top", "input": {"stream": "top_filter", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "columns": [["home", {"name": "home", "is": "Column"}]], "is": "Map"}], "queries": [{"name": "top", "stream": "top", "sink": {"is": "ConsoleSink"}, "max_latency_us": null, "on": null, "text": "SELECT home FROM peaks WHERE kwh > 9", "groups": null, "engine": null, "join": null}]}, "nodes": [], "placement": "", "balance": {}, "devices": null, "whole": null}, "units": [{"name": "top", "fragment": {"name": "top", "inputs": ["peaks"], "operators": [{"name": "top_filter", "input": {"stream": "peaks", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "predicate": {"function": ">", "arguments": [{"name": "kwh", "is": "Column"}, {"value": 9, "is": "Literal"}], "is": "Call"}, "is": "Filter"}, {"name": "top", "input": {"stream": "top_filter", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "columns": [["home", {"name": "home", "is": "Column"}]], "is": "Map"}], "output": "top", "writes": [], "queries": ["top"], "is_read": true, "beginning": {"start": "start", "since_us": null, "inputs": {}, "is_untimed": false}}, "stream": null, "on": null, "is_unread": false, "again": null, "repeats": []}], "offered": [{"name": "top", "source": {"is": "RunningSource"}, "shape": {"schema": {"fields": [{"name": "home", "type": "string"}]}, "times": [], "watermarked": true}, "lateness_us": null, "idle_timeout_us": null, "ahead_us": null, "parsing": {"columns": [], "time_format": "", "event_time": null}, "on": null}]}');
INSERT INTO penstock_samples VALUES (1, 'a', 950, '{"at_s": 950, "intakes": {"readings": {"cpu_ms": 3.0}}, "cpu_cores": 0.5, "fragments": {"peaks": {"cpu_ms": 0.0, "batches": 4, "busy_ms": 0, "cost_us": null, "rows_in": 7, "batch_ms": 20.0, "fragment": "hourly", "rows_out": 3, "waiting_s": null, "state_rows": 2, "is_finished": true, "selectivity": null, "backlog_rows": 0, "watermark_ms": null, "latency_p50_s": null, "latency_p99_s": null, "rows_in_per_s": 1.5, "rows_in_before": 0, "latest_latency_s": null}}, "utilisation": 0.25, "memory_bytes": 700}');
INSERT INTO penstock_submissions VALUES (2, 'top', 'sql', 'SELECT home FROM peaks WHERE kwh > 9', '.', NULL, '{"start": "now", "fragments": {}, "again": {}}');
INSERT INTO penstock_submissions VALUES (1, 'ami', 'yaml', 'streams:
  readings: {source: {generate: meters, days: 1}, lateness: 2min}
queries:
  peaks: SELECT ts, home, kwh FROM readings WHERE kwh > 3
  hourly:
    sql: SELECT home, window.end AS ended, sum(kwh) AS total FROM readings GROUP BY home, window(ts, ''1 hour'')
    max_latency: 5s
balance: {policy: correlation, every: 20s}
', '.', NULL, '{"start": "now", "fragments": {}, "again": {}}');
INSERT INTO penstock_units VALUES ('readings', 'intake', 1, 'a', 1, NULL, 0, 'running', 1, '', 0, NULL, NULL, NULL, 0, false, false, 1795023955.958672, NULL, 1795023955.9613664, NULL, '{}');
INSERT INTO penstock_units VALUES ('hourly', 'fragment', 1, 'b', 1, NULL, 0, 'finished', 1, '', 0, NULL, NULL, NULL, 0, false, false, 1795023955.956713, NULL, 1795023955.9619596, NULL, '{"fragment": "hourly", "rows_in": 7, "rows_out": 3, "rows_in_per_s": 1.5, "batches": 4, "batch_ms": 20.0, "state_rows": 2, "watermark_ms": null, "is_finished": true, "busy_ms": 0, "backlog_rows": 0, "selectivity": null, "cpu_ms": 0.0, "cost_us": null, "latency_p50_s": null, "latency_p99_s": null, "latest_latency_s": null, "waiting_s": null, "rows_in_before": 0}');
INSERT INTO penstock_units VALUES ('peaks', 'fragment', 1, 'a', 1, NULL, 0, 'running', 1, '', 0, NULL, NULL, NULL, 0, false, false, 1795023955.9580991, NULL, 1795023955.9597857, NULL, '{}');
INSERT INTO penstock_units VALUES ('top', 'fragment', 2, 'a', 1, NULL, 0, 'waiting', 0, '', 0, NULL, NULL, NULL, 0, false, false, 1795023955.959202, NULL, NULL, NULL, '{}');
SELECT pg_catalog.setval('penstock_events_id_seq', 2, true);
SELECT pg_catalog.setval('penstock_moves_id_seq', 1, true);
SELECT pg_catalog.setval('penstock_samples_id_seq', 1, true);
SELECT pg_catalog.setval('penstock_submissions_id_seq', 1, false);
ALTER TABLE ONLY penstock_contacts
    ADD CONSTRAINT penstock_contacts_pkey PRIMARY KEY (node);
ALTER TABLE ONLY penstock_events
    ADD CONSTRAINT penstock_events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY penstock_meta
    ADD CONSTRAINT penstock_meta_pkey PRIMARY KEY (key);
ALTER TABLE ONLY penstock_moves
    ADD CONSTRAINT penstock_moves_pkey PRIMARY KEY (id);
ALTER TABLE ONLY penstock_nodes
    ADD CONSTRAINT penstock_nodes_pkey PRIMARY KEY (name);
ALTER TABLE ONLY penstock_plans
    ADD CONSTRAINT penstock_plans_pkey PRIMARY KEY (submission);
ALTER TABLE ONLY penstock_samples
    ADD CONSTRAINT penstock_samples_pkey PRIMARY KEY (id);
ALTER TABLE ONLY penstock_submissions
    ADD CONSTRAINT penstock_submissions_name_key UNIQUE (name);
ALTER TABLE ONLY penstock_submissions
    ADD CONSTRAINT penstock_submissions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY penstock_units
    ADD CONSTRAINT penstock_units_pkey PRIMARY KEY (name);
CREATE INDEX ix_penstock_samples_node ON penstock_samples USING btree (node);
CREATE TABLE penstock_settings (
	name VARCHAR(40) NOT NULL, 
	record TEXT NOT NULL, 
	set_by VARCHAR(10) NOT NULL, 
	PRIMARY KEY (name)
);
