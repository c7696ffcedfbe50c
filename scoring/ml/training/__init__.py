"""Training of the learned evaluators: jobs, gold labels, checkpoints, records. The losses live with the evaluators."""
