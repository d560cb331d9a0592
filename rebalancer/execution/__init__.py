"""Carries plans out: budgets, checks on fresh state, migrations, and the hold on freed room."""
