"""How heavy it is: costs, rates and the load they make."""
