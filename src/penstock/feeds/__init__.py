"""Where rows come from: replayable feeds of generated and recorded rows, free of Spark."""
