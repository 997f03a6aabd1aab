"""Results for people: tables in the terminal, pictures, self-contained HTML pages.

Nothing is calculated here: see :mod:`cafe.analysis`.
"""
