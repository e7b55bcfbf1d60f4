"""The dashboard: pages that use the public API and nothing else."""
