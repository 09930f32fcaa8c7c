"""The run: the loop, when to stop, who watches, checkpoints, validation."""
