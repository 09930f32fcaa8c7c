"""Ouillade and Vengathesa Sarma (2017): SDCA, accelerated mini-batch SDCA and Pegasos on three data sets."""
