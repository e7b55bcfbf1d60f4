"""Measurements as ratios against a named peer, each made inside one run."""
