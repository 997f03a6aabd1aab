"""Estimates from runs, plans and fits: finding and grouping runs, means with errors, curves.

Everything that reports show is calculated here or below; :mod:`cafe.report` only formats it.
"""
