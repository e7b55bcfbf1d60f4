"""The same pipelines twice: written by hand for stock Spark, and compiled by Penstock."""
