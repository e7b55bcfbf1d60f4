"""The command line: a thin shell that reads what was typed, runs it and shows what happens."""
