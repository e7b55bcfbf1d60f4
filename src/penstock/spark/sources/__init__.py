"""How fragments read: one Spark Python data source over generators, channels and Kafka."""
