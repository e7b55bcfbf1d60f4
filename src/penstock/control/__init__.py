"""The live system: its catalog, its controller, the agents of its nodes and its REST API."""
