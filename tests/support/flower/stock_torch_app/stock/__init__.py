"""A small network on digits as a Flower app; of CAFe it uses only the images."""
