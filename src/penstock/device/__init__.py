"""The receiver of broadcasts, what is shipped to it, and the sender: no Spark."""
