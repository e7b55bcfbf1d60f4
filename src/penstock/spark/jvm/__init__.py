"""The only place that knows what is inside Spark, Hadoop and the Java machine.

What of it is used, and why, is one table: ``internals.py``.
"""
