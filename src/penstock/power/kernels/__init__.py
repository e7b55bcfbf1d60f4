"""The inner loops of cuts, compiled; only what is in here makes them compile again."""
