CREATE TABLE penstock_events (
	id SERIAL NOT NULL, 
	at_s FLOAT NOT NULL, 
	kind VARCHAR(40) NOT NULL, 
	subject VARCHAR(200) NOT NULL, 
	text TEXT NOT NULL, 
	numbers JSON NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO penstock_events (id, at_s, kind, subject, text, numbers) VALUES (1, 1795023955.9316838, 'submit', 'ami', 'submitted with 3 units', '{}');
INSERT INTO penstock_events (id, at_s, kind, subject, text, numbers) VALUES (2, 1795023955.9506934, 'submit', 'top', 'submitted with 1 units', '{}');
SELECT setval('penstock_events_id_seq', (SELECT max(id) FROM penstock_events));
CREATE TABLE penstock_meta (
	key VARCHAR(40) NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (key)
);
INSERT INTO penstock_meta (key, value) VALUES ('version', '4');
INSERT INTO penstock_meta (key, value) VALUES ('changes', '8');
INSERT INTO penstock_meta (key, value) VALUES ('life', '998d5672');
INSERT INTO penstock_meta (key, value) VALUES ('penstock', '0.1.0');
CREATE TABLE penstock_moves (
	id SERIAL NOT NULL, 
	unit VARCHAR(200) NOT NULL, 
	source VARCHAR(200) NOT NULL, 
	target VARCHAR(200) NOT NULL, 
	state VARCHAR(20) NOT NULL, 
	is_warm BOOLEAN NOT NULL, 
	created_s FLOAT NOT NULL, 
	ended_s FLOAT, 
	pause_s FLOAT, 
	reason TEXT NOT NULL, 
	numbers JSON NOT NULL, 
	error TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO penstock_moves (id, unit, source, target, state, is_warm, created_s, ended_s, pause_s, reason, numbers, error) VALUES (1, 'peaks', 'b', 'a', 'done', TRUE, 950.0, 951.0, NULL, 'asked for', '{"by": "people"}', '');
SELECT setval('penstock_moves_id_seq', (SELECT max(id) FROM penstock_moves));
CREATE TABLE penstock_nodes (
	name VARCHAR(200) NOT NULL, 
	cores INTEGER NOT NULL, 
	memory_bytes BIGINT NOT NULL, 
	incarnation VARCHAR(40) NOT NULL, 
	pid INTEGER NOT NULL, 
	version VARCHAR(40) NOT NULL, 
	lease_until_s FLOAT NOT NULL, 
	joined_s FLOAT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO penstock_nodes (name, cores, memory_bytes, incarnation, pid, version, lease_until_s, joined_s) VALUES ('a', 2, 1073741824, 'a-1', 12, '0.1.0', 1000.0, 900.0);
INSERT INTO penstock_nodes (name, cores, memory_bytes, incarnation, pid, version, lease_until_s, joined_s) VALUES ('b', 1, 1073741824, 'b-1', 13, '0.1.0', 1000.0, 900.0);
CREATE TABLE penstock_samples (
	id SERIAL NOT NULL, 
	node VARCHAR(200) NOT NULL, 
	at_s FLOAT NOT NULL, 
	numbers JSON NOT NULL, 
	PRIMARY KEY (id)
);
CREATE INDEX ix_penstock_samples_node ON penstock_samples (node);
INSERT INTO penstock_samples (id, node, at_s, numbers) VALUES (1, 'a', 950.0, '{"cpu_cores": 0.5, "utilisation": 0.25, "memory_bytes": 700, "intakes": {"readings": {"cpu_ms": 3.0}}, "fragments": {"peaks": {"fragment": "hourly", "rows_in": 7, "rows_out": 3, "rows_in_per_s": 1.5, "batches": 4, "batch_ms": 20.0, "state_rows": 2, "watermark_ms": null, "is_finished": true, "busy_ms": 0, "backlog_rows": 0, "selectivity": null, "cpu_ms": 0.0, "cost_us": null, "latency_p50_s": null, "latency_p99_s": null, "latest_latency_s": null, "waiting_s": null, "rows_in_before": 0}}}');
SELECT setval('penstock_samples_id_seq', (SELECT max(id) FROM penstock_samples));
CREATE TABLE penstock_submissions (
	id SERIAL NOT NULL, 
	name VARCHAR(200) NOT NULL, 
	kind VARCHAR(10) NOT NULL, 
	text TEXT NOT NULL, 
	folder TEXT NOT NULL, 
	max_latency_us BIGINT, 
	begun JSON NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
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
	assigned_s FLOAT, 
	lost_s FLOAT, 
	since_s FLOAT, 
	released_s FLOAT, 
	measured JSON NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO penstock_units (name, kind, submission, node, epoch, previous, released_epoch, state, reported_epoch, error, restarts, pinned, planned, belongs, returns, is_dropped, is_unread, assigned_s, lost_s, since_s, released_s, measured) VALUES ('readings', 'intake', 1, 'a', 1, NULL, 0, 'running', 1, '', 0, NULL, NULL, NULL, 0, FALSE, FALSE, 1795023955.958672, NULL, 1795023955.9613664, NULL, '{}');
INSERT INTO penstock_units (name, kind, submission, node, epoch, previous, released_epoch, state, reported_epoch, error, restarts, pinned, planned, belongs, returns, is_dropped, is_unread, assigned_s, lost_s, since_s, released_s, measured) VALUES ('hourly', 'fragment', 1, 'b', 1, NULL, 0, 'finished', 1, '', 0, NULL, NULL, NULL, 0, FALSE, FALSE, 1795023955.956713, NULL, 1795023955.9619596, NULL, '{"fragment": "hourly", "rows_in": 7, "rows_out": 3, "rows_in_per_s": 1.5, "batches": 4, "batch_ms": 20.0, "state_rows": 2, "watermark_ms": null, "is_finished": true, "busy_ms": 0, "backlog_rows": 0, "selectivity": null, "cpu_ms": 0.0, "cost_us": null, "latency_p50_s": null, "latency_p99_s": null, "latest_latency_s": null, "waiting_s": null, "rows_in_before": 0}');
INSERT INTO penstock_units (name, kind, submission, node, epoch, previous, released_epoch, state, reported_epoch, error, restarts, pinned, planned, belongs, returns, is_dropped, is_unread, assigned_s, lost_s, since_s, released_s, measured) VALUES ('peaks', 'fragment', 1, 'a', 1, NULL, 0, 'running', 1, '', 0, NULL, NULL, NULL, 0, FALSE, FALSE, 1795023955.9580991, NULL, 1795023955.9597857, NULL, '{}');
INSERT INTO penstock_units (name, kind, submission, node, epoch, previous, released_epoch, state, reported_epoch, error, restarts, pinned, planned, belongs, returns, is_dropped, is_unread, assigned_s, lost_s, since_s, released_s, measured) VALUES ('top', 'fragment', 2, 'a', 1, NULL, 0, 'waiting', 0, '', 0, NULL, NULL, NULL, 0, FALSE, FALSE, 1795023955.959202, NULL, NULL, NULL, '{}');
