"""Runs statements of Flink's SQL until it is stopped; all that inserts is one job.

Called as a script by an interpreter that has ``apache-flink`` and nothing of Penstock, with a JSON
file: ``{"settings": {name: value}, "tables": [statement], "inserts": [statement]}``. It prints
``running`` when the job runs and ends with an error if the job does.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

_LOOK_EVERY_S = 0.5


def main(path: str) -> str:
    """Runs what the file asks for; what the job has become when it runs no more."""
    from pyflink.common import Configuration
    from pyflink.table import EnvironmentSettings, TableEnvironment

    wanted = json.loads(Path(path).read_text())
    configuration = Configuration()
    for name, value in wanted["settings"].items():
        configuration.set_string(name, value)
    settings = EnvironmentSettings.new_instance().in_streaming_mode()
    environment = TableEnvironment.create(settings.with_configuration(configuration).build())
    for statement in wanted["tables"]:
        environment.execute_sql(statement)
    inserts = environment.create_statement_set()
    for statement in wanted["inserts"]:
        inserts.add_insert_sql(statement)
    job = inserts.execute().get_job_client()
    is_told = False
    while (state := _state(job)) not in ("FAILED", "FINISHED", "CANCELED"):
        if state == "RUNNING" and not is_told:
            print("running", flush=True)
            is_told = True
        time.sleep(_LOOK_EVERY_S)
    return f"the job is {state}"


def _state(job: Any) -> str:
    return str(job.get_job_status().result()).rpartition(".")[2]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
