"""Right answers: what Penstock gives against what another engine gives for the same rows."""
