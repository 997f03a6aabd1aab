"""Pieces that policies share: whom to invite, when to close, how to weigh, what to carry over."""
