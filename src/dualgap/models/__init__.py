"""Trained models: built, saved, loaded, applied, verified and measured."""
