"""Write the page."""


def write(folder):
    pass
