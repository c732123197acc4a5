"""Workflows over sessions: plans, the service, the runner, workers, and drivers for the tasks."""
