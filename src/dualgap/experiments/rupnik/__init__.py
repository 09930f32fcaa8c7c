"""Rupnik (2007): an overview of Pegasos, on Reuters documents."""
