"""A sum with noise: Gaussian, Skellam, discrete Gaussian, discrete Laplace, Pólya."""
