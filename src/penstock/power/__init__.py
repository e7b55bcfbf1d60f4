"""What the server runs and what the device runs: cuts, broadcasts, energy. Pure decisions."""
