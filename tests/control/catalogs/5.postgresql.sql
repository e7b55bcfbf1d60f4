CREATE TABLE penstock_contacts (
	node VARCHAR(200) NOT NULL, 
	life VARCHAR(40) NOT NULL, 
	address VARCHAR(200) NOT NULL, 
	heard JSON NOT NULL, 
	heard_s DOUBLE PRECISION NOT NULL, 
	CONSTRAINT penstock_contacts_pkey PRIMARY KEY (node)
);
INSERT INTO penstock_contacts (node, life, address, heard, heard_s) VALUES ('a', 'a-1', '127.0.0.1:4567', '{"b": 0.5}', 950.0);
CREATE TABLE penstock_events (
	id SERIAL NOT NULL, 
	at_s DOUBLE PRECISION NOT NULL, 
	kind VARCHAR(40) NOT NULL, 
	subject VARCHAR(200) NOT NULL, 
	text TEXT NOT NULL, 
	numbers JSON NOT NULL, 
	CONSTRAINT penstock_events_pkey PRIMARY KEY (id)
);
INSERT INTO penstock_events (id, at_s, kind, subject, text, numbers) VALUES (1, 1795023955.9316838, 'submit', 'ami', 'submitted with 3 units', '{}');
INSERT INTO penstock_events (id, at_s, kind, subject, text, numbers) VALUES (2, 1795023955.9506934, 'submit', 'top', 'submitted with 1 units', '{}');
SELECT setval('penstock_events_id_seq', (SELECT max(id) FROM penstock_events));
CREATE TABLE penstock_meta (
	key VARCHAR(40) NOT NULL, 
	value TEXT NOT NULL, 
	CONSTRAINT penstock_meta_pkey PRIMARY KEY (key)
);
INSERT INTO penstock_meta (key, value) VALUES ('changes', '8');
INSERT INTO penstock_meta (key, value) VALUES ('life', '998d5672');
INSERT INTO penstock_meta (key, value) VALUES ('penstock', '0.1.0');
INSERT INTO penstock_meta (key, value) VALUES ('version', '5');
CREATE TABLE penstock_moves (
	id SERIAL NOT NULL, 
	unit VARCHAR(200) NOT NULL, 
	source VARCHAR(200) NOT NULL, 
	target VARCHAR(200) NOT NULL, 
	state VARCHAR(20) NOT NULL, 
	is_warm BOOLEAN NOT NULL, 
	created_s DOUBLE PRECISION NOT NULL, 
	ended_s DOUBLE PRECISION, 
	pause_s DOUBLE PRECISION, 
	reason TEXT NOT NULL, 
	numbers JSON NOT NULL, 
	error TEXT NOT NULL, 
	CONSTRAINT penstock_moves_pkey PRIMARY KEY (id)
);
INSERT INTO penstock_moves (id, unit, source, target, state, is_warm, created_s, ended_s, pause_s, reason, numbers, error) VALUES (1, 'peaks', 'b', 'a', 'done', true, 950.0, 951.0, NULL, 'asked for', '{"by": "people"}', '');
SELECT setval('penstock_moves_id_seq', (SELECT max(id) FROM penstock_moves));
CREATE TABLE penstock_nodes (
	name VARCHAR(200) NOT NULL, 
	cores INTEGER NOT NULL, 
	memory_bytes BIGINT NOT NULL, 
	incarnation VARCHAR(40) NOT NULL, 
	pid INTEGER NOT NULL, 
	version VARCHAR(40) NOT NULL, 
	lease_until_s DOUBLE PRECISION NOT NULL, 
	joined_s DOUBLE PRECISION NOT NULL, 
	CONSTRAINT penstock_nodes_pkey PRIMARY KEY (name)
);
INSERT INTO penstock_nodes (name, cores, memory_bytes, incarnation, pid, version, lease_until_s, joined_s) VALUES ('a', 2, 1073741824, 'a-1', 12, '0.1.0', 1000.0, 900.0);
INSERT INTO penstock_nodes (name, cores, memory_bytes, incarnation, pid, version, lease_until_s, joined_s) VALUES ('b', 1, 1073741824, 'b-1', 13, '0.1.0', 1000.0, 900.0);
CREATE TABLE penstock_plans (
	submission INTEGER NOT NULL, 
	plan TEXT NOT NULL, 
	CONSTRAINT penstock_plans_pkey PRIMARY KEY (submission)
);
INSERT INTO penstock_plans (submission, plan) VALUES (1, '{"deployment": {"name": "ami", "network": {"streams": [{"name": "readings", "source": {"generator": "meters", "options": {"days": 1}, "is": "GeneratorSource"}, "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}, "lateness_us": 120000000, "idle_timeout_us": null, "ahead_us": null, "parsing": {"columns": [], "time_format": "", "event_time": null}}], "operators": [{"name": "hourly_aggregate", "input": {"stream": "readings", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "window": {"size_us": 3600000000, "slide_us": 3600000000, "is": "Window"}, "keys": [["home", {"name": "home", "is": "Column"}]], "aggregates": [["total", {"function": "sum", "arguments": [{"name": "kwh", "is": "Column"}]}]], "is": "Aggregate"}, {"name": "peaks_filter", "input": {"stream": "readings", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "predicate": {"function": ">", "arguments": [{"name": "kwh", "is": "Column"}, {"value": 3, "is": "Literal"}], "is": "Call"}, "is": "Filter"}, {"name": "hourly", "input": {"stream": "hourly_aggregate", "shape": {"schema": {"fields": [{"name": "home", "type": "string"}, {"name": "window_start", "type": "timestamp"}, {"name": "window_end", "type": "timestamp"}, {"name": "total", "type": "double"}]}, "times": [{"column": "window_end", "behind_us": 0}, {"column": "window_start", "behind_us": 3600000000}], "watermarked": true}}, "columns": [["home", {"name": "home", "is": "Column"}], ["ended", {"name": "window_end", "is": "Column"}], ["total", {"name": "total", "is": "Column"}]], "is": "Map"}, {"name": "peaks", "input": {"stream": "peaks_filter", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "columns": [["ts", {"name": "ts", "is": "Column"}], ["home", {"name": "home", "is": "Column"}], ["kwh", {"name": "kwh", "is": "Column"}]], "is": "Map"}], "queries": [{"name": "peaks", "stream": "peaks", "sink": {"is": "ConsoleSink"}, "max_latency_us": null, "on": null, "text": "SELECT ts, home, kwh FROM readings WHERE kwh > 3", "groups": null, "engine": null, "join": null}, {"name": "hourly", "stream": "hourly", "sink": {"is": "ConsoleSink"}, "max_latency_us": 5000000, "on": null, "text": "SELECT home, window.end AS ended, sum(kwh) AS total FROM readings GROUP BY home, window(ts, ''1 hour'')", "groups": null, "engine": null, "join": null}]}, "nodes": [], "placement": "", "balance": {}, "devices": null, "whole": null}, "units": [{"name": "readings", "fragment": null, "stream": {"name": "readings", "source": {"generator": "meters", "options": {"days": 1}, "is": "GeneratorSource"}, "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}, "lateness_us": 120000000, "idle_timeout_us": null, "ahead_us": null, "parsing": {"columns": [], "time_format": "", "event_time": null}}, "on": null, "is_unread": false, "again": null, "repeats": []}, {"name": "hourly", "fragment": {"name": "hourly", "inputs": ["readings"], "operators": [{"name": "hourly_aggregate", "input": {"stream": "readings", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "window": {"size_us": 3600000000, "slide_us": 3600000000, "is": "Window"}, "keys": [["home", {"name": "home", "is": "Column"}]], "aggregates": [["total", {"function": "sum", "arguments": [{"name": "kwh", "is": "Column"}]}]], "is": "Aggregate"}, {"name": "hourly", "input": {"stream": "hourly_aggregate", "shape": {"schema": {"fields": [{"name": "home", "type": "string"}, {"name": "window_start", "type": "timestamp"}, {"name": "window_end", "type": "timestamp"}, {"name": "total", "type": "double"}]}, "times": [{"column": "window_end", "behind_us": 0}, {"column": "window_start", "behind_us": 3600000000}], "watermarked": true}}, "columns": [["home", {"name": "home", "is": "Column"}], ["ended", {"name": "window_end", "is": "Column"}], ["total", {"name": "total", "is": "Column"}]], "is": "Map"}], "output": "hourly", "writes": [], "queries": ["hourly"], "is_read": true, "beginning": {"start": "start", "since_us": null, "inputs": {}, "is_untimed": false}}, "stream": null, "on": null, "is_unread": false, "again": null, "repeats": []}, {"name": "peaks", "fragment": {"name": "peaks", "inputs": ["readings"], "operators": [{"name": "peaks_filter", "input": {"stream": "readings", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "predicate": {"function": ">", "arguments": [{"name": "kwh", "is": "Column"}, {"value": 3, "is": "Literal"}], "is": "Call"}, "is": "Filter"}, {"name": "peaks", "input": {"stream": "peaks_filter", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "columns": [["ts", {"name": "ts", "is": "Column"}], ["home", {"name": "home", "is": "Column"}], ["kwh", {"name": "kwh", "is": "Column"}]], "is": "Map"}], "output": "peaks", "writes": [], "queries": ["peaks"], "is_read": true, "beginning": {"start": "start", "since_us": null, "inputs": {}, "is_untimed": false}}, "stream": null, "on": null, "is_unread": false, "again": null, "repeats": []}], "offered": [{"name": "readings", "source": {"is": "RunningSource"}, "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}, "lateness_us": 0, "idle_timeout_us": null, "ahead_us": null, "parsing": {"columns": [], "time_format": "", "event_time": null}}, {"name": "hourly", "source": {"is": "RunningSource"}, "shape": {"schema": {"fields": [{"name": "home", "type": "string"}, {"name": "ended", "type": "timestamp"}, {"name": "total", "type": "double"}]}, "times": [{"column": "ended", "behind_us": 0}], "watermarked": true}, "lateness_us": 0, "idle_timeout_us": null, "ahead_us": null, "parsing": {"columns": [], "time_format": "", "event_time": null}}, {"name": "peaks", "source": {"is": "RunningSource"}, "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}, "lateness_us": 0, "idle_timeout_us": null, "ahead_us": null, "parsing": {"columns": [], "time_format": "", "event_time": null}}]}');
INSERT INTO penstock_plans (submission, plan) VALUES (2, '{"deployment": {"name": "top", "network": {"streams": [{"name": "peaks", "source": {"is": "RunningSource"}, "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}, "lateness_us": 0, "idle_timeout_us": null, "ahead_us": null, "parsing": {"columns": [], "time_format": "", "event_time": null}}], "operators": [{"name": "top_filter", "input": {"stream": "peaks", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "predicate": {"function": ">", "arguments": [{"name": "kwh", "is": "Column"}, {"value": 9, "is": "Literal"}], "is": "Call"}, "is": "Filter"}, {"name": "top", "input": {"stream": "top_filter", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "columns": [["home", {"name": "home", "is": "Column"}]], "is": "Map"}], "queries": [{"name": "top", "stream": "top", "sink": {"is": "ConsoleSink"}, "max_latency_us": null, "on": null, "text": "SELECT home FROM peaks WHERE kwh > 9", "groups": null, "engine": null, "join": null}]}, "nodes": [], "placement": "", "balance": {}, "devices": null, "whole": null}, "units": [{"name": "top", "fragment": {"name": "top", "inputs": ["peaks"], "operators": [{"name": "top_filter", "input": {"stream": "peaks", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "predicate": {"function": ">", "arguments": [{"name": "kwh", "is": "Column"}, {"value": 9, "is": "Literal"}], "is": "Call"}, "is": "Filter"}, {"name": "top", "input": {"stream": "top_filter", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "columns": [["home", {"name": "home", "is": "Column"}]], "is": "Map"}], "output": "top", "writes": [], "queries": ["top"], "is_read": true, "beginning": {"start": "start", "since_us": null, "inputs": {}, "is_untimed": false}}, "stream": null, "on": null, "is_unread": false, "again": null, "repeats": []}], "offered": [{"name": "top", "source": {"is": "RunningSource"}, "shape": {"schema": {"fields": [{"name": "home", "type": "string"}]}, "times": [], "watermarked": true}, "lateness_us": null, "idle_timeout_us": null, "ahead_us": null, "parsing": {"columns": [], "time_format": "", "event_time": null}}]}');
CREATE TABLE penstock_samples (
	id SERIAL NOT NULL, 
	node VARCHAR(200) NOT NULL, 
	at_s DOUBLE PRECISION NOT NULL, 
	numbers JSON NOT NULL, 
	CONSTRAINT penstock_samples_pkey PRIMARY KEY (id)
);
INSERT INTO penstock_samples (id, node, at_s, numbers) VALUES (1, 'a', 950.0, '{"at_s": 950, "intakes": {"readings": {"cpu_ms": 3.0}}, "cpu_cores": 0.5, "fragments": {"peaks": {"cpu_ms": 0.0, "batches": 4, "busy_ms": 0, "cost_us": null, "rows_in": 7, "batch_ms": 20.0, "fragment": "hourly", "rows_out": 3, "waiting_s": null, "state_rows": 2, "is_finished": true, "selectivity": null, "backlog_rows": 0, "watermark_ms": null, "latency_p50_s": null, "latency_p99_s": null, "rows_in_per_s": 1.5, "rows_in_before": 0, "latest_latency_s": null}}, "utilisation": 0.25, "memory_bytes": 700}');
CREATE INDEX ix_penstock_samples_node ON penstock_samples (node);
SELECT setval('penstock_samples_id_seq', (SELECT max(id) FROM penstock_samples));
CREATE TABLE penstock_submissions (
	id SERIAL NOT NULL, 
	name VARCHAR(200) NOT NULL, 
	kind VARCHAR(10) NOT NULL, 
	text TEXT NOT NULL, 
	folder TEXT NOT NULL, 
	max_latency_us BIGINT, 
	begun JSON NOT NULL, 
	CONSTRAINT penstock_submissions_pkey PRIMARY KEY (id), 
	CONSTRAINT penstock_submissions_name_key UNIQUE NULLS DISTINCT (name)
);
INSERT INTO penstock_submissions (id, name, kind, text, folder, max_latency_us, begun) VALUES (1, 'ami', 'yaml', 'streams:
  readings: {source: {generate: meters, days: 1}, lateness: 2min}
queries:
  peaks: SELECT ts, home, kwh FROM readings WHERE kwh > 3
  hourly:
    sql: SELECT home, window.end AS ended, sum(kwh) AS total FROM readings GROUP BY home, window(ts, ''1 hour'')
    max_latency: 5s
', '.', NULL, '{"start": "now", "fragments": {}, "again": {}}');
INSERT INTO penstock_submissions (id, name, kind, text, folder, max_latency_us, begun) VALUES (2, 'top', 'sql', 'SELECT home FROM peaks WHERE kwh > 9', '.', NULL, '{"start": "now", "fragments": {}, "again": {}}');
SELECT setval('penstock_submissions_id_seq', (SELECT max(id) FROM penstock_submissions));
CREATE TABLE penstock_units (
	name VARCHAR(200) NOT NULL, 
	kind VARCHAR(10) NOT NULL, 
	submission INTEGER NOT NULL, 
	node VARCHAR(200), 
	epoch INTEGER NOT NULL, 
	previous VARCHAR(200), 
	released_epoch INTEGER NOT NULL, 
	state VARCHAR(20) NOT NULL, 
	reported_epoch INTEGER NOT NULL, 
	error TEXT NOT NULL, 
	restarts INTEGER NOT NULL, 
	pinned VARCHAR(200), 
	planned VARCHAR(200), 
	belongs VARCHAR(200), 
	returns INTEGER NOT NULL, 
	is_dropped BOOLEAN NOT NULL, 
	is_unread BOOLEAN NOT NULL, 
	assigned_s DOUBLE PRECISION, 
	lost_s DOUBLE PRECISION, 
	since_s DOUBLE PRECISION, 
	released_s DOUBLE PRECISION, 
	measured JSON NOT NULL, 
	CONSTRAINT penstock_units_pkey PRIMARY KEY (name)
);
INSERT INTO penstock_units (name, kind, submission, node, epoch, previous, released_epoch, state, reported_epoch, error, restarts, pinned, planned, belongs, returns, is_dropped, is_unread, assigned_s, lost_s, since_s, released_s, measured) VALUES ('hourly', 'fragment', 1, 'b', 1, NULL, 0, 'finished', 1, '', 0, NULL, NULL, NULL, 0, false, false, 1795023955.956713, NULL, 1795023955.9619596, NULL, '{"fragment": "hourly", "rows_in": 7, "rows_out": 3, "rows_in_per_s": 1.5, "batches": 4, "batch_ms": 20.0, "state_rows": 2, "watermark_ms": null, "is_finished": true, "busy_ms": 0, "backlog_rows": 0, "selectivity": null, "cpu_ms": 0.0, "cost_us": null, "latency_p50_s": null, "latency_p99_s": null, "latest_latency_s": null, "waiting_s": null, "rows_in_before": 0}');
INSERT INTO penstock_units (name, kind, submission, node, epoch, previous, released_epoch, state, reported_epoch, error, restarts, pinned, planned, belongs, returns, is_dropped, is_unread, assigned_s, lost_s, since_s, released_s, measured) VALUES ('peaks', 'fragment', 1, 'a', 1, NULL, 0, 'running', 1, '', 0, NULL, NULL, NULL, 0, false, false, 1795023955.9580991, NULL, 1795023955.9597857, NULL, '{}');
INSERT INTO penstock_units (name, kind, submission, node, epoch, previous, released_epoch, state, reported_epoch, error, restarts, pinned, planned, belongs, returns, is_dropped, is_unread, assigned_s, lost_s, since_s, released_s, measured) VALUES ('readings', 'intake', 1, 'a', 1, NULL, 0, 'running', 1, '', 0, NULL, NULL, NULL, 0, false, false, 1795023955.958672, NULL, 1795023955.9613664, NULL, '{}');
INSERT INTO penstock_units (name, kind, submission, node, epoch, previous, released_epoch, state, reported_epoch, error, restarts, pinned, planned, belongs, returns, is_dropped, is_unread, assigned_s, lost_s, since_s, released_s, measured) VALUES ('top', 'fragment', 2, 'a', 1, NULL, 0, 'waiting', 0, '', 0, NULL, NULL, NULL, 0, false, false, 1795023955.959202, NULL, NULL, NULL, '{}');
