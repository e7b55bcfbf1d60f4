"""Deployment files: reading and printing them."""

from penstock.lang.deployment.printing import deployment_yaml
from penstock.lang.deployment.reading import (
    offered_streams,
    parse_deployment,
    parse_single_query,
    read_deployment,
    read_nodes,
)

__all__ = [
    "deployment_yaml",
    "offered_streams",
    "parse_deployment",
    "parse_single_query",
    "read_deployment",
    "read_nodes",
]
