BEGIN TRANSACTION;
CREATE TABLE penstock_contacts (
	node VARCHAR(200) NOT NULL, 
	life VARCHAR(40) NOT NULL, 
	address VARCHAR(200) NOT NULL, 
	heard JSON NOT NULL, 
	heard_s FLOAT NOT NULL, 
	PRIMARY KEY (node)
);
INSERT INTO "penstock_contacts" VALUES('a','a-1','127.0.0.1:5000','{"b": 0.5}',950.0);
CREATE TABLE penstock_events (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	at_s FLOAT NOT NULL, 
	kind VARCHAR(40) NOT NULL, 
	subject VARCHAR(200) NOT NULL, 
	text TEXT NOT NULL, 
	numbers JSON NOT NULL
);
INSERT INTO "penstock_events" VALUES(1,1.79502395593168377879e+09,'submit','ami','submitted with 3 units','{}');
INSERT INTO "penstock_events" VALUES(2,1.79502395595069336891e+09,'submit','top','submitted with 1 units','{}');
CREATE TABLE penstock_meta (
	"key" VARCHAR(40) NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "penstock_meta" VALUES('version','7');
INSERT INTO "penstock_meta" VALUES('changes','8');
INSERT INTO "penstock_meta" VALUES('life','998d5672');
INSERT INTO "penstock_meta" VALUES('penstock','0.1.0');
CREATE TABLE penstock_moves (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
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
	error TEXT NOT NULL
);
INSERT INTO "penstock_moves" VALUES(1,'peaks','b','a','done',1,950.0,951.0,NULL,'asked for','{"by": "people"}','');
CREATE TABLE penstock_nodes (
	name VARCHAR(200) NOT NULL, 
	cores INTEGER NOT NULL, 
	memory_bytes BIGINT NOT NULL, 
	incarnation VARCHAR(40) NOT NULL, 
	pid INTEGER NOT NULL, 
	version VARCHAR(40) NOT NULL, 
	lease_until_s FLOAT NOT NULL, 
	joined_s FLOAT NOT NULL, parent VARCHAR(200), 
	PRIMARY KEY (name)
);
INSERT INTO "penstock_nodes" VALUES('a',2,1073741824,'a-1',12,'0.1.0',1000.0,900.0,NULL);
INSERT INTO "penstock_nodes" VALUES('b',1,1073741824,'b-1',13,'0.1.0',1000.0,900.0,NULL);
CREATE TABLE penstock_plans (
	submission INTEGER NOT NULL, 
	"plan" TEXT NOT NULL, 
	PRIMARY KEY (submission)
);
INSERT INTO "penstock_plans" VALUES(1,'{"deployment": {"name": "ami", "network": {"streams": [{"name": "readings", "source": {"generator": "meters", "options": {"days": 1}, "is": "GeneratorSource"}, "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}, "lateness_us": 120000000, "idle_timeout_us": null, "ahead_us": null, "parsing": {"columns": [], "time_format": "", "event_time": null}, "on": null}], "operators": [{"name": "hourly_aggregate", "input": {"stream": "readings", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "window": {"size_us": 3600000000, "slide_us": 3600000000, "is": "Window"}, "keys": [["home", {"name": "home", "is": "Column"}]], "aggregates": [["total", {"function": "sum", "arguments": [{"name": "kwh", "is": "Column"}]}]], "is": "Aggregate"}, {"name": "peaks_filter", "input": {"stream": "readings", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "predicate": {"function": ">", "arguments": [{"name": "kwh", "is": "Column"}, {"value": 3, "is": "Literal"}], "is": "Call"}, "is": "Filter"}, {"name": "hourly", "input": {"stream": "hourly_aggregate", "shape": {"schema": {"fields": [{"name": "home", "type": "string"}, {"name": "window_start", "type": "timestamp"}, {"name": "window_end", "type": "timestamp"}, {"name": "total", "type": "double"}]}, "times": [{"column": "window_end", "behind_us": 0}, {"column": "window_start", "behind_us": 3600000000}], "watermarked": true}}, "columns": [["home", {"name": "home", "is": "Column"}], ["ended", {"name": "window_end", "is": "Column"}], ["total", {"name": "total", "is": "Column"}]], "is": "Map"}, {"name": "peaks", "input": {"stream": "peaks_filter", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "columns": [["ts", {"name": "ts", "is": "Column"}], ["home", {"name": "home", "is": "Column"}], ["kwh", {"name": "kwh", "is": "Column"}]], "is": "Map"}], "queries": [{"name": "peaks", "stream": "peaks", "sink": {"is": "ConsoleSink"}, "max_latency_us": null, "on": null, "text": "SELECT ts, home, kwh FROM readings WHERE kwh > 3", "groups": null, "engine": null, "join": null}, {"name": "hourly", "stream": "hourly", "sink": {"is": "ConsoleSink"}, "max_latency_us": 5000000, "on": null, "text": "SELECT home, window.end AS ended, sum(kwh) AS total FROM readings GROUP BY home, window(ts, ''1 hour'')", "groups": null, "engine": null, "join": null}]}, "nodes": [], "placement": "", "balance": {"policy": "correlation", "every": "20s"}, "devices": null, "whole": null}, "units": [{"name": "readings", "fragment": null, "stream": {"name": "readings", "source": {"generator": "meters", "options": {"days": 1}, "is": "GeneratorSource"}, "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}, "lateness_us": 120000000, "idle_timeout_us": null, "ahead_us": null, "parsing": {"columns": [], "time_format": "", "event_time": null}, "on": null}, "on": null, "is_unread": false, "again": null, "repeats": []}, {"name": "hourly", "fragment": {"name": "hourly", "inputs": ["readings"], "operators": [{"name": "hourly_aggregate", "input": {"stream": "readings", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "window": {"size_us": 3600000000, "slide_us": 3600000000, "is": "Window"}, "keys": [["home", {"name": "home", "is": "Column"}]], "aggregates": [["total", {"function": "sum", "arguments": [{"name": "kwh", "is": "Column"}]}]], "is": "Aggregate"}, {"name": "hourly", "input": {"stream": "hourly_aggregate", "shape": {"schema": {"fields": [{"name": "home", "type": "string"}, {"name": "window_start", "type": "timestamp"}, {"name": "window_end", "type": "timestamp"}, {"name": "total", "type": "double"}]}, "times": [{"column": "window_end", "behind_us": 0}, {"column": "window_start", "behind_us": 3600000000}], "watermarked": true}}, "columns": [["home", {"name": "home", "is": "Column"}], ["ended", {"name": "window_end", "is": "Column"}], ["total", {"name": "total", "is": "Column"}]], "is": "Map"}], "output": "hourly", "writes": [], "queries": ["hourly"], "is_read": true, "beginning": {"start": "start", "since_us": null, "inputs": {}, "is_untimed": false}}, "stream": null, "on": null, "is_unread": false, "again": null, "repeats": []}, {"name": "peaks", "fragment": {"name": "peaks", "inputs": ["readings"], "operators": [{"name": "peaks_filter", "input": {"stream": "readings", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "predicate": {"function": ">", "arguments": [{"name": "kwh", "is": "Column"}, {"value": 3, "is": "Literal"}], "is": "Call"}, "is": "Filter"}, {"name": "peaks", "input": {"stream": "peaks_filter", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "columns": [["ts", {"name": "ts", "is": "Column"}], ["home", {"name": "home", "is": "Column"}], ["kwh", {"name": "kwh", "is": "Column"}]], "is": "Map"}], "output": "peaks", "writes": [], "queries": ["peaks"], "is_read": true, "beginning": {"start": "start", "since_us": null, "inputs": {}, "is_untimed": false}}, "stream": null, "on": null, "is_unread": false, "again": null, "repeats": []}], "offered": [{"name": "readings", "source": {"is": "RunningSource"}, "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "district", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}, "lateness_us": 0, "idle_timeout_us": null, "ahead_us": null, "parsing": {"columns": [], "time_format": "", "event_time": null}, "on": null}, {"name": "hourly", "source": {"is": "RunningSource"}, "shape": {"schema": {"fields": [{"name": "home", "type": "string"}, {"name": "ended", "type": "timestamp"}, {"name": "total", "type": "double"}]}, "times": [{"column": "ended", "behind_us": 0}], "watermarked": true}, "lateness_us": 0, "idle_timeout_us": null, "ahead_us": null, "parsing": {"columns": [], "time_format": "", "event_time": null}, "on": null}, {"name": "peaks", "source": {"is": "RunningSource"}, "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}, "lateness_us": 0, "idle_timeout_us": null, "ahead_us": null, "parsing": {"columns": [], "time_format": "", "event_time": null}, "on": null}]}');
INSERT INTO "penstock_plans" VALUES(2,'{"deployment": {"name": "top", "network": {"streams": [{"name": "peaks", "source": {"is": "RunningSource"}, "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}, "lateness_us": 0, "idle_timeout_us": null, "ahead_us": null, "parsing": {"columns": [], "time_format": "", "event_time": null}, "on": null}], "operators": [{"name": "top_filter", "input": {"stream": "peaks", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "predicate": {"function": ">", "arguments": [{"name": "kwh", "is": "Column"}, {"value": 9, "is": "Literal"}], "is": "Call"}, "is": "Filter"}, {"name": "top", "input": {"stream": "top_filter", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "columns": [["home", {"name": "home", "is": "Column"}]], "is": "Map"}], "queries": [{"name": "top", "stream": "top", "sink": {"is": "ConsoleSink"}, "max_latency_us": null, "on": null, "text": "SELECT home FROM peaks WHERE kwh > 9", "groups": null, "engine": null, "join": null}]}, "nodes": [], "placement": "", "balance": {}, "devices": null, "whole": null}, "units": [{"name": "top", "fragment": {"name": "top", "inputs": ["peaks"], "operators": [{"name": "top_filter", "input": {"stream": "peaks", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "predicate": {"function": ">", "arguments": [{"name": "kwh", "is": "Column"}, {"value": 9, "is": "Literal"}], "is": "Call"}, "is": "Filter"}, {"name": "top", "input": {"stream": "top_filter", "shape": {"schema": {"fields": [{"name": "ts", "type": "timestamp"}, {"name": "home", "type": "string"}, {"name": "kwh", "type": "double"}]}, "times": [{"column": "ts", "behind_us": 0}], "watermarked": true}}, "columns": [["home", {"name": "home", "is": "Column"}]], "is": "Map"}], "output": "top", "writes": [], "queries": ["top"], "is_read": true, "beginning": {"start": "start", "since_us": null, "inputs": {}, "is_untimed": false}}, "stream": null, "on": null, "is_unread": false, "again": null, "repeats": []}], "offered": [{"name": "top", "source": {"is": "RunningSource"}, "shape": {"schema": {"fields": [{"name": "home", "type": "string"}]}, "times": [], "watermarked": true}, "lateness_us": null, "idle_timeout_us": null, "ahead_us": null, "parsing": {"columns": [], "time_format": "", "event_time": null}, "on": null}]}');
CREATE TABLE penstock_samples (
	id INTEGER NOT NULL, 
	node VARCHAR(200) NOT NULL, 
	at_s FLOAT NOT NULL, 
	numbers JSON NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "penstock_samples" VALUES(1,'a',950.0,'{"cpu_cores":0.5,"utilisation":0.25,"memory_bytes":700,"intakes":{"readings":{"cpu_ms":3.0}},"fragments":{"peaks":{"fragment":"hourly","rows_in":7,"rows_out":3,"rows_in_per_s":1.5,"batches":4,"batch_ms":20.0,"state_rows":2,"watermark_ms":null,"is_finished":true,"busy_ms":0,"backlog_rows":0,"selectivity":null,"cpu_ms":0.0,"cost_us":null,"latency_p50_s":null,"latency_p99_s":null,"latest_latency_s":null,"waiting_s":null,"rows_in_before":0}},"at_s":950.0}');
CREATE TABLE penstock_settings (
	name VARCHAR(40) NOT NULL, 
	record TEXT NOT NULL, 
	set_by VARCHAR(10) NOT NULL, 
	PRIMARY KEY (name)
);
CREATE TABLE penstock_submissions (
	id INTEGER NOT NULL, 
	name VARCHAR(200) NOT NULL, 
	kind VARCHAR(10) NOT NULL, 
	text TEXT NOT NULL, 
	folder TEXT NOT NULL, 
	max_latency_us BIGINT, 
	begun JSON NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "penstock_submissions" VALUES(1,'ami','yaml','streams:
  readings: {source: {generate: meters, days: 1}, lateness: 2min}
queries:
  peaks: SELECT ts, home, kwh FROM readings WHERE kwh > 3
  hourly:
    sql: SELECT home, window.end AS ended, sum(kwh) AS total FROM readings GROUP BY home, window(ts, ''1 hour'')
    max_latency: 5s
balance: {policy: correlation, every: 20s}
','.',NULL,'{"start": "now", "fragments": {}, "again": {}}');
INSERT INTO "penstock_submissions" VALUES(2,'top','sql','SELECT home FROM peaks WHERE kwh > 9','.',NULL,'{"start": "now", "fragments": {}, "again": {}}');
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
INSERT INTO "penstock_units" VALUES('readings','intake',1,'a',1,NULL,0,'running',1,'',0,NULL,NULL,NULL,0,0,0,1.79502395595867204666e+09,NULL,1.795023955961366415e+09,NULL,'{}');
INSERT INTO "penstock_units" VALUES('hourly','fragment',1,'b',1,NULL,0,'finished',1,'',0,NULL,NULL,NULL,0,0,0,1.79502395595671296116e+09,NULL,1.79502395596195960048e+09,NULL,'{"fragment": "hourly", "rows_in": 7, "rows_out": 3, "rows_in_per_s": 1.5, "batches": 4, "batch_ms": 20.0, "state_rows": 2, "watermark_ms": null, "is_finished": true, "busy_ms": 0, "backlog_rows": 0, "selectivity": null, "cpu_ms": 0.0, "cost_us": null, "latency_p50_s": null, "latency_p99_s": null, "latest_latency_s": null, "waiting_s": null, "rows_in_before": 0}');
INSERT INTO "penstock_units" VALUES('peaks','fragment',1,'a',1,NULL,0,'running',1,'',0,NULL,NULL,NULL,0,0,0,1.79502395595809912678e+09,NULL,1.79502395595978569984e+09,NULL,'{}');
INSERT INTO "penstock_units" VALUES('top','fragment',2,'a',1,NULL,0,'waiting',0,'',0,NULL,NULL,NULL,0,0,0,1.79502395595920205117e+09,NULL,NULL,NULL,'{}');
CREATE INDEX ix_penstock_samples_node ON penstock_samples (node);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('penstock_events',2);
INSERT INTO "sqlite_sequence" VALUES('penstock_moves',1);
COMMIT;
