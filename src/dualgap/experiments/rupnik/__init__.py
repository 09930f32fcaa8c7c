"""Rupnik (2008): an overview of Pegasos, on Reuters documents."""
