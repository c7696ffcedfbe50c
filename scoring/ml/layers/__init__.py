"""Parts of networks that several evaluators use; no evaluator lives here."""
