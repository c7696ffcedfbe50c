"""A small board for the test of how a board is added: how many rated outputs each evaluator has scored."""
