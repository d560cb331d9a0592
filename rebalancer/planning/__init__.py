"""The cheapest executable set of migrations for a goal, with a bound that proves it."""
