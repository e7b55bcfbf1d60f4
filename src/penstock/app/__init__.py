"""What can be done with a deployment: plan, simulate, run it, and say what came of it.

The command line and a web page are shells around this.
"""
