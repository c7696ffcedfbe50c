"""The comparative evaluator of Zhou and Xu (2020): which of two texts is better, and skill ratings from that."""
