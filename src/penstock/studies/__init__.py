"""The sources' experiments, one module per study."""
