"""Plans, results and explanations for people and for programs."""
