"""Softmax regression as a Flower app that knows nothing of CAFe."""
