"""Lower bounds on the units that fool a network, and proofs that an attack found the fewest."""
