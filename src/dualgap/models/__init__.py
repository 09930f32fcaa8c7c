"""Trained models: made, saved, loaded, applied."""
