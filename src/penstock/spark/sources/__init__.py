"""How fragments read channels."""
