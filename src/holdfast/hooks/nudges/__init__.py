"""Words to the agent that help and may be silenced: one file each, named in `holdfast.hooks.registry`."""
