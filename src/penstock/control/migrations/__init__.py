"""How the catalog's tables came to be what they are: one step for each version of them.

A step is a file in ``versions``, written with alembic's operations; its number is the version of
the tables that it leads to. Steps are never changed once they are released: they do not import the
tables, which go on changing.
"""
