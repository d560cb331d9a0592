"""What the command's exit codes mean; the README has the same table."""

DONE = 0
FAILED = 1
BAD_INPUT = 2
PLAN_EXISTS = 3
GOAL_UNMET = 4
