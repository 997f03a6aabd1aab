"""One valid call of each public function, and the kind of each of its parameters."""
